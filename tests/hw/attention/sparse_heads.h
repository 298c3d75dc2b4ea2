#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/machine/machine.h"

namespace systole::hw {

/// The engines of ViTCoD, or others.
inline Machine::Attention engines(std::uint32_t lines = 64, std::uint32_t macs_per_line = 8,
                                  SparserMapping mapping = SparserMapping::kColumnPerLine) {
  Machine::Attention attention;
  attention.lines = lines;
  attention.macs_per_line = macs_per_line;
  attention.mapping = mapping;
  return attention;
}

/// A machine of 32 lines of 8 MACs.
inline Machine machine_with_engines() {
  Machine machine;
  machine.attention = engines(32, 8);
  return machine;
}

/// A mask of one head as the tests write it down.
struct HeadMask {
  std::size_t queries = 0;
  std::size_t keys = 0;
  std::vector<std::uint8_t> keep;  ///< [queries][keys]

  [[nodiscard]] bool kept(std::size_t query, std::size_t key) const {
    return keep[query * keys + key] != 0;
  }
};

inline std::vector<std::uint32_t> column_kept(const HeadMask& mask) {
  std::vector<std::uint32_t> counts(mask.keys, 0);
  for (std::size_t i = 0; i < mask.keep.size(); ++i) counts[i % mask.keys] += mask.keep[i];
  return counts;
}

/// The split with the dense columns and, for the others, the column order given.
inline SparseHead split_in_order(const HeadMask& mask, std::vector<std::uint16_t> dense,
                                 std::vector<std::uint16_t> sparse) {
  SparseHead head{mask.queries, mask.keys, std::move(dense), {}, std::move(sparse), {0}, {}};
  for (const std::uint16_t key : head.dense_columns) {
    for (std::size_t q = 0; q < mask.queries; ++q) head.dense_keep.push_back(mask.kept(q, key));
  }
  for (const std::uint16_t key : head.sparse_columns) {
    for (std::size_t q = 0; q < mask.queries; ++q) {
      if (mask.kept(q, key)) head.row_indices.push_back(static_cast<std::uint16_t>(q));
    }
    head.column_pointers.push_back(static_cast<std::uint32_t>(head.row_indices.size()));
  }
  return head;
}

/// The split with the dense columns given and the others in the order of their keys.
inline SparseHead split(const HeadMask& mask, const std::vector<std::uint16_t>& dense) {
  std::vector<std::uint16_t> sparse;
  for (std::size_t key = 0; key < mask.keys; ++key) {
    const auto index = static_cast<std::uint16_t>(key);
    if (std::find(dense.begin(), dense.end(), index) == dense.end()) sparse.push_back(index);
  }
  return split_in_order(mask, dense, sparse);
}

inline std::size_t random_size(std::mt19937& random, std::size_t lowest, std::size_t highest) {
  return std::uniform_int_distribution<std::size_t>(lowest, highest)(random);
}

/// A random mask of up to `largest` queries and keys: a background of some density, and some full,
/// dense and empty columns and rows in it.
inline HeadMask random_mask(std::mt19937& random, std::size_t largest) {
  HeadMask mask{random_size(random, 1, largest), random_size(random, 1, largest), {}};
  const double densities[] = {0.0, 0.05, 0.5, 1.0};
  const auto density = [&] { return densities[random_size(random, 0, 3)]; };
  const double background = density();
  std::vector<double> of_key(mask.keys, background);
  for (double& value : of_key) {
    if (random_size(random, 0, 4) == 0) value = density();
  }
  for (std::size_t q = 0; q < mask.queries; ++q) {
    const bool special = random_size(random, 0, 7) == 0;
    const double of_row = density();
    for (std::size_t key = 0; key < mask.keys; ++key) {
      mask.keep.push_back(std::bernoulli_distribution(special ? of_row : of_key[key])(random));
    }
  }
  return mask;
}

/// The mask split at a random place of a random order of its keys.
inline SparseHead split_anywhere(const HeadMask& mask, std::mt19937& random) {
  std::vector<std::uint16_t> keys(mask.keys);
  std::iota(keys.begin(), keys.end(), std::uint16_t{0});
  std::shuffle(keys.begin(), keys.end(), random);
  const auto middle = keys.begin() + static_cast<std::ptrdiff_t>(random_size(random, 0, mask.keys));
  return split_in_order(mask, {keys.begin(), middle}, {middle, keys.end()});
}

}  // namespace systole::hw

#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "hw/attention/sparse_attention.h"
#include "hw/attention/timing/attention_runs.h"
#include "tests/hw/attention/sparse_heads.h"

namespace systole::testbench {

using Bytes = std::vector<std::int8_t>;

inline Bytes random_bytes(std::size_t count, std::mt19937& random) {
  Bytes bytes(count);
  for (std::int8_t& byte : bytes) byte = static_cast<std::int8_t>(random());
  return bytes;
}

inline std::uint32_t random_count(std::mt19937& random, std::uint32_t lowest,
                                  std::uint32_t highest) {
  return static_cast<std::uint32_t>(hw::random_size(random, lowest, highest));
}

/// A head with operands, codes that are no softmax, and what the model makes of them.
struct HeadCase {
  HeadCase(hw::SparseHead split, std::size_t dim, std::size_t value_dim, hw::Machine::Attention of,
           std::mt19937& random)
      : head(std::move(split)), attention(of), rows(hw::sparse_rows(head)) {
    operands.dim = dim;
    operands.value_dim = value_dim;
    operands.q_pitch = operands.k_pitch = dim + random() % 3;
    operands.v_pitch = value_dim + random() % 3;
    q = random_bytes(head.queries * operands.q_pitch, random);
    k = random_bytes(head.keys * operands.k_pitch, random);
    v = random_bytes(head.keys * operands.v_pitch, random);
    codes.cells = hw::make_split_cells<std::uint8_t>(head);
    for (auto* cells : {&codes.cells.dense, &codes.cells.sparse}) {
      for (std::uint8_t& code : *cells) code = static_cast<std::uint8_t>(random());
    }
    operands.q = q.data();
    operands.k = k.data();
    operands.v = v.data();
  }
  HeadCase(const HeadCase&) = delete;
  HeadCase& operator=(const HeadCase&) = delete;

  /// The same byte everywhere.
  void fill(std::int8_t query, std::int8_t key, std::int8_t value, std::uint8_t code) {
    q.assign(q.size(), query);
    k.assign(k.size(), key);
    v.assign(v.size(), value);
    codes.cells.dense.assign(codes.cells.dense.size(), code);
    codes.cells.sparse.assign(codes.cells.sparse.size(), code);
  }

  /// Sums of one engine alone.
  [[nodiscard]] std::vector<std::int32_t> sums(bool dense) const {
    std::vector<std::int32_t> sums(head.queries * operands.value_dim, 0);
    for (std::size_t query = 0; query < head.queries; ++query) {
      const hw::OutputGroup all{query, 0, operands.value_dim};
      std::int32_t* const row = sums.data() + query * operands.value_dim;
      if (dense) {
        hw::accumulate_dense_group(head, operands, codes, all, row);
      } else {
        hw::accumulate_sparse_group(rows, operands, codes, all, row);
      }
    }
    return sums;
  }

  hw::SparseHead head;
  hw::Machine::Attention attention;
  hw::SparseRows rows;
  Bytes q, k, v;
  hw::AttentionOperands operands;
  hw::AttentionCodes codes;
};

}  // namespace systole::testbench

#include "model/mask/attention_mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace systole::model {

std::string AttentionShape::text() const {
  return fmt::format("{} x {} x {} x {}", layers, heads, queries, keys);
}

AttentionShape attention_shape(const Npy& array) {
  const auto& shape = array.shape();
  const auto fail = [&](const std::string& what) {
    throw hw::InputError(
        fmt::format("{}: shape {}: {}", hw::printable(array.path()), shape_text(shape), what));
  };
  if (shape.size() != 4) fail("expected four dimensions: layers, heads, queries, keys");
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) {
    fail("expected at least 1 layer, head, query and key");
  }
  if (std::max(shape[2], shape[3]) > hw::kMaxSparseTokens) {
    fail(fmt::format("expected at most {} tokens", hw::kMaxSparseTokens));
  }
  return {shape[0], shape[1], shape[2], shape[3]};
}

std::string row_text(const AttentionShape& shape, std::size_t row) {
  const std::size_t head = row / shape.queries;
  return fmt::format("layer {}, head {}, row {}", head / shape.heads, head % shape.heads,
                     row % shape.queries);
}

std::size_t AttentionMask::kept_count() const {
  return std::accumulate(kept_.begin(), kept_.end(), std::size_t{0});
}

std::size_t AttentionMask::kept_count(std::size_t layer, std::size_t head) const {
  const std::uint8_t* const begin = kept_.data() + cell(layer, head, 0, 0);
  return std::accumulate(begin, begin + shape_.head_cells(), std::size_t{0});
}

double AttentionMask::sparsity() const {
  return static_cast<double>(kept_.size() - kept_count()) / static_cast<double>(kept_.size());
}

hw::SparseHead AttentionMask::head(std::size_t layer, std::size_t head) const {
  hw::SparseHead whole;
  whole.queries = shape_.queries;
  whole.keys = shape_.keys;
  whole.sparse_columns.resize(shape_.keys);
  std::iota(whole.sparse_columns.begin(), whole.sparse_columns.end(), std::uint16_t{0});
  whole.column_pointers.push_back(0);
  for (std::size_t key = 0; key < shape_.keys; ++key) {
    for (std::size_t query = 0; query < shape_.queries; ++query) {
      if (kept(layer, head, query, key)) {
        whole.row_indices.push_back(static_cast<std::uint16_t>(query));
      }
    }
    whole.column_pointers.push_back(static_cast<std::uint32_t>(whole.row_indices.size()));
  }
  return whole;
}

std::optional<std::size_t> AttentionMask::first_empty_row() const {
  const std::size_t heads = shape_.layers * shape_.heads;
  for (std::size_t head = 0; head < heads; ++head) {
    if (kept_count(0, head) == 0) continue;  // heads of all layers follow each other
    for (std::size_t query = 0; query < shape_.queries; ++query) {
      const std::uint8_t* const begin = kept_.data() + cell(0, head, query, 0);
      const std::uint8_t* const end = begin + shape_.keys;
      if (std::find(begin, end, 1) == end) return head * shape_.queries + query;
    }
  }
  return std::nullopt;
}

AttentionMask shuffled(const AttentionMask& mask, bool cls, std::uint64_t seed) {
  const AttentionShape& shape = mask.shape();
  const std::size_t first = cls ? 1 : 0;
  AttentionMask result(shape);
  std::mt19937_64 random(seed);
  for (std::size_t head = 0; head < shape.layers * shape.heads; ++head) {
    const std::size_t begin = head * shape.head_cells();
    std::vector<std::size_t> places;
    std::size_t kept = 0;
    for (std::size_t cell = begin; cell < begin + shape.head_cells(); ++cell) {
      const bool fixed = (cell - begin) / shape.keys < first || (cell - begin) % shape.keys < first;
      if (fixed && mask.kept(cell)) result.keep(cell);
      if (fixed) continue;
      places.push_back(cell);
      if (mask.kept(cell)) ++kept;
    }
    // Fisher and Yates; of a modulus the bias is below 2^-40.
    for (std::size_t left = places.size(); left > 1; --left) {
      std::swap(places[left - 1], places[random() % left]);
    }
    std::vector<std::uint8_t> has_key(shape.queries, cls ? 1 : 0);
    std::vector<std::size_t> first_of_row, others;
    for (const std::size_t cell : places) {
      std::uint8_t& has = has_key[(cell - begin) / shape.keys];
      (has == 0 ? first_of_row : others).push_back(cell);
      has = 1;
    }
    first_of_row.insert(first_of_row.end(), others.begin(), others.end());
    for (std::size_t i = 0; i < kept; ++i) result.keep(first_of_row[i]);
  }
  return result;
}

AttentionMask load_mask(const Npy& array) {
  AttentionMask mask(attention_shape(array));
  const std::vector<std::uint8_t> pruned = array.flags();
  for (std::size_t cell = 0; cell < pruned.size(); ++cell) {
    if (pruned[cell] == 0) mask.keep(cell);
  }
  return mask;
}

void save_mask(const AttentionMask& mask, const std::string& path) {
  const AttentionShape& shape = mask.shape();
  std::vector<std::uint8_t> pruned(shape.cells());
  for (std::size_t cell = 0; cell < pruned.size(); ++cell) pruned[cell] = mask.kept(cell) ? 0 : 1;
  write_npy(path, {shape.layers, shape.heads, shape.queries, shape.keys}, pruned);
}

}  // namespace systole::model

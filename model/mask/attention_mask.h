#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "model/format/npy.h"

namespace systole::model {

/// The shape of attention maps: every head of every layer has a map of `queries` rows and `keys`
/// columns, which need not be square.
struct AttentionShape {
  std::size_t layers = 0, heads = 0, queries = 0, keys = 0;

  [[nodiscard]] std::size_t head_cells() const { return queries * keys; }
  [[nodiscard]] std::size_t cells() const { return layers * heads * head_cells(); }
  /// "12 x 3 x 197 x 197".
  [[nodiscard]] std::string text() const;
  friend bool operator==(const AttentionShape& a, const AttentionShape& b) {
    return a.layers == b.layers && a.heads == b.heads && a.queries == b.queries && a.keys == b.keys;
  }
};

/// The array's shape as that of attention maps. Throws InputError unless it has four dimensions of
/// at least 1, with at most `hw::kMaxSparseTokens` queries and keys.
AttentionShape attention_shape(const Npy& array);

/// "layer 3, head 1, row 17" (from 0) of the row that the flat index of a map's row means.
std::string row_text(const AttentionShape& shape, std::size_t row);

/// Which cells of the attention maps exist, fixed for all inputs. A head may be empty or full.
class AttentionMask {
 public:
  /// All cells pruned.
  explicit AttentionMask(const AttentionShape& shape)
      : shape_(shape), kept_(shape.cells(), std::uint8_t{0}) {}

  [[nodiscard]] const AttentionShape& shape() const { return shape_; }
  [[nodiscard]] bool kept(std::size_t layer, std::size_t head, std::size_t query,
                          std::size_t key) const {
    return kept_[cell(layer, head, query, key)] != 0;
  }
  void keep(std::size_t layer, std::size_t head, std::size_t query, std::size_t key) {
    kept_[cell(layer, head, query, key)] = 1;
  }

  /// The same by flat index of a cell, in the order [layers][heads][queries][keys].
  [[nodiscard]] bool kept(std::size_t cell) const { return kept_[cell] != 0; }
  void keep(std::size_t cell) { kept_[cell] = 1; }

  /// Kept cells of all heads, and of one.
  [[nodiscard]] std::size_t kept_count() const;
  [[nodiscard]] std::size_t kept_count(std::size_t layer, std::size_t head) const;
  /// The fraction of cells that are pruned.
  [[nodiscard]] double sparsity() const;
  /// The head with no global column: all keys in ascending order in CSC.
  [[nodiscard]] hw::SparseHead head(std::size_t layer, std::size_t head) const;

  /// The first row (as a flat index over layers, heads and queries) that keeps no key in a head
  /// that keeps others, for `row_text`; nothing if every row keeps one.
  [[nodiscard]] std::optional<std::size_t> first_empty_row() const;

 private:
  [[nodiscard]] std::size_t cell(std::size_t layer, std::size_t head, std::size_t query,
                                 std::size_t key) const {
    return ((layer * shape_.heads + head) * shape_.queries + query) * shape_.keys + key;
  }

  AttentionShape shape_;
  std::vector<std::uint8_t> kept_;  ///< [layers][heads][queries][keys], 0 or 1
};

/// As many cells in every head, but others, at random: what a mask of the same size without the
/// structure of the attention is. With `cls`, row 0 and column 0 of every head stay as they are.
/// Without, every row that has cells has one at least. Depends on its arguments alone.
AttentionMask shuffled(const AttentionMask& mask, bool cls, std::uint64_t seed);

/// The mask in a .npy file of bool [layers, heads, queries, keys] in which true means pruned.
/// Throws InputError for anything else.
AttentionMask load_mask(const Npy& array);

/// Writes such a file; see `hw::AtomicFile`.
void save_mask(const AttentionMask& mask, const std::string& path);

}  // namespace systole::model

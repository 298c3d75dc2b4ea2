#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace systole::hw {

/// Most queries or keys of a head: their indices are 16 bits wide.
inline constexpr std::size_t kMaxSparseTokens = 65535;

/// One attention head's fixed mask, split for a denser and a sparser engine.
///
/// The G global columns (keys that many queries attend to) form the dense block: all `queries` x G
/// cells are computed, and those the mask prunes are dropped before the softmax. The other keys are
/// kept in compressed sparse columns (CSC). dense_columns and sparse_columns together name every
/// key once, also keys that no query attends to; each list is in the order its engine walks.
struct SparseHead {
  std::size_t queries = 0;  ///< rows of the mask, at most kMaxSparseTokens
  std::size_t keys = 0;     ///< columns of the mask, at most kMaxSparseTokens

  std::vector<std::uint16_t> dense_columns;  ///< [G] key of each global column
  /// [G][queries], column-major like the K-stationary scores: true where the mask keeps the cell of
  /// global column c and query q, at c * queries + q.
  std::vector<bool> dense_keep;

  std::vector<std::uint16_t> sparse_columns;   ///< [keys - G] key of each other column
  std::vector<std::uint32_t> column_pointers;  ///< [keys - G + 1], first 0, last sparse_kept()
  /// [sparse_kept()] the queries that keep sparse column c, ascending, from column_pointers[c] up
  /// to column_pointers[c + 1].
  std::vector<std::uint16_t> row_indices;

  /// Cells the denser engine computes: G * queries.
  [[nodiscard]] std::size_t dense_cells() const { return dense_columns.size() * queries; }
  /// Kept cells of the dense block.
  [[nodiscard]] std::size_t dense_kept() const {
    std::size_t count = 0;
    for (const bool keep : dense_keep) count += keep ? 1 : 0;
    return count;
  }
  /// Kept cells of the sparser engine.
  [[nodiscard]] std::size_t sparse_kept() const { return row_indices.size(); }
  /// Kept cells of the whole head.
  [[nodiscard]] std::size_t kept() const { return dense_kept() + sparse_kept(); }
  /// Kept cells of sparse column c.
  [[nodiscard]] std::size_t column_kept(std::size_t c) const {
    return column_pointers[c + 1] - column_pointers[c];
  }
};

/// Throws std::invalid_argument where the lists contradict the sizes or each other: a key named
/// twice or not at all, a bitmap of the wrong size, pointers that do not ascend from 0 to the
/// number of row indices, row indices that do not ascend within a column or are no query.
void check_sparse_head(const SparseHead& head);

/// The head restricted to queries [first, first + count), which are renumbered from 0: a piece of a
/// head whose scores are more than the buffers hold. Keys and columns stay, also those that lose
/// all their kept cells. Throws std::invalid_argument for queries that the head does not have.
[[nodiscard]] SparseHead query_tile(const SparseHead& head, std::size_t first, std::size_t count);

/// [queries] kept cells of each row, both engines'.
[[nodiscard]] std::vector<std::uint32_t> row_kept(const SparseHead& head);

/// The rows of the CSC part, as the output-stationary SpMM and the softmax walk it.
struct SparseRows {
  std::vector<std::uint32_t> pointers;  ///< [queries + 1]
  /// [sparse_kept()] position in row_indices of each cell of a row, in the order of its columns.
  std::vector<std::uint32_t> cells;
  std::vector<std::uint16_t> keys;  ///< [sparse_kept()] key of each of these cells
};

[[nodiscard]] SparseRows sparse_rows(const SparseHead& head);

}  // namespace systole::hw

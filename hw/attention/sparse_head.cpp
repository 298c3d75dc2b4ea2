#include "hw/attention/sparse_head.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace systole::hw {
namespace {

void require(bool condition, const char* text) {
  if (!condition) throw std::invalid_argument(text);
}

void check_keys(const SparseHead& head) {
  require(head.dense_columns.size() + head.sparse_columns.size() == head.keys,
          "sparse head: expected every key in one column list");
  std::vector<bool> seen(head.keys, false);
  for (const auto* columns : {&head.dense_columns, &head.sparse_columns}) {
    for (const std::uint16_t key : *columns) {
      require(key < head.keys && !seen[key], "sparse head: a key is named twice or out of range");
      seen[key] = true;
    }
  }
}

void check_columns(const SparseHead& head) {
  const auto& pointers = head.column_pointers;
  require(pointers.size() == head.sparse_columns.size() + 1 && pointers.front() == 0 &&
              pointers.back() == head.row_indices.size() &&
              std::is_sorted(pointers.begin(), pointers.end()),
          "sparse head: column pointers do not ascend from 0 to the number of row indices");
  for (std::size_t c = 0; c < head.sparse_columns.size(); ++c) {
    const auto begin = head.row_indices.begin() + pointers[c];
    const auto end = head.row_indices.begin() + pointers[c + 1];
    const bool ascending = std::adjacent_find(begin, end, std::greater_equal<>()) == end;
    require(ascending && (begin == end || *(end - 1) < head.queries),
            "sparse head: row indices of a column do not ascend or are out of range");
  }
}

}  // namespace

void check_sparse_head(const SparseHead& head) {
  require(head.queries <= kMaxSparseTokens && head.keys <= kMaxSparseTokens,
          "sparse head: expected at most 65535 queries and keys");
  require(head.dense_keep.size() == head.dense_cells(),
          "sparse head: the dense block's bitmap has the wrong size");
  check_keys(head);
  check_columns(head);
}

SparseHead query_tile(const SparseHead& head, std::size_t first, std::size_t count) {
  require(first <= head.queries && count <= head.queries - first,
          "sparse head: expected a tile within the queries of the head");
  SparseHead tile{count, head.keys, head.dense_columns, {}, head.sparse_columns, {0}, {}};
  for (std::size_t c = 0; c < head.dense_columns.size(); ++c) {
    const auto column = head.dense_keep.begin() + static_cast<std::ptrdiff_t>(c * head.queries);
    const auto begin = column + static_cast<std::ptrdiff_t>(first);
    tile.dense_keep.insert(tile.dense_keep.end(), begin,
                           begin + static_cast<std::ptrdiff_t>(count));
  }
  for (std::size_t c = 0; c < head.sparse_columns.size(); ++c) {
    for (std::uint32_t cell = head.column_pointers[c]; cell < head.column_pointers[c + 1]; ++cell) {
      const std::size_t query = head.row_indices[cell];
      if (query >= first && query - first < count) {
        tile.row_indices.push_back(static_cast<std::uint16_t>(query - first));
      }
    }
    tile.column_pointers.push_back(static_cast<std::uint32_t>(tile.row_indices.size()));
  }
  return tile;
}

std::vector<std::uint32_t> row_kept(const SparseHead& head) {
  std::vector<std::uint32_t> kept(head.queries, 0);
  for (const std::uint16_t query : head.row_indices) ++kept[query];
  for (std::size_t i = 0; i < head.dense_keep.size(); ++i) {
    kept[i % head.queries] += head.dense_keep[i] ? 1 : 0;
  }
  return kept;
}

SparseRows sparse_rows(const SparseHead& head) {
  SparseRows rows{std::vector<std::uint32_t>(head.queries + 1, 0),
                  std::vector<std::uint32_t>(head.sparse_kept()),
                  std::vector<std::uint16_t>(head.sparse_kept())};
  for (const std::uint16_t query : head.row_indices) ++rows.pointers[query + 1U];
  std::partial_sum(rows.pointers.begin(), rows.pointers.end(), rows.pointers.begin());
  std::vector<std::uint32_t> next(rows.pointers.begin(), rows.pointers.end() - 1);
  for (std::size_t c = 0; c < head.sparse_columns.size(); ++c) {
    for (std::uint32_t cell = head.column_pointers[c]; cell < head.column_pointers[c + 1]; ++cell) {
      const std::uint32_t to = next[head.row_indices[cell]]++;
      rows.cells[to] = cell;
      rows.keys[to] = head.sparse_columns[c];
    }
  }
  return rows;
}

}  // namespace systole::hw

#include "model/mask/global_columns.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "hw/attention/timing/global_columns.h"

namespace systole::model {

std::size_t default_threshold(std::size_t queries) {
  return (2 * kPublishedThreshold * queries + kThresholdQueries) / (2 * kThresholdQueries);
}

hw::SparseHead with_global_columns(const hw::SparseHead& whole,
                                   const std::vector<std::uint16_t>& columns) {
  if (!whole.dense_columns.empty()) throw std::invalid_argument("the head is split already");
  std::vector<bool> is_global(whole.keys, false);
  for (const std::uint16_t key : columns) {
    if (key >= whole.keys || is_global[key]) throw std::invalid_argument("not a set of columns");
    is_global[key] = true;
  }
  std::vector<std::size_t> place(whole.keys);  // of a key in the whole head's columns
  for (std::size_t c = 0; c < whole.keys; ++c) place[whole.sparse_columns[c]] = c;
  const auto rows = [&](std::size_t c) {
    return whole.row_indices.begin() + whole.column_pointers[c];
  };

  hw::SparseHead head;
  head.queries = whole.queries;
  head.keys = whole.keys;
  head.dense_columns = columns;
  head.dense_keep.resize(head.dense_cells(), false);
  for (std::size_t g = 0; g < columns.size(); ++g) {
    const std::size_t c = place[columns[g]];
    for (auto row = rows(c); row != rows(c + 1); ++row) {
      head.dense_keep[g * head.queries + *row] = true;
    }
  }
  head.column_pointers.push_back(0);
  for (std::size_t c = 0; c < whole.keys; ++c) {
    if (is_global[whole.sparse_columns[c]]) continue;
    head.sparse_columns.push_back(whole.sparse_columns[c]);
    head.row_indices.insert(head.row_indices.end(), rows(c), rows(c + 1));
    head.column_pointers.push_back(static_cast<std::uint32_t>(head.row_indices.size()));
  }
  return head;
}

hw::SparseHead split_by_threshold(const hw::SparseHead& whole, std::size_t threshold) {
  std::vector<std::uint16_t> columns;
  for (std::size_t c = 0; c < whole.sparse_columns.size(); ++c) {
    if (whole.column_kept(c) > threshold) columns.push_back(whole.sparse_columns[c]);
  }
  std::sort(columns.begin(), columns.end());
  return with_global_columns(whole, columns);
}

hw::SparseHead split_by_cycles(const hw::SparseHead& whole, std::size_t dim,
                               const hw::Machine::Attention& array) {
  std::vector<std::uint32_t> kept(whole.keys);
  for (std::size_t c = 0; c < whole.sparse_columns.size(); ++c) {
    kept[whole.sparse_columns[c]] = static_cast<std::uint32_t>(whole.column_kept(c));
  }
  return with_global_columns(whole, hw::best_global_columns(kept, whole.queries, dim, array).keys);
}

std::size_t csc_bytes(const hw::SparseHead& head) {
  constexpr std::size_t kOneByteRows = 256;
  const std::size_t index = head.queries <= kOneByteRows ? 1 : 2;
  const std::size_t pointer =
      head.sparse_kept() <= std::numeric_limits<std::uint16_t>::max() ? 2 : 4;
  return head.sparse_kept() * index + (head.sparse_columns.size() + 1) * pointer;
}

}  // namespace systole::model

#include "hw/attention/attention_tiles.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace systole::hw {
namespace {

constexpr std::uint64_t kWordBytes = 4;

/// [queries + 1] cells that are computed for the queries before each.
std::vector<std::uint64_t> cells_before(const SparseHead& head) {
  std::vector<std::uint64_t> cells(head.queries + 1, 0);
  for (const std::uint16_t query : head.row_indices) ++cells[query + std::size_t{1}];
  for (std::size_t q = 0; q < head.queries; ++q)
    cells[q + 1] += cells[q] + head.dense_columns.size();
  return cells;
}

std::uint64_t bytes_of(const std::vector<std::uint64_t>& cells, QueryTile tile,
                       std::size_t value_dim) {
  return kWordBytes * (cells[tile.first + tile.count] - cells[tile.first]) +
         tile_sum_bytes(tile, value_dim);
}

std::vector<QueryTile> tiles_of(std::size_t queries, std::size_t size) {
  std::vector<QueryTile> tiles;
  for (std::size_t first = 0; first < queries; first += size) {
    tiles.push_back({first, std::min(size, queries - first)});
  }
  return tiles;
}

}  // namespace

std::uint64_t tile_bytes(const SparseHead& head, QueryTile tile, std::size_t value_dim) {
  return bytes_of(cells_before(head), tile, value_dim);
}

std::uint64_t tile_sum_bytes(QueryTile tile, std::size_t value_dim) {
  return kWordBytes * tile.count * value_dim;
}

std::vector<QueryTile> query_tiles(const SparseHead& head, std::size_t value_dim,
                                   std::uint64_t buffer_bytes) {
  const std::vector<std::uint64_t> cells = cells_before(head);
  const auto largest = [&](const std::vector<QueryTile>& tiles) {
    std::uint64_t bytes = 0;
    for (const QueryTile tile : tiles) bytes = std::max(bytes, bytes_of(cells, tile, value_dim));
    return bytes;
  };
  std::uint64_t needed = 0;
  std::size_t tried = 0;
  for (std::size_t count = 1; count <= head.queries; ++count) {
    const std::size_t size = (head.queries + count - 1) / count;
    if (size == tried) continue;  // else a long head would take time that grows with its square
    tried = size;
    std::vector<QueryTile> tiles = tiles_of(head.queries, size);
    needed = largest(tiles);
    if (needed <= buffer_bytes) return tiles;
  }
  if (head.queries == 0) return {};
  throw InputError("scores and outputs of one query take " + std::to_string(needed) +
                   " bytes, expected at most the accumulator's " + std::to_string(buffer_bytes));
}

}  // namespace systole::hw

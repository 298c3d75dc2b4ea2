#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/attention/sparse_head.h"

namespace systole::hw {

/// Consecutive queries of a head that the engines work on at a time.
struct QueryTile {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Bytes that the engines keep of these queries while they work on them: a 32-bit score for every
/// cell that is computed, and a 32-bit sum for every output.
[[nodiscard]] std::uint64_t tile_bytes(const SparseHead& head, QueryTile tile,
                                       std::size_t value_dim);
/// The part of them that sums take.
[[nodiscard]] std::uint64_t tile_sum_bytes(QueryTile tile, std::size_t value_dim);

/// The head in as few tiles as fit `buffer_bytes` each, all but the last of one size. Throws
/// InputError if not even one query fits.
[[nodiscard]] std::vector<QueryTile> query_tiles(const SparseHead& head, std::size_t value_dim,
                                                 std::uint64_t buffer_bytes);

}  // namespace systole::hw

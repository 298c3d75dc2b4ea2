#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace systole::hw {

/// A row that a buffer has to bring in for an access.
struct RowFetch {
  std::size_t access;      ///< the access that needs it
  std::size_t free_after;  ///< accesses that must be over before its place is free; 0: it is empty
};

/// What a buffer of `capacity` rows (at least 1) fetches for these accesses, in their order: the
/// least recently used row makes room. A sequence of accesses is walked as a whole, so a fetch can
/// go out as early as its place is free: that is how far a buffer runs ahead. More capacity never
/// means more fetches (LRU is a stack algorithm, Mattson et al. 1970). `rows`: any names of rows.
/// Throws std::invalid_argument for a capacity of 0.
[[nodiscard]] std::vector<RowFetch> plan_fetches(const std::vector<std::uint32_t>& rows,
                                                 std::size_t capacity);

}  // namespace systole::hw

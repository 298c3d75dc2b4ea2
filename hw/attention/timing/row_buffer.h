#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace systole::hw {

/// What a buffer has to bring in for an access.
struct RowFetch {
  std::size_t access;      ///< the access that needs it
  std::size_t free_after;  ///< accesses that must be over before its places are free; 0: empty ones
  std::size_t kept;        ///< rows of the bundle that take a place, at least the one needed
};

/// What a buffer of `capacity` rows (at least 1) fetches for these accesses, in their order: the
/// row that is needed again last makes room (Belady 1966), of those that are not needed again the
/// least recently used. A sequence of accesses is walked as a whole, so a fetch can go out as early
/// as its place is free: that is how far a buffer runs ahead.
///
/// Rows come in bundles of `bundle` (at least 1): row r is one of bundle r / bundle. A fetch brings
/// all rows of one. That which is needed takes a place; the others do if there is one, or for a row
/// that is needed again later than they are. With single rows more capacity never means more
/// fetches (a stack algorithm, Mattson et al. 1970).
///
/// Throws std::invalid_argument for a capacity or a bundle of 0.
[[nodiscard]] std::vector<RowFetch> plan_fetches(const std::vector<std::uint32_t>& rows,
                                                 std::size_t capacity, std::uint32_t bundle = 1);

}  // namespace systole::hw

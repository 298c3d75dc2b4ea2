#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace systole::hw {

/// Which line does which items, and for how long.
struct LineSchedule {
  std::vector<std::vector<std::uint32_t>> items;  ///< [lines] items of a line, in its order
  std::vector<std::uint64_t> busy;                ///< [lines] sum of their costs

  /// Cost of the busiest line; 0 without lines.
  [[nodiscard]] std::uint64_t cycles() const;
};

/// List scheduling, longest item first: the next item goes to the line that is free first. Equal
/// costs are taken in the order of their index, equal lines by the lowest number, so the result is
/// unique. Items of cost 0 go to no line. Never more than 4/3 of the best schedule (Graham 1969).
/// Throws std::invalid_argument if there are items but no lines.
[[nodiscard]] LineSchedule schedule_longest_first(const std::vector<std::uint64_t>& costs,
                                                  std::size_t lines);

}  // namespace systole::hw

#include "hw/attention/timing/line_schedule.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>
#include <utility>

namespace systole::hw {

std::uint64_t LineSchedule::cycles() const {
  return busy.empty() ? 0 : *std::max_element(busy.begin(), busy.end());
}

LineSchedule schedule_longest_first(const std::vector<std::uint64_t>& costs, std::size_t lines) {
  std::vector<std::uint32_t> order;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] != 0) order.push_back(static_cast<std::uint32_t>(i));
  }
  if (!order.empty() && lines == 0) {
    throw std::invalid_argument("line schedule: expected at least 1 line");
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return costs[a] > costs[b]; });

  LineSchedule schedule{std::vector<std::vector<std::uint32_t>>(lines),
                        std::vector<std::uint64_t>(lines, 0)};
  using Free = std::pair<std::uint64_t, std::size_t>;  // cycle, line
  std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
  for (std::size_t line = 0; line < lines; ++line) free.emplace(0, line);
  for (const std::uint32_t item : order) {
    const std::size_t line = free.top().second;
    free.pop();
    schedule.items[line].push_back(item);
    schedule.busy[line] += costs[item];
    free.emplace(schedule.busy[line], line);
  }
  return schedule;
}

}  // namespace systole::hw

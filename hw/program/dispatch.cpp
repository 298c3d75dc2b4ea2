#include "hw/program/dispatch.h"

#include <algorithm>

namespace systole::hw {

Hazard hazard_between(const std::vector<Range>& older, const std::vector<Range>& younger,
                      bool both_compute) {
  Hazard result = Hazard::kNone;
  for (const Range& a : older) {
    for (const Range& b : younger) {
      if (!conflict(a, b)) continue;
      if (both_compute && a.space == Space::kAccumulator) continue;
      if (a.write) return Hazard::kAfterWrite;
      result = Hazard::kAfterRead;
    }
  }
  return result;
}

std::array<std::uint32_t, kStations> station_sizes(const Machine& machine) {
  return {machine.core.load_queue, machine.core.compute_queue, machine.core.store_queue};
}

std::vector<DispatchTimes> dispatch_times(const std::vector<DispatchItem>& items,
                                          const std::array<std::uint32_t, kStations>& sizes) {
  struct Station {
    std::vector<std::uint64_t> completions;  ///< of the commands that hold an entry
    std::uint64_t unit_free = 0;
  };
  std::array<Station, kStations> stations;
  std::vector<DispatchTimes> times(items.size());
  std::vector<std::size_t> flight;  // positions of commands that may not be complete, oldest first
  std::uint64_t dispatcher_free = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const DispatchItem& item = items[i];
    const auto unit = static_cast<std::size_t>(item.unit);
    Station& station = stations.at(unit);
    std::uint64_t room = std::max(item.arrival, dispatcher_free);
    if (station.completions.size() == sizes.at(unit)) {
      const auto first = std::min_element(station.completions.begin(), station.completions.end());
      room = std::max(room, *first);
      station.completions.erase(first);
    }
    DispatchTimes& time = times[i];
    time.dispatched = dispatcher_free = room + 1;
    time.started = std::max(time.dispatched, station.unit_free);
    flight.erase(std::remove_if(flight.begin(), flight.end(),
                                [&](std::size_t older) {
                                  return times[older].started + items[older].completed <=
                                         time.dispatched;
                                }),
                 flight.end());
    for (const std::size_t older : flight) {
      const DispatchItem& before = items[older];
      const bool both_compute = before.unit == Unit::kCompute && item.unit == Unit::kCompute;
      switch (hazard_between(before.ranges, item.ranges, both_compute)) {
        case Hazard::kNone:
          break;
        case Hazard::kAfterRead:
          time.started = std::max(time.started, times[older].started + before.released);
          break;
        case Hazard::kAfterWrite:
          time.started = std::max(time.started, times[older].started + before.completed);
          break;
      }
    }
    station.unit_free = time.started + item.occupied;
    station.completions.push_back(time.started + item.completed);
    flight.push_back(i);
  }
  return times;
}

}  // namespace systole::hw

#include "hw/program/dispatch.h"

#include <algorithm>
#include <utility>

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

bool writes_what_it_reads(const std::vector<Range>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& write) {
    return write.write && write.space == Space::kDram &&
           std::any_of(ranges.begin(), ranges.end(),
                       [&](const Range& read) { return !read.write && conflict(write, read); });
  });
}

bool writes_what_is_read(const std::vector<Range>& older, const std::vector<Range>& younger) {
  return std::any_of(younger.begin(), younger.end(), [&](const Range& b) {
    if (b.write || (b.space != Space::kScratchpad && b.space != Space::kDram)) return false;
    return std::any_of(older.begin(), older.end(),
                       [&b](const Range& a) { return a.write && conflict(a, b); });
  });
}

std::array<std::uint32_t, kStations> station_sizes(const Machine& machine) {
  return {machine.core.load_queue, machine.core.compute_queue, machine.core.store_queue};
}

bool has_unit_alone(const Command& command) {
  const auto* const load = command.as<cmd::Load>();
  return load != nullptr && load->pre;
}

DispatchTimes DispatchSchedule::next(Unit unit, std::vector<Range> ranges, std::uint64_t arrival,
                                     bool alone) {
  const auto slot = static_cast<std::size_t>(unit);
  Station& station = stations_.at(slot);
  std::uint64_t room = std::max(arrival, free_);
  if (station.completions.size() == sizes_.at(slot)) {
    const auto first = std::min_element(station.completions.begin(), station.completions.end());
    room = std::max(room, *first);
    station.completions.erase(first);
  }
  DispatchTimes time;
  time.dispatched = free_ = room + 1;
  time.started = std::max(time.dispatched, station.unit_free);
  time.readable = time.dispatched;
  flight_.erase(
      std::remove_if(flight_.begin(), flight_.end(),
                     [&](const Flight& older) { return older.completed <= time.dispatched; }),
      flight_.end());
  for (const Flight& older : flight_) {
    if (alone && older.unit == unit) time.started = std::max(time.started, older.completed);
    const bool both_compute = older.unit == Unit::kCompute && unit == Unit::kCompute;
    switch (hazard_between(older.ranges, ranges, both_compute)) {
      case Hazard::kNone:
        break;
      case Hazard::kAfterRead:
        time.started = std::max(time.started, older.released);
        break;
      case Hazard::kAfterWrite:
        time.started = std::max(time.started, older.completed);
        if (writes_what_is_read(older.ranges, ranges)) {
          time.readable = std::max(time.readable, older.completed);
        }
        break;
    }
  }
  flight_.push_back({unit, std::move(ranges), time.started, 0, 0});
  return time;
}

void DispatchSchedule::run(std::uint64_t occupied, std::uint64_t released,
                           std::uint64_t completed) {
  Flight& last = flight_.back();
  last.released = last.started + released;
  last.completed = last.started + completed;
  Station& station = stations_.at(static_cast<std::size_t>(last.unit));
  station.unit_free = last.started + occupied;
  station.completions.push_back(last.completed);
}

std::vector<DispatchTimes> dispatch_times(const std::vector<DispatchItem>& items,
                                          const std::array<std::uint32_t, kStations>& sizes) {
  DispatchSchedule schedule(sizes);
  std::vector<DispatchTimes> times;
  for (const DispatchItem& item : items) {
    times.push_back(schedule.next(item.unit, item.ranges, item.arrival, item.alone));
    schedule.run(item.occupied, item.released, item.completed);
  }
  return times;
}

}  // namespace systole::hw

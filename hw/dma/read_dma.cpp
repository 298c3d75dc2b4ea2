#include "hw/dma/read_dma.h"

#include <algorithm>

namespace systole::hw {
namespace {

/// The first cycle from `earliest` on in which fewer than `most` of these have not completed.
std::uint64_t room_for_command(const std::vector<ReadTimes>& times, std::uint32_t most,
                               std::uint64_t earliest) {
  if (times.size() < most) return earliest;
  std::vector<std::uint64_t> ends;
  for (const ReadTimes& time : times) ends.push_back(time.completed);
  std::nth_element(ends.begin(), ends.end() - most, ends.end());
  return std::max(earliest, *(ends.end() - most));
}

}  // namespace

std::size_t ReadPort::next_slot() const {
  if (params_.slots == SlotOrder::kIssue) return issued_ % slots_.size();
  return static_cast<std::size_t>(std::min_element(slots_.begin(), slots_.end()) - slots_.begin());
}

ReadTimes ReadPort::run(const RowRead& command, std::size_t position, std::uint64_t started,
                        std::vector<ReadRequest>& requests) {
  ReadTimes times{started, started, 0};
  for (std::uint64_t row = 0; row < command.rows; ++row) {
    const std::uint64_t address = command.address + row * command.pitch;
    for (std::uint64_t at = 0; at < command.bytes;) {
      const std::size_t slot = next_slot();
      ReadRequest request;
      request.command = position;
      request.address = address + at;
      request.bytes = params_.cut.length(address, at, command.bytes);
      request.to = command.to + row * command.to_pitch + at;
      request.sums = command.sums;
      request.issued = std::max(times.released, slots_[slot]);
      while (!memory_.takes(request.issued)) ++request.issued;
      request.done = memory_.done(request);
      const bool late = request.sums && memory_.placed != nullptr;
      slots_[slot] = late ? memory_.placed(request) : request.done;
      ++issued_;
      times.completed = std::max(times.completed, slots_[slot]);
      times.released = request.issued + 1;
      at += request.bytes;
      requests.push_back(request);
    }
  }
  return times;
}

ReadSchedule read_schedule(const std::vector<RowRead>& commands, const ReadParams& params,
                           const ReadMemory& memory) {
  ReadSchedule schedule;
  ReadPort port(params, memory);
  std::uint64_t free = 0;
  for (const RowRead& command : commands) {
    const std::uint64_t started =
        room_for_command(schedule.times, params.commands, std::max(free, command.arrival));
    const std::size_t position = schedule.times.size();
    schedule.times.push_back(port.run(command, position, started, schedule.requests));
    free = schedule.times.back().released;
  }
  return schedule;
}

std::vector<LocalWrite> local_writes(const ReadRequest& request, std::uint64_t beat_bytes) {
  std::vector<LocalWrite> writes;
  for (std::uint64_t at = 0; at < request.bytes;) {
    const std::uint64_t bytes =
        std::min(beat_bytes - (request.address + at) % beat_bytes, request.bytes - at);
    writes.push_back({0, request.to + at, bytes, request.address + at, request.sums});
    at += bytes;
  }
  for (std::size_t i = 0; i < writes.size(); ++i) {
    writes[i].cycle = request.done - (writes.size() - 1 - i);
  }
  return writes;
}

}  // namespace systole::hw

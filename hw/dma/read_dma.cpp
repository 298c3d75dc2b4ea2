#include "hw/dma/read_dma.h"

namespace systole::hw {
namespace {

/// The slots of the requests in flight: for each the cycle with which it is done.
class Slots {
 public:
  Slots(std::uint32_t slots, SlotOrder order) : done_(slots, 0), order_(order) {}

  /// Chooses the slot of the next request; returns the cycle from which it is free.
  [[nodiscard]] std::uint64_t choose() {
    const auto first = order_ == SlotOrder::kIssue
                           ? done_.begin() + static_cast<std::ptrdiff_t>(issued_ % done_.size())
                           : std::min_element(done_.begin(), done_.end());
    chosen_ = static_cast<std::size_t>(first - done_.begin());
    return *first;
  }
  /// The request in the slot that was chosen.
  void take(std::uint64_t done) {
    done_[chosen_] = done;
    ++issued_;
  }

 private:
  std::vector<std::uint64_t> done_;
  const SlotOrder order_;
  std::size_t chosen_ = 0, issued_ = 0;
};

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

ReadSchedule read_schedule(const std::vector<RowRead>& commands, const ReadParams& params,
                           const ReadMemory& memory) {
  ReadSchedule schedule;
  Slots slots(params.outstanding, params.slots);
  std::uint64_t free = 0;  // cycle from which the port can issue
  for (const RowRead& command : commands) {
    ReadTimes time;
    time.started =
        room_for_command(schedule.times, params.commands, std::max(free, command.arrival));
    free = time.started;
    for (std::uint64_t row = 0; row < command.rows; ++row) {
      const std::uint64_t address = command.address + row * command.pitch;
      for (std::uint64_t at = 0; at < command.bytes;) {
        ReadRequest request;
        request.command = schedule.times.size();
        request.address = address + at;
        request.bytes = params.cut.length(address, at, command.bytes);
        request.to = command.to + row * command.to_pitch + at;
        request.issued = std::max(free, slots.choose());
        while (!memory.takes(request.issued)) ++request.issued;
        request.done = memory.done(request);
        slots.take(request.done);
        time.completed = std::max(time.completed, request.done);
        free = request.issued + 1;
        at += request.bytes;
        schedule.requests.push_back(request);
      }
    }
    time.released = free;
    schedule.times.push_back(time);
  }
  return schedule;
}

std::vector<LocalWrite> local_writes(const ReadRequest& request, std::uint64_t beat_bytes) {
  std::vector<LocalWrite> writes;
  for (std::uint64_t at = 0; at < request.bytes;) {
    const std::uint64_t bytes =
        std::min(beat_bytes - (request.address + at) % beat_bytes, request.bytes - at);
    writes.push_back({0, request.to + at, bytes, request.address + at});
    at += bytes;
  }
  for (std::size_t i = 0; i < writes.size(); ++i) {
    writes[i].cycle = request.done - (writes.size() - 1 - i);
  }
  return writes;
}

}  // namespace systole::hw

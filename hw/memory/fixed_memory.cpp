#include "hw/memory/fixed_memory.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace systole::hw {

double memory_rate(const Machine& machine) {
  if (has_fixed_memory(machine)) {
    return machine.bus.width_bytes * static_cast<double>(machine.bus.clock_mhz) /
           machine.memory.read_beat_cycles;
  }
  return static_cast<double>(machine.dram.channels) * machine.dram.bus_bytes *
         machine.dram.mega_transfers;
}

std::uint64_t memory_grain(const Machine& machine) {
  if (has_fixed_memory(machine)) return machine.bus.width_bytes;
  return std::uint64_t{machine.dram.bus_bytes} * machine.dram.burst_length;
}

FixedMemory::FixedMemory(const Machine::Memory& params, std::uint32_t width_bytes)
    : params_(params),
      width_(width_bytes),
      accepted_from_(params.queue),
      answers_("cycles", {{"latency", "a request waits for its latency to pass"},
                          {"interval", "between two beats of answers"}}) {
  if (width_bytes == 0 || params.queue == 0 || params.read_beat_cycles == 0) {
    throw std::invalid_argument("memory: width, read_beat_cycles and queue: must be at least 1");
  }
}

FixedMemory::Answer FixedMemory::accept(std::uint64_t cycle, bool write, std::uint64_t address,
                                        std::uint64_t bytes) {
  if (bytes == 0) throw std::invalid_argument("memory: a request of no bytes");
  const std::uint64_t interval = params_.read_beat_cycles;
  const std::uint64_t accepted = std::max(cycle, accepted_from_[oldest_]);
  const std::uint64_t count = write ? 1 : beats(address, bytes);
  Answer answer;
  answer.first = std::max(accepted + params_.latency, next_first_);
  answer.last = answer.first + (count - 1) * interval;
  accepted_from_[oldest_] = answer.last + 1;
  oldest_ = (oldest_ + 1) % accepted_from_.size();

  answers_.idle_until(cycle);
  answers_.stall_until(std::min(answer.first, next_first_), kInterval);
  answers_.stall_until(answer.first, kLatency);
  for (std::uint64_t beat = answer.first; beat <= answer.last; beat += interval) {
    answers_.stall_until(beat, kInterval);
    answers_.busy_until(beat + 1);
  }
  next_first_ = answer.last + interval;

  ++(write ? writes_ : reads_);
  (write ? written_bytes_ : read_bytes_) += bytes;
  return answer;
}

void FixedMemory::finish(std::uint64_t total) { answers_.finish(std::max(total, answers_.now())); }

BlockReport FixedMemory::report(std::string name) const {
  return {std::move(name),
          {},
          {{"reads", "requests", "read requests", reads_},
           {"writes", "requests", "write requests", writes_},
           {"read_bytes", "bytes", "bytes read", read_bytes_},
           {"written_bytes", "bytes", "bytes written", written_bytes_}},
          {{"answers", answers_.time(), {}, {}}}};
}

}  // namespace systole::hw

#pragma once

#include <cstdint>
#include <deque>

#include "hw/machine/machine.h"

namespace systole::hw {

/// A memory of stated latency, in cycles of the bus: no banks, rows or refresh.
///
/// An answer may begin `latency` cycles after the last beat of its request, and comes strictly in
/// the order of the requests, reads and writes in one queue: its first beat is at the earliest
/// `read_beat_cycles` after the last beat of the answer before it. A read of n beats returns n
/// beats, `read_beat_cycles` apart, a write one. At most `queue` requests wait for their answers; a
/// further one is accepted when the oldest has been answered.
class FixedMemory {
 public:
  FixedMemory(const Machine::Memory& params, std::uint32_t beat_bytes)
      : params_(params), beat_bytes_(beat_bytes) {}

  struct Answer {
    std::uint64_t first = 0, last = 0;  ///< cycles of its beats
    std::uint64_t beats = 1;
  };
  /// The answer to a request whose last beat arrives at `cycle`, not before those so far.
  Answer accept(std::uint64_t cycle, bool write, std::uint32_t bytes);

 private:
  const Machine::Memory params_;
  const std::uint32_t beat_bytes_;
  std::deque<std::uint64_t> waiting_;  ///< cycles in which answers end
  std::uint64_t next_ = 0;             ///< earliest cycle of a beat
};

}  // namespace systole::hw

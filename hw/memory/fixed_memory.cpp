#include "hw/memory/fixed_memory.h"

#include <algorithm>

#include "base/round.h"

namespace systole::hw {

FixedMemory::Answer FixedMemory::accept(std::uint64_t cycle, bool write, std::uint32_t bytes) {
  while (!waiting_.empty() && waiting_.front() < cycle) waiting_.pop_front();
  if (waiting_.size() >= params_.queue) {
    cycle = std::max(cycle, waiting_[waiting_.size() - params_.queue] + 1);
  }
  Answer answer;
  answer.beats = write ? 1 : std::max<std::uint64_t>(ceil_div(bytes, beat_bytes_), 1);
  answer.first = std::max(cycle + params_.latency, next_);
  answer.last = answer.first + (answer.beats - 1) * params_.read_beat_cycles;
  next_ = answer.last + params_.read_beat_cycles;
  waiting_.push_back(answer.last);
  return answer;
}

}  // namespace systole::hw

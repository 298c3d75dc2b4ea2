#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/program/program.h"

namespace systole::mapper {

/// What the loops of a library call take: hw::loop::LoopCore on a memory of one latency, that of an
/// idle bus and a closed row of DRAM, or the stated one of a fixed memory. Calls of one shape are
/// timed once.
class ReplayLoops {
 public:
  explicit ReplayLoops(const hw::Machine& machine);
  /// Cycles of the loops from `first` on, up to the next command that is none or begins another
  /// call; moves `first` there.
  [[nodiscard]] std::uint64_t cycles(const hw::Program& program, std::size_t& first);

 private:
  hw::Machine machine_;
  std::uint64_t latency_;
  /// By the fields that decide about time.
  std::map<std::vector<std::uint64_t>, std::uint64_t> known_;
};

}  // namespace systole::mapper

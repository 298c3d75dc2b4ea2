#pragma once

#include <cstdint>
#include <functional>

#include "hw/program/program.h"

namespace systole::tlm_model {

/// What happened to one command, in core cycles since the simulation began.
struct CommandTrace {
  std::uint32_t index = 0;  ///< position in the program
  hw::Unit unit = hw::Unit::kLoad;
  hw::Opcode opcode = hw::Opcode::kEnd;
  std::uint32_t op = 0;
  std::uint64_t dispatched = 0;
  std::uint64_t started = 0;
  std::uint64_t released = 0;   ///< the unit took its next command
  std::uint64_t completed = 0;  ///< the results were in memory
  bool was_blocked = false;
  std::uint32_t blocker = 0;  ///< command that cleared the last hazard, if was_blocked
};

/// Watches a core run: timelines, checks, progress. Called in the order of completion.
using Observer = std::function<void(const CommandTrace&)>;

/// A module some of whose traced values follow from its state and the present time. A recorder
/// calls sample() before it looks; without one the module spends nothing on them.
class Sampled {
 public:
  virtual ~Sampled() = default;
  virtual void sample() = 0;
};

}  // namespace systole::tlm_model

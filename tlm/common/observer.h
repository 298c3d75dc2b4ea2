#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>

#include "base/accounting.h"
#include "hw/energy.h"
#include "hw/program/program.h"

namespace systole::tlm_model {

/// The way of a command to its dispatch, in core cycles since the simulation began. The processor
/// does one thing after the other, so each time is at least the one before it.
struct DispatchSteps {
  static constexpr std::uint32_t kNoCommand = 0xffffffff;
  std::uint64_t begun = 0;              ///< the processor had nothing else to do
  std::uint64_t fetched = 0;            ///< the command had arrived from memory
  std::uint64_t fenced = 0;             ///< what has to end before it had ended
  std::uint64_t issued = 0;             ///< the host had sent it
  std::uint64_t room = 0;               ///< its reservation station had a free entry
  std::uint32_t fence_by = kNoCommand;  ///< the last command that `fenced` waited for
  std::uint32_t room_by = kNoCommand;   ///< the command that made room
};

/// Cycles by cause, in the order of the account of a unit.
using Stalls = std::array<std::uint32_t, 8>;

/// The stalls of an account since a moment.
class StallMark {
 public:
  StallMark() = default;
  explicit StallMark(const hw::TimeAccount& account) {
    for (std::size_t i = 0; i < account.stalled.size(); ++i) at_.at(i) = account.stalled[i].time;
  }
  [[nodiscard]] Stalls since(const hw::TimeAccount& account) const {
    Stalls stalls{};
    for (std::size_t i = 0; i < account.stalled.size(); ++i) {
      stalls[i] = static_cast<std::uint32_t>(account.stalled[i].time - at_[i]);
    }
    return stalls;
  }

 private:
  std::array<std::uint64_t, std::tuple_size_v<Stalls>> at_{};
};

/// What happened to one command, in core cycles since the simulation began.
struct CommandTrace {
  std::uint32_t index = 0;  ///< position in the program
  hw::Unit unit = hw::Unit::kLoad;
  hw::Opcode opcode = hw::Opcode::kEnd;
  std::uint32_t op = 0;
  std::uint64_t dispatched = 0;
  std::uint64_t started = 0;
  std::uint64_t released = 0;  ///< the unit took its next command
  /// The operands had been read for the last time: commands that overwrite them may start.
  std::uint64_t operands_read = 0;
  std::uint64_t completed = 0;  ///< the results were in memory
  bool was_blocked = false;
  std::uint32_t blocker = 0;      ///< command that cleared the last hazard, if was_blocked
  bool blocker_released = false;  ///< ... when it had read its operands, not when it was completed
  std::uint64_t ready = 0;        ///< the last hazard was cleared
  DispatchSteps dispatch;
  /// Of the cycles from `started` to `released`; what is left of them the unit was busy. Of a loop,
  /// since the loop before it was completed.
  Stalls stalled{};
  /// What it did, as far as that costs energy; no time, and of the memory the bytes on the bus
  /// alone.
  hw::EnergyEvents events;
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

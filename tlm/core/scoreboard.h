#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "hw/program/program.h"
#include "tlm/common/observer.h"

namespace systole::tlm_model {

/// A command between dispatch and completion.
struct Entry {
  hw::Command command;
  std::uint32_t index = 0;  ///< position in the program
  hw::Unit unit = hw::Unit::kLoad;
  std::uint64_t dispatched = 0;     ///< cycle
  std::uint64_t ready = 0;          ///< cycle at which the last hazard cleared
  std::uint64_t readable = 0;       ///< hw::DispatchTimes, of a command of the store unit
  std::uint64_t operands_read = 0;  ///< cycle of release(), 0 before it
  hw::Unit last_blocker = hw::Unit::kLoad;
  std::uint32_t loop = 0;           ///< the loop it belongs to, counted from the program's begin
  std::uint32_t blocker_index = 0;  ///< command that cleared the last hazard
  bool blocker_released = false;    ///< ... by its release
  bool was_blocked = false;
  DispatchSteps steps;
  Stalls stalled{};         ///< see CommandTrace
  hw::EnergyEvents events;  ///< see CommandTrace
  CommandTrace trace;       ///< once it is known when it completes

 private:
  friend class Scoreboard;
  std::vector<hw::Range> ranges_;
  unsigned waiting_ = 0;
  unsigned writers_ = 0;  ///< older commands in flight that write what it reads: `readers_` of them
  bool released_ = false;
  std::vector<Entry*> on_release_, on_complete_;
  std::vector<Entry*> readers_;  ///< of those on_complete_, the ones that read what it writes

  /// As new, but for what dispatch() sets. Lists keep their room.
  void renew() noexcept {
    operands_read = 0;
    last_blocker = hw::Unit::kLoad;
    loop = blocker_index = 0;
    blocker_released = was_blocked = released_ = false;
    steps = {};
    stalled = {};
    events = {};
    ranges_.clear();
    waiting_ = writers_ = 0;
    on_release_.clear();
    on_complete_.clear();
    readers_.clear();
  }

 public:
  [[nodiscard]] bool is_ready() const noexcept { return waiting_ == 0; }
  /// Whether nothing in flight writes what a command of the store unit reads besides sums.
  [[nodiscard]] bool is_readable() const noexcept { return writers_ == 0; }
};

/// Hazards by address range. A command waits for every older one in flight whose ranges conflict
/// with its own: until that one has finished reading (write after read), or has completed (read or
/// write after write). Matmuls do not wait for each other's accumulator writes: the array
/// accumulates in order.
class Scoreboard {
 public:
  explicit Scoreboard(const hw::Program& program) : program_(program) {}

  /// Takes a command in program order.
  Entry* dispatch(const hw::Command& command, std::uint32_t index, std::uint64_t cycle);
  /// The command reads no operand any more: those that overwrite its sources may go on.
  /// Returns the commands that became ready, until the next call.
  const std::vector<Entry*>& release(Entry* entry, std::uint64_t cycle);
  /// The command's results are in memory. The entry is gone afterwards. Implies release().
  const std::vector<Entry*>& complete(Entry* entry, std::uint64_t cycle);

  [[nodiscard]] bool empty() const noexcept { return flight_.empty(); }
  [[nodiscard]] unsigned in_flight(hw::Unit unit) const noexcept {
    return per_unit_[static_cast<std::size_t>(unit)];
  }

 private:
  /// An entry as new. Those that are gone are used again.
  [[nodiscard]] std::unique_ptr<Entry> take();
  void wake(Entry* blocker, bool released, std::vector<Entry*>& waiters, std::uint64_t cycle);

  const hw::Program& program_;
  std::deque<std::unique_ptr<Entry>> flight_;  ///< oldest first
  std::vector<std::unique_ptr<Entry>> gone_;
  std::vector<Entry*> ready_;  ///< by the last call
  unsigned per_unit_[hw::kUnits] = {};
};

}  // namespace systole::tlm_model

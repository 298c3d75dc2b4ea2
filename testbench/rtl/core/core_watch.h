#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "testbench/rtl/core/core_rtl.h"

/// What the pins of a Verilated core say of commands.
namespace systole::testbench {

/// Takes the cycles of commands from the pins of a core.
class CoreWatch {
 public:
  /// Writes into `commands`, one for each command of the program but `end`. `expected`: see
  /// CorePorts::expect().
  CoreWatch(const CoreSize& size, std::vector<CoreCommandTimes>& commands,
            const std::vector<CoreCommandTimes>* expected = nullptr)
      : loads_(size.stations[0]),
        matmuls_(size.stations[1]),
        commands_(commands),
        of_entry_(size.entries()),
        expected_(expected) {
    while ((std::size_t{1} << entry_bits_) < of_entry_.size()) ++entry_bits_;
  }

  /// A cycle whose pins have settled. `on_start(unit)`: the unit has started its current() command.
  /// Returns whether anything happened.
  template <typename Core, typename OnStart>
  bool cycle(const Core& core, std::uint64_t now, const OnStart& on_start) {
    for (std::size_t unit = 0; unit < hw::kStations; ++unit) {
      if ((core.started_o >> unit & 1U) == 0) continue;
      const std::size_t entry =
          std::size_t{core.start_entry_o} >> (unit * entry_bits_) & ((1U << entry_bits_) - 1);
      current_.at(unit) = of_entry_.at(entry);
      CoreCommandTimes& times = commands_.at(current_.at(unit));
      times.started = times.begun = now;
      if (unit == kArray) matmuls_in_.push_back(current_[kArray]);
      on_start(unit);
    }
    for (std::size_t entry = 0; entry < of_entry_.size(); ++entry) {
      const bool load = entry < loads_;
      if (!load && (core.released_o >> entry & 1U) != 0) {
        commands_.at(of_entry_[entry]).released = now + 1;
        if (entry < loads_ + matmuls_) release_matmul(now);
      }
      if ((core.completed_o >> entry & 1U) == 0) continue;
      complete(of_entry_[entry], now + 1);
    }
    if (core.host_done_o != 0) complete(called_, now);
    if (core.calls_o != 0) {
      commands_.at(next_).started = commands_.at(next_).begun = now + 1;
      called_ = next_;
      dispatch(now + 1);
    }
    if (core.entry_o != 0) {
      std::size_t entry = 0;
      while ((core.entry_o >> entry & 1U) == 0) ++entry;
      of_entry_.at(entry) = next_;
      dispatch(now + 1);
    }
    return core.started_o != 0 || core.completed_o != 0 || core.entry_o != 0 ||
           core.host_done_o != 0;
  }

  /// The command that started last at a unit.
  [[nodiscard]] std::size_t current(std::size_t unit) const { return current_.at(unit); }
  /// The command that is dispatched next.
  [[nodiscard]] std::size_t next() const { return next_; }
  [[nodiscard]] const std::optional<CommandDifference>& difference() const { return difference_; }

 private:
  static constexpr std::size_t kArray = 1;  ///< a unit

  /// The oldest matmul has left the array's inputs: the next one, if it has started, has them.
  void release_matmul(std::uint64_t now) {
    matmuls_in_.pop_front();
    if (!matmuls_in_.empty()) commands_.at(matmuls_in_.front()).begun = now;
  }
  void dispatch(std::uint64_t cycle) {
    commands_.at(next_).dispatched = cycle;
    compare(next_++, CommandDifference::Moment::kDispatched, &CoreCommandTimes::dispatched, cycle);
  }
  void complete(std::size_t command, std::uint64_t cycle) {
    CoreCommandTimes& times = commands_.at(command);
    times.completed = cycle;
    compare(command, CommandDifference::Moment::kBegun, &CoreCommandTimes::begun, times.begun);
    compare(command, CommandDifference::Moment::kCompleted, &CoreCommandTimes::completed, cycle);
  }
  void compare(std::size_t command, CommandDifference::Moment moment,
               std::uint64_t CoreCommandTimes::*of, std::uint64_t found) {
    if (expected_ == nullptr || difference_ || (*expected_)[command].*of == found) return;
    difference_ = {command, moment, found, (*expected_)[command].*of};
  }

  const std::size_t loads_, matmuls_;  ///< entries of their stations
  unsigned entry_bits_ = 0;
  std::vector<CoreCommandTimes>& commands_;
  std::vector<std::size_t> of_entry_;                 ///< command
  std::array<std::size_t, hw::kStations> current_{};  ///< by unit
  std::deque<std::size_t> matmuls_in_;                ///< commands whose operands are being read
  std::size_t next_ = 0;
  std::size_t called_ = 0;  ///< for the host
  const std::vector<CoreCommandTimes>* const expected_;
  std::optional<CommandDifference> difference_;
};

inline std::invalid_argument stop_at(std::size_t command) {
  return std::invalid_argument("command " + std::to_string(command) + " is none for the RTL");
}

}  // namespace systole::testbench

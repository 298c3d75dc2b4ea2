#pragma once

#include <verilated.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "testbench/rtl/core/core_rtl.h"

/// What those who drive a Verilated core share: its ports' pins, and what it says of commands.
namespace systole::testbench {

/// The pins of a port that reads, by the names of that for loads.
struct ReadPins {
  ReadPins* operator->() { return this; }

  CData &ar_ready_i, &r_valid_i, &r_id_i, &r_resp_i, &r_last_i;
  IData& r_data_i;
  CData &ar_valid_o, &ar_id_o;
  QData& ar_addr_o;
  CData &ar_len_o, &ar_size_o, &ar_burst_o, &r_ready_o;
};

template <typename Core>
ReadPins fetch_pins(Core& core) {
  return {core.fetch_ar_ready_i, core.fetch_r_valid_i, core.fetch_r_id_i,     core.fetch_r_resp_i,
          core.fetch_r_last_i,   core.fetch_r_data_i,  core.fetch_ar_valid_o, core.fetch_ar_id_o,
          core.fetch_ar_addr_o,  core.fetch_ar_len_o,  core.fetch_ar_size_o,  core.fetch_ar_burst_o,
          core.fetch_r_ready_o};
}

template <typename Core>
ReadPins operand_pins(Core& core) {
  return {core.operand_ar_ready_i, core.operand_r_valid_i, core.operand_r_id_i,
          core.operand_r_resp_i,   core.operand_r_last_i,  core.operand_r_data_i,
          core.operand_ar_valid_o, core.operand_ar_id_o,   core.operand_ar_addr_o,
          core.operand_ar_len_o,   core.operand_ar_size_o, core.operand_ar_burst_o,
          core.operand_r_ready_o};
}

/// Takes the cycles of commands from the pins of a core.
class CoreWatch {
 public:
  /// Writes into `commands`, one for each command of the program but `end`.
  explicit CoreWatch(std::vector<CoreCommandTimes>& commands) : commands_(commands) {}

  /// A cycle whose pins have settled. `on_start(unit)`: the unit has started its current() command.
  /// Returns whether anything happened.
  template <typename Core, typename OnStart>
  bool cycle(const Core& core, std::uint64_t now, const OnStart& on_start) {
    for (std::size_t unit = 0; unit < hw::kStations; ++unit) {
      if ((core.started_o >> unit & 1U) == 0) continue;
      const std::size_t entry =
          std::size_t{core.start_entry_o} >> (unit * kEntryBits) & ((1U << kEntryBits) - 1);
      current_.at(unit) = of_entry_.at(entry);
      commands_.at(current_.at(unit)).started = now;
      on_start(unit);
    }
    for (std::size_t entry = 0; entry < of_entry_.size(); ++entry) {
      const bool load = entry < CoreRtl::kStationSizes[0];
      if (!load && (core.released_o >> entry & 1U) != 0) {
        commands_.at(of_entry_[entry]).released = now + 1;
      }
      if ((core.completed_o >> entry & 1U) == 0) continue;
      commands_.at(of_entry_[entry]).completed = now + 1;
    }
    if (core.entry_o != 0) {
      std::size_t entry = 0;
      while ((core.entry_o >> entry & 1U) == 0) ++entry;
      of_entry_.at(entry) = next_;
      commands_.at(next_++).dispatched = now + 1;
    }
    return core.started_o != 0 || core.completed_o != 0 || core.entry_o != 0;
  }

  /// The command that started last at a unit.
  [[nodiscard]] std::size_t current(std::size_t unit) const { return current_.at(unit); }
  /// The command that is dispatched next.
  [[nodiscard]] std::size_t next() const { return next_; }

 private:
  static constexpr unsigned kEntryBits = 4;

  std::vector<CoreCommandTimes>& commands_;
  std::array<std::size_t,
             CoreRtl::kStationSizes[0] + CoreRtl::kStationSizes[1] + CoreRtl::kStationSizes[2]>
      of_entry_{};                                    ///< command
  std::array<std::size_t, hw::kStations> current_{};  ///< by unit
  std::size_t next_ = 0;
};

}  // namespace systole::testbench

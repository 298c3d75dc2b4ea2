#pragma once

#include <verilated.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "testbench/rtl/core/core_rtl.h"

/// What those who drive a Verilated core share: its ports' pins, and what it says of commands.
namespace systole::testbench {

/// The pins of a port that reads, by the names of that for loads. `Data`: a beat.
template <typename Data>
struct ReadPins {
  ReadPins* operator->() { return this; }

  CData &ar_ready_i, &r_valid_i, &r_id_i, &r_resp_i, &r_last_i;
  Data& r_data_i;
  CData &ar_valid_o, &ar_id_o;
  QData& ar_addr_o;
  CData &ar_len_o, &ar_size_o, &ar_burst_o, &r_ready_o;
};

template <typename Core>
using BeatOf = std::remove_reference_t<decltype(std::declval<Core&>().r_data_i)>;

template <typename Core>
ReadPins<BeatOf<Core>> fetch_pins(Core& core) {
  return {core.fetch_ar_ready_i, core.fetch_r_valid_i, core.fetch_r_id_i,     core.fetch_r_resp_i,
          core.fetch_r_last_i,   core.fetch_r_data_i,  core.fetch_ar_valid_o, core.fetch_ar_id_o,
          core.fetch_ar_addr_o,  core.fetch_ar_len_o,  core.fetch_ar_size_o,  core.fetch_ar_burst_o,
          core.fetch_r_ready_o};
}

template <typename Core>
ReadPins<BeatOf<Core>> operand_pins(Core& core) {
  return {core.operand_ar_ready_i, core.operand_r_valid_i, core.operand_r_id_i,
          core.operand_r_resp_i,   core.operand_r_last_i,  core.operand_r_data_i,
          core.operand_ar_valid_o, core.operand_ar_id_o,   core.operand_ar_addr_o,
          core.operand_ar_len_o,   core.operand_ar_size_o, core.operand_ar_burst_o,
          core.operand_r_ready_o};
}

/// The inputs of a core at which nothing happens.
template <typename Core>
void set_core_idle(Core& core) {
  core.start_i = 0;
  core.fetch_ar_ready_i = core.fetch_r_valid_i = core.ar_ready_i = core.r_valid_i = 0;
  core.operand_ar_ready_i = core.operand_r_valid_i = 0;
  core.aw_ready_i = core.w_ready_i = core.b_valid_i = 0;
  core.row_bytes_i = 0;
}

/// The quasi-static inputs of a program.
template <typename Core>
void set_core_case(Core& core, const CoreCase& test) {
  core.in_order_i = test.slots == hw::SlotOrder::kIssue;
  core.overlap_i = static_cast<CData>(test.overlap);
  core.address_i = test.address;
}

/// Takes the cycles of commands from the pins of a core.
class CoreWatch {
 public:
  /// Writes into `commands`, one for each command of the program but `end`.
  CoreWatch(const CoreSize& size, std::vector<CoreCommandTimes>& commands)
      : loads_(size.stations[0]), commands_(commands), of_entry_(size.entries()) {
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
      commands_.at(current_.at(unit)).started = now;
      on_start(unit);
    }
    for (std::size_t entry = 0; entry < of_entry_.size(); ++entry) {
      const bool load = entry < loads_;
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
  const std::size_t loads_;  ///< entries of the station for loads
  unsigned entry_bits_ = 0;
  std::vector<CoreCommandTimes>& commands_;
  std::vector<std::size_t> of_entry_;                 ///< command
  std::array<std::size_t, hw::kStations> current_{};  ///< by unit
  std::size_t next_ = 0;
};

}  // namespace systole::testbench

#pragma once

#include <verilated.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "testbench/rtl/core/core_ports.h"
#include "testbench/rtl/core/core_rtl.h"
#include "testbench/rtl/dma/memory_side.h"
#include "testbench/rtl/drive/axi_manager_pins.h"
#include "testbench/rtl/drive/verilated_dut.h"

/// The Verilated core: its pins, what drives them, and what it says of commands.
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

/// One program, cycle by cycle, in a Verilated core.
template <typename Model>
class CoreSession {
 public:
  CoreSession(VerilatedDut<Model>& dut, const CoreSize& size, const CoreCase& test,
              const CoreMemory& ports, std::vector<std::uint8_t>& memory, const CoreRun* expected)
      : dut_(dut),
        begin_(dut.cycles()),
        fetch_pins_(fetch_pins(*dut)),
        operand_pins_(operand_pins(*dut)),
        expected_(expected),
        fetches_(size.lanes, size.outstanding, ports.program, memory),
        loads_(size.lanes, size.outstanding, ports.loads, memory),
        operands_(size.lanes, size.outstanding, ports.operands, memory),
        stores_(size.lanes, size.outstanding, ports.stores, memory),
        run_(commands_of(test)),
        watch_(size, run_.commands) {}

  CoreRun run() {
    dut_.show_operation(words_.data(), 0);
    step();  // done_o is that of the program before
    while (dut_->done_o == 0) step();
    run_.done = dut_.cycles() - begin_;
    run_.fetches = std::move(fetches_.requests());
    run_.reads = std::move(loads_.requests());
    run_.operands = std::move(operands_.requests());
    run_.writes = std::move(stores_.requests());
    return std::move(run_);
  }

 private:
  static CoreRun commands_of(const CoreCase& test) {
    CoreRun run;
    run.commands.resize(test.program.commands.size() - 1);
    return run;
  }

  void cycle(bool moved) {
    dut_.show_cycle(dut_.cycles());
    dut_.show_words(words_.data(), words_.size());
    dut_.end_cycle(moved);
  }

  void step() {
    const std::uint64_t now = dut_.cycles() - begin_;
    dut_->start_i = now == 0;
    fetches_.drive(fetch_pins_, now);
    loads_.drive(dut_, now);
    operands_.drive(operand_pins_, now);
    stores_.drive(dut_, now);
    dut_.settle();
    if (dut_->fault_o) {
      throw std::invalid_argument("command " + std::to_string(watch_.next()) +
                                  " is none for the RTL");
    }
    const bool moved = watch_.cycle(*dut_, now, [this](std::size_t unit) { show(unit); });
    fetches_.take(fetch_pins_, now, 0);
    loads_.take(dut_, now, watch_.current(0));
    operands_.take(operand_pins_, now, 0);
    stores_.take(dut_, now, watch_.current(2));
    dut_.settle();
    cycle(moved || !fetches_.idle() || !loads_.idle() || !operands_.idle() || !stores_.idle());
    dut_.settle();
  }

  void show(std::size_t unit) {
    if (expected_ == nullptr) return;
    const CoreCommandTimes& times = expected_->commands[watch_.current(unit)];
    words_[2 * unit] = static_cast<std::int32_t>(times.dispatched);
    words_[2 * unit + 1] = static_cast<std::int32_t>(times.started);
  }

  VerilatedDut<Model>& dut_;
  const std::uint64_t begin_;
  ReadPins<BeatOf<Model>> fetch_pins_, operand_pins_;
  const CoreRun* const expected_;
  ReadSide fetches_, loads_, operands_;
  WriteSide stores_;
  CoreRun run_;
  CoreWatch watch_;
  std::array<std::int32_t, kCoreViewWords> words_{};
};

template <typename Model>
class VerilatedCore final : public CoreRtl {
 public:
  VerilatedCore(const CoreSize& size, const RtlOptions& options) : size_(size), dut_(options) {
    set_core_idle(*dut_);
  }

  CoreRun run(const CoreCase& test, const CoreMemory& ports, std::vector<std::uint8_t>& memory,
              const CoreRun* expected) override {
    set_core_idle(*dut_);
    set_core_case(*dut_, test);
    if (test.resets) dut_.reset();
    return CoreSession<Model>(dut_, size_, test, ports, memory, expected).run();
  }

  [[nodiscard]] const CoreSize& size() const override { return size_; }
  [[nodiscard]] std::uint64_t cycles() const override { return dut_.cycles(); }
  [[nodiscard]] bool error() const override { return dut_->error_o != 0; }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  const CoreSize size_;
  mutable VerilatedDut<Model> dut_;
};

/// A Verilated core between bridges.
template <typename Model>
class BridgedCore final : public CorePorts {
 public:
  /// A waveform shows the first program that it is given.
  BridgedCore(const CoreSize& size, const RtlOptions& options)
      : size_(size),
        window_(options.window),
        wave_(options.wave),
        time_(options.time),
        dut_(options) {}

  [[nodiscard]] const CoreSize& size() const override { return size_; }
  hw::AxiManager& port(Port port) override { return ports_.at(port); }

  void start(const CoreCase& test, std::uint64_t at) override {
    set_core_idle(*dut_);
    set_core_case(*dut_, test);
    dut_.reset();
    shows_ = !wave_.empty() && !watch_;
    begin_ = at;
    if (shows_) {
      time_->begin_at(at);
      dut_.show_operation(nullptr, 0);
    }
    dut_->start_i = 1;
    dut_.settle();
    run_ = {};
    run_.commands.resize(test.program.commands.size() - 1);
    watch_.emplace(size_, run_.commands);
    edges_ = moved_ = 0;
    stopped_at_.reset();
    hangs_ = false;
    active_ = true;
  }

  [[nodiscard]] const CoreRun& run() const override {
    if (stopped_at_) {
      throw std::invalid_argument("command " + std::to_string(*stopped_at_) +
                                  " is none for the RTL");
    }
    if (hangs_) {
      throw std::runtime_error("the core in RTL hangs at command " +
                               std::to_string(watch_->next()));
    }
    if (active_) throw std::logic_error("the core has not finished");
    return run_;
  }
  [[nodiscard]] bool failed() const override { return dut_.failed() || dut_->error_o != 0; }
  [[nodiscard]] bool wave_is_cut_short() const override { return cut_short_; }

 private:
  /// Cycles between two looks at the size of the waveform.
  static constexpr std::uint64_t kLook = 1024;
  /// Cycles without a start or an end of a command, more than any of them takes.
  static constexpr std::uint64_t kHang = 10'000'000;

  class ManagerPort final : public hw::AxiManager {
   public:
    ManagerPort(BridgedCore& core, Port port) : core_(core), port_(port) {}
    void settle(hw::AxiPins& pins) override { core_.settle(port_, pins); }
    void edge() override { core_.edge(); }
    [[nodiscard]] bool active() const override { return core_.active_; }

   private:
    BridgedCore& core_;
    const Port port_;
  };

  /// What a port does in a cycle has settled before its inputs, of which it depends on none: they
  /// count at the edge.
  void settle(Port port, hw::AxiPins& pins) {
    if (port == kStores) {
      take_write_pins(dut_, pins, size_.lanes);
      drive_write_pins(dut_, pins);
    } else if (port == kLoads) {
      settle_reads(dut_, pins);
    } else {
      ReadPins<BeatOf<Model>> read = port == kProgram ? fetch_pins(*dut_) : operand_pins(*dut_);
      settle_reads(read, pins);
    }
  }

  template <typename Pins>
  void settle_reads(Pins& read, hw::AxiPins& pins) {
    take_read_pins(read, pins);
    drive_read_pins(read, pins, size_.lanes);
  }

  void edge() {
    if (++edges_ % kPorts != 0 || !active_) return;
    const std::uint64_t now = dut_.cycles();
    dut_.settle();
    if (dut_->fault_o) stopped_at_ = watch_->next();
    if (watch_->cycle(*dut_, now, [](std::size_t) {})) moved_ = now;
    if (shows_) show(now);
    // Who waits for whom is for the bridges to say, so a cycle without progress is none of a hang.
    dut_.end_cycle(true);
    if (dut_->start_i != 0) {
      dut_->start_i = 0;
      dut_.settle();
    }
    run_.done = dut_.cycles();
    hangs_ = now - moved_ > kHang;
    active_ = dut_->done_o == 0 && !stopped_at_ && !hangs_;
    if (shows_ && !active_) end_wave();
  }

  /// The waveform has this cycle of the program, if that is in its window.
  void show(std::uint64_t now) {
    const std::uint64_t cycle = begin_ + now;
    if (cycle < window_.from_cycle) return;
    if (now % kLook == 0) {
      std::error_code error;
      const std::uintmax_t bytes = std::filesystem::file_size(wave_, error);
      cut_short_ = !error && bytes > window_.max_bytes;
    }
    if (cut_short_ || cycle >= window_.to_cycle) return end_wave();
    dut_.show_cycle(now + 1);
  }
  void end_wave() {
    dut_.end_operation();
    shows_ = false;
  }

  const CoreSize size_;
  const RtlWindow window_;
  const std::string wave_;
  const std::shared_ptr<SystemTime> time_;
  mutable VerilatedDut<Model> dut_;
  std::array<ManagerPort, kPorts> ports_{ManagerPort{*this, kProgram}, ManagerPort{*this, kLoads},
                                         ManagerPort{*this, kStores},
                                         ManagerPort{*this, kOperands}};
  CoreRun run_;
  std::optional<CoreWatch> watch_;
  std::optional<std::size_t> stopped_at_;
  bool shows_ = false;  ///< the waveform goes on
  bool cut_short_ = false;
  std::uint64_t begin_ = 0;  ///< of the program, cycle of the system
  std::uint64_t edges_ = 0;
  std::uint64_t moved_ = 0;  ///< cycle in which something happened to a command
  bool hangs_ = false;
  bool active_ = false;
};

/// A core that has been Verilated, and both ways to drive it.
class CoreBuild {
 public:
  virtual ~CoreBuild() = default;
  [[nodiscard]] virtual std::unique_ptr<CoreRtl> rtl(const RtlOptions& options) const = 0;
  [[nodiscard]] virtual std::unique_ptr<CorePorts> ports(const RtlOptions& options) const = 0;
};

template <typename Model>
class CoreBuildOf final : public CoreBuild {
 public:
  explicit CoreBuildOf(const CoreSize& size) : size_(size) {}

  [[nodiscard]] std::unique_ptr<CoreRtl> rtl(const RtlOptions& options) const override {
    return std::make_unique<VerilatedCore<Model>>(size_, options);
  }
  [[nodiscard]] std::unique_ptr<CorePorts> ports(const RtlOptions& options) const override {
    return std::make_unique<BridgedCore<Model>>(size_, options);
  }

 private:
  const CoreSize size_;
};

}  // namespace systole::testbench

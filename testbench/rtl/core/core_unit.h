#pragma once

#include <verilated.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "hw/host/core_registers.h"
#include "testbench/rtl/core/core_ports.h"
#include "testbench/rtl/core/core_rtl.h"
#include "testbench/rtl/dma/memory_side.h"
#include "testbench/rtl/drive/axi_manager_pins.h"
#include "testbench/rtl/drive/axi_responder_pins.h"
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

/// The pins of its registers, by the names of rtl/axi.
struct RegisterPins {
  RegisterPins* operator->() { return this; }

  CData &aw_valid_i, &aw_id_i;
  SData& aw_addr_i;
  CData &aw_len_i, &aw_size_i, &w_valid_i;
  QData& w_data_i;
  CData &w_strb_i, &w_last_i, &b_ready_i, &ar_valid_i, &ar_id_i;
  SData& ar_addr_i;
  CData &ar_len_i, &ar_size_i, &r_ready_i;
  CData &aw_ready_o, &w_ready_o, &b_valid_o, &b_id_o, &b_resp_o, &ar_ready_o, &r_valid_o, &r_id_o;
  QData& r_data_o;
  CData &r_resp_o, &r_last_o;
};

template <typename Core>
RegisterPins register_pins(Core& core) {
  return {core.host_aw_valid_i, core.host_aw_id_i,    core.host_aw_addr_i,  core.host_aw_len_i,
          core.host_aw_size_i,  core.host_w_valid_i,  core.host_w_data_i,   core.host_w_strb_i,
          core.host_w_last_i,   core.host_b_ready_i,  core.host_ar_valid_i, core.host_ar_id_i,
          core.host_ar_addr_i,  core.host_ar_len_i,   core.host_ar_size_i,  core.host_r_ready_i,
          core.host_aw_ready_o, core.host_w_ready_o,  core.host_b_valid_o,  core.host_b_id_o,
          core.host_b_resp_o,   core.host_ar_ready_o, core.host_r_valid_o,  core.host_r_id_o,
          core.host_r_data_o,   core.host_r_resp_o,   core.host_r_last_o};
}

/// The inputs of a core at which nothing happens.
template <typename Core>
void set_core_idle(Core& core) {
  RegisterPins registers = register_pins(core);
  drive_responder_pins(registers, {}, CorePorts::kRegisterBytes);
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
}

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
      on_start(unit);
    }
    for (std::size_t entry = 0; entry < of_entry_.size(); ++entry) {
      const bool load = entry < loads_;
      if (!load && (core.released_o >> entry & 1U) != 0) {
        commands_.at(of_entry_[entry]).released = now + 1;
        CoreCommandTimes& started = commands_.at(current_[kArray]);
        if (entry < loads_ + matmuls_ && current_[kArray] != of_entry_[entry]) started.begun = now;
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
  std::size_t next_ = 0;
  std::size_t called_ = 0;  ///< for the host
  const std::vector<CoreCommandTimes>* const expected_;
  std::optional<CommandDifference> difference_;
};

inline std::invalid_argument stop_at(std::size_t command) {
  return std::invalid_argument("command " + std::to_string(command) + " is none for the RTL");
}

/// One program, cycle by cycle, in a Verilated core.
template <typename Model>
class CoreSession {
 public:
  CoreSession(VerilatedDut<Model>& dut, const CoreSize& size, const CoreCase& test,
              const CoreMemory& ports, std::vector<std::uint8_t>& memory, const CoreRun* expected)
      : dut_(dut),
        address_(test.address),
        register_pins_(register_pins(*dut)),
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
    write_register(hw::CoreRegisterMap::kProgram, address_);
    write_register(hw::CoreRegisterMap::kControl, hw::CoreRegisterMap::kStart);
    dut_.show_operation(words_.data(), 0);
    begin_ = dut_.cycles();
    while (!step()) {
    }
    if (dut_->interrupt_o == 0) throw std::runtime_error("no interrupt at the end");
    run_.done = dut_.cycles() - begin_;
    run_.counted = read_register(hw::CoreRegisterMap::kCycles);
    write_register(hw::CoreRegisterMap::kControl, hw::CoreRegisterMap::kAcknowledge);
    if (dut_->interrupt_o != 0) throw std::runtime_error("the interrupt stays");
    const std::uint64_t status = read_register(hw::CoreRegisterMap::kStatus);
    busy_ = (status & hw::CoreRegisterMap::kBusy) != 0;
    if (((status & hw::CoreRegisterMap::kFault) != 0) != (stopped_at_ || dut_->error_o)) {
      throw std::runtime_error("STATUS says otherwise");
    }
    run_.fetches = std::move(fetches_.requests());
    run_.reads = std::move(loads_.requests());
    run_.operands = std::move(operands_.requests());
    run_.writes = std::move(stores_.requests());
    return std::move(run_);
  }
  /// The command at which the program has stopped.
  [[nodiscard]] std::optional<std::size_t> stopped_at() const { return stopped_at_; }
  /// It is not over.
  [[nodiscard]] bool busy() const { return busy_; }

 private:
  static CoreRun commands_of(const CoreCase& test) {
    CoreRun run;
    run.commands.resize(test.program.commands.size() - 1);
    return run;
  }

  /// Of no program. Ends in the cycle in which a write takes effect, or in which a value is there.
  void access_register(hw::AxiPins pins) {
    pins.b.ready = true;
    drive_responder_pins(register_pins_, pins, CorePorts::kRegisterBytes);
    dut_.settle();
    dut_.end_cycle(true);
    pins = {};
    pins.b.ready = pins.r.ready = true;
    drive_responder_pins(register_pins_, pins, CorePorts::kRegisterBytes);
    dut_.settle();
  }
  void write_register(std::uint64_t offset, std::uint64_t value) {
    access_register(write_pins(offset, value));
    if (dut_->host_b_valid_o == 0 || dut_->host_b_resp_o != 0) {
      throw std::runtime_error("a register does not take what is written");
    }
    if (dut_->start_o == 0) next_cycle();
  }
  std::uint64_t read_register(std::uint64_t offset) {
    hw::AxiPins pins;
    pins.ar = register_access(offset);
    access_register(pins);
    if (dut_->host_r_valid_o == 0 || dut_->host_r_resp_o != 0) {
      throw std::runtime_error("a register does not answer");
    }
    const std::uint64_t value = dut_->host_r_data_o;
    next_cycle();
    return value;
  }
  static hw::AxiPins write_pins(std::uint64_t offset, std::uint64_t value) {
    hw::AxiPins pins;
    pins.aw = register_access(offset);
    pins.w.valid = pins.w.last = true;
    pins.w.strobes = (1U << CorePorts::kRegisterBytes) - 1;
    std::memcpy(pins.w.data.data(), &value, sizeof value);
    return pins;
  }
  static hw::AxiAddress register_access(std::uint64_t offset) {
    return {true, false, 0, offset, 0, 3, hw::AxiBurst::kIncr};
  }
  void next_cycle() {
    dut_.end_cycle(true);
    dut_.settle();
  }

  void cycle(bool moved) {
    dut_.show_cycle(dut_.cycles());
    dut_.show_words(words_.data(), words_.size());
    dut_.end_cycle(moved);
  }

  /// A cycle of the program. Whether it is its last one.
  bool step() {
    const std::uint64_t now = dut_.cycles() - begin_;
    play_host();
    fetches_.drive(fetch_pins_, now);
    loads_.drive(dut_, now);
    operands_.drive(operand_pins_, now);
    stores_.drive(dut_, now);
    dut_.settle();
    const bool over = dut_->finish_o != 0 || dut_->stuck_o != 0;
    called_ = called_ || dut_->calls_o != 0;
    const bool moved = watch_.cycle(*dut_, now, [this](std::size_t unit) { show(unit); });
    fetches_.take(fetch_pins_, now, 0);
    loads_.take(dut_, now, watch_.current(0));
    operands_.take(operand_pins_, now, 0);
    stores_.take(dut_, now, watch_.current(2));
    dut_.settle();
    cycle(moved || !fetches_.idle() || !loads_.idle() || !operands_.idle() || !stores_.idle());
    dut_.settle();
    if (dut_->fault_o && !stopped_at_) stopped_at_ = watch_.next();
    return over;
  }

  /// At the interrupt of a command for the host: a read in one cycle, a write in the next.
  void play_host() {
    hw::AxiPins pins;
    if (called_ && dut_->interrupt_o != 0) {
      called_ = false;
      pins.ar = register_access(hw::CoreRegisterMap::kHostCall);
    } else if (dut_->host_r_valid_o != 0) {
      run_.called.push_back(dut_->host_r_data_o);
      pins = write_pins(hw::CoreRegisterMap::kControl,
                        hw::CoreRegisterMap::kAcknowledge | hw::CoreRegisterMap::kHostDone);
    }
    pins.b.ready = pins.r.ready = true;
    drive_responder_pins(register_pins_, pins, CorePorts::kRegisterBytes);
  }

  void show(std::size_t unit) {
    if (expected_ == nullptr) return;
    const CoreCommandTimes& times = expected_->commands[watch_.current(unit)];
    words_[2 * unit] = static_cast<std::int32_t>(times.dispatched);
    words_[2 * unit + 1] = static_cast<std::int32_t>(times.started);
  }

  VerilatedDut<Model>& dut_;
  const std::uint64_t address_;
  std::uint64_t begin_ = 0;
  RegisterPins register_pins_;
  ReadPins<BeatOf<Model>> fetch_pins_, operand_pins_;
  const CoreRun* const expected_;
  ReadSide fetches_, loads_, operands_;
  WriteSide stores_;
  CoreRun run_;
  CoreWatch watch_;
  std::array<std::int32_t, kCoreViewWords> words_{};
  bool called_ = false;  ///< a command for the host has begun, its interrupt not
  std::optional<std::size_t> stopped_at_;
  bool busy_ = false;
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
    busy_ = true;
    CoreSession<Model> session(dut_, size_, test, ports, memory, expected);
    CoreRun run = session.run();
    busy_ = session.busy();
    if (const auto command = session.stopped_at()) throw stop_at(*command);
    return run;
  }

  [[nodiscard]] const CoreSize& size() const override { return size_; }
  [[nodiscard]] std::uint64_t cycles() const override { return dut_.cycles(); }
  [[nodiscard]] bool error() const override { return dut_->error_o != 0; }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }
  [[nodiscard]] bool busy() const override { return busy_; }

 private:
  const CoreSize size_;
  mutable VerilatedDut<Model> dut_;
  bool busy_ = false;
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
  hw::AxiResponder& registers() override { return registers_; }

  void reset(Callbacks callbacks) override {
    callbacks_ = std::move(callbacks);
    set_core_idle(*dut_);
    dut_.reset();
    interrupt_ = active_ = hangs_ = false;
    stopped_at_.reset();
  }

  void expect(const CoreCase& test, const std::vector<CoreCommandTimes>* times) override {
    set_core_case(*dut_, test);
    expected_ = test.program.commands.size() - 1;
    times_ = times;
  }
  [[nodiscard]] const std::optional<CommandDifference>& difference() const override {
    return watch_.value().difference();
  }

  [[nodiscard]] const CoreRun& run() const override {
    if (stopped_at_) throw stop_at(*stopped_at_);
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

  class RegisterPort final : public hw::AxiResponder {
   public:
    explicit RegisterPort(BridgedCore& core) : core_(core) {}
    void settle(hw::AxiPins& pins) override {
      RegisterPins rtl = register_pins(*core_.dut_);
      take_responder_pins(rtl, pins, kRegisterBytes);
      drive_responder_pins(rtl, pins, kRegisterBytes);
    }
    void edge() override {
      if (core_.active_) return core_.edge();
      core_.clock();
    }
    [[nodiscard]] bool active() const override { return core_.active_; }

   private:
    BridgedCore& core_;
  };

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
    if (active_ && ++edges_ % (kPorts + 1) == 0) clock();
  }

  void clock() {
    const std::uint64_t now = dut_.cycles() - begin_;
    dut_.settle();
    const bool ends = dut_->finish_o != 0;
    if (active_) {
      if (watch_->cycle(*dut_, now, [](std::size_t) {})) moved_ = now;
      if (shows_) show(now);
    }
    // Who waits for whom is for the bridges to say, so a cycle without progress is none of a hang.
    dut_.end_cycle(true);
    dut_.settle();
    if (active_) {
      if (dut_->fault_o && !stopped_at_) stopped_at_ = watch_->next();
      hangs_ = now - moved_ > kHang;
      if (watch_->difference() && !differs_at_) differs_at_ = now;
      const bool stops = differs_at_ && now >= *differs_at_ + kCyclesBehind;
      if (ends || stops || hangs_ || dut_->stuck_o != 0) end_program();
      if (stops || hangs_) callbacks_.on_stop();
    } else if (dut_->start_o != 0) {
      begin_program();
    }
    if ((dut_->interrupt_o != 0) == interrupt_) return;
    interrupt_ = !interrupt_;
    moved_ = now;
    callbacks_.on_interrupt(interrupt_);
  }

  void begin_program() {
    if (!expected_) throw std::logic_error("the host has started a program that nobody expects");
    shows_ = !wave_.empty() && !watch_;
    stopped_at_.reset();
    run_ = {};
    run_.commands.resize(*expected_);
    run_.began = system_begin_ = callbacks_.on_start();
    watch_.emplace(size_, run_.commands, times_);
    differs_at_.reset();
    begin_ = dut_.cycles();
    edges_ = moved_ = 0;
    active_ = true;
    if (!shows_) return;
    time_->begin_at(system_begin_);
    dut_.show_operation(nullptr, 0);
  }
  void end_program() {
    run_.done = dut_.cycles() - begin_;
    active_ = false;
    if (shows_) end_wave();
  }

  /// The waveform has this cycle of the program, if that is in its window.
  void show(std::uint64_t now) {
    const std::uint64_t cycle = system_begin_ + now;
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
  RegisterPort registers_{*this};
  Callbacks callbacks_;
  std::optional<std::size_t> expected_;  ///< commands of the next program
  const std::vector<CoreCommandTimes>* times_ = nullptr;
  std::optional<std::uint64_t> differs_at_;
  CoreRun run_;
  std::optional<CoreWatch> watch_;
  std::optional<std::size_t> stopped_at_;
  bool interrupt_ = false;
  bool shows_ = false;  ///< the waveform goes on
  bool cut_short_ = false;
  std::uint64_t begin_ = 0;         ///< of the program, cycle of the RTL's clock
  std::uint64_t system_begin_ = 0;  ///< of the system
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

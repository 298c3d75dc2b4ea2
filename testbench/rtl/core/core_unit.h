#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "testbench/rtl/core/core_pins.h"
#include "testbench/rtl/core/core_session.h"
#include "testbench/rtl/core/core_watch.h"
#include "testbench/rtl/drive/axi_manager_pins.h"
#include "testbench/rtl/drive/verilated_dut.h"

/// A Verilated core between bridges, and both ways to drive one.
namespace systole::testbench {

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

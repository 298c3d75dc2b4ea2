#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "testbench/rtl/core/core_ports.h"
#include "testbench/rtl/core/core_rtl.h"
#include "testbench/rtl/core/core_watch.h"
#include "testbench/rtl/dma/memory_side.h"
#include "testbench/rtl/drive/axi_manager_pins.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {

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
    operands_.take(operand_pins_, now, watch_.current(2));
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
  BridgedCore(const CoreSize& size, const RtlOptions& options) : size_(size), dut_(options) {}

  [[nodiscard]] const CoreSize& size() const override { return size_; }
  hw::AxiManager& port(Port port) override { return ports_.at(port); }

  void start(const CoreCase& test) override {
    set_core_idle(*dut_);
    set_core_case(*dut_, test);
    dut_.reset();
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

 private:
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
    // Who waits for whom is for the bridges to say, so a cycle without progress is none of a hang.
    dut_.end_cycle(true);
    if (dut_->start_i != 0) {
      dut_->start_i = 0;
      dut_.settle();
    }
    run_.done = dut_.cycles();
    hangs_ = now - moved_ > kHang;
    active_ = dut_->done_o == 0 && !stopped_at_ && !hangs_;
  }

  const CoreSize size_;
  mutable VerilatedDut<Model> dut_;
  std::array<ManagerPort, kPorts> ports_{ManagerPort{*this, kProgram}, ManagerPort{*this, kLoads},
                                         ManagerPort{*this, kOperands},
                                         ManagerPort{*this, kStores}};
  CoreRun run_;
  std::optional<CoreWatch> watch_;
  std::optional<std::size_t> stopped_at_;
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

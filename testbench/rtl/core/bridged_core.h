#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "testbench/rtl/core/core_ports.h"
#include "testbench/rtl/core/core_watch.h"
#include "testbench/rtl/drive/axi_manager_pins.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {

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

  void settle(Port port, hw::AxiPins& pins) {
    if (port == kStores) {
      settle_stores(pins);
    } else if (port == kLoads) {
      settle_reads(dut_, pins);
    } else {
      ReadPins<BeatOf<Model>> read = port == kProgram ? fetch_pins(*dut_) : operand_pins(*dut_);
      settle_reads(read, pins);
    }
  }

  template <typename Pins>
  void settle_reads(Pins& read, hw::AxiPins& pins) {
    drive_read_pins(read, pins, size_.lanes);
    dut_.settle();
    take_read_pins(read, pins);
  }

  void settle_stores(hw::AxiPins& pins) {
    drive_write_pins(dut_, pins);
    dut_.settle();
    take_write_pins(dut_, pins, size_.lanes);
  }

  void edge() {
    if (++edges_ % kPorts != 0 || !active_) return;
    const std::uint64_t now = dut_.cycles();
    if (dut_->fault_o) stopped_at_ = watch_->next();
    if (watch_->cycle(*dut_, now, [](std::size_t) {})) moved_ = now;
    // Who waits for whom is for the bridges to say, so a cycle without progress is none of a hang.
    dut_.end_cycle(true);
    dut_->start_i = 0;
    dut_.settle();
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

}  // namespace systole::testbench

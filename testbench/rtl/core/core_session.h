#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "hw/host/core_registers.h"
#include "testbench/rtl/core/core_pins.h"
#include "testbench/rtl/core/core_watch.h"
#include "testbench/rtl/dma/memory_side.h"
#include "testbench/rtl/drive/verilated_dut.h"

/// A Verilated core with the memories of a test at its ports.
namespace systole::testbench {

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

}  // namespace systole::testbench

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "testbench/rtl/core/core_rtl.h"
#include "testbench/rtl/core/core_watch.h"
#include "testbench/rtl/dma/memory_side.h"
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

}  // namespace systole::testbench

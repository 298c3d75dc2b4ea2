#include "testbench/rtl/core/core_rtl.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "Vcore_4_checked.h"
#include "hw/program/program_image.h"
#include "testbench/rtl/core/core_watch.h"
#include "testbench/rtl/dma/memory_side.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

using CoreModel = Vcore_4_checked;
using CoreDut = VerilatedDut<CoreModel>;

/// One program, cycle by cycle.
class CoreSession {
 public:
  CoreSession(CoreDut& dut, const CoreCase& test, const CoreMemory& ports,
              std::vector<std::uint8_t>& memory, const CoreRun* expected)
      : dut_(dut),
        begin_(dut.cycles()),
        fetch_pins_(fetch_pins(*dut)),
        operand_pins_(operand_pins(*dut)),
        expected_(expected),
        fetches_(CoreRtl::kBeatBytes, CoreRtl::kOutstanding, ports.program, memory),
        loads_(CoreRtl::kBeatBytes, CoreRtl::kOutstanding, ports.loads, memory),
        operands_(CoreRtl::kBeatBytes, CoreRtl::kOutstanding, ports.operands, memory),
        stores_(CoreRtl::kBeatBytes, CoreRtl::kOutstanding, ports.stores, memory) {
    run_.commands.resize(test.program.commands.size() - 1);
  }

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

  CoreDut& dut_;
  const std::uint64_t begin_;
  ReadPins fetch_pins_, operand_pins_;
  const CoreRun* const expected_;
  ReadSide fetches_, loads_, operands_;
  WriteSide stores_;
  CoreRun run_;
  CoreWatch watch_{run_.commands};
  std::array<std::int32_t, kCoreViewWords> words_{};
};

class VerilatedCore final : public CoreRtl {
 public:
  explicit VerilatedCore(const RtlOptions& options) : dut_(options) { quiet(); }

  CoreRun run(const CoreCase& test, const CoreMemory& ports, std::vector<std::uint8_t>& memory,
              const CoreRun* expected) override {
    quiet();
    dut_->in_order_i = test.slots == hw::SlotOrder::kIssue;
    dut_->overlap_i = static_cast<CData>(test.overlap);
    dut_->address_i = test.address;
    if (test.resets) dut_.reset();
    return CoreSession(dut_, test, ports, memory, expected).run();
  }

  [[nodiscard]] std::uint64_t cycles() const override { return dut_.cycles(); }
  [[nodiscard]] bool error() const override { return dut_->error_o != 0; }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  void quiet() {
    dut_->start_i = 0;
    dut_->fetch_ar_ready_i = dut_->fetch_r_valid_i = dut_->ar_ready_i = dut_->r_valid_i = 0;
    dut_->operand_ar_ready_i = dut_->operand_r_valid_i = 0;
    dut_->aw_ready_i = dut_->w_ready_i = dut_->b_valid_i = 0;
    dut_->row_bytes_i = 0;
  }

  mutable CoreDut dut_;
};

}  // namespace

std::unique_ptr<CoreRtl> make_core(const RtlOptions& options) {
  return std::make_unique<VerilatedCore>(options);
}

}  // namespace systole::testbench

#include "testbench/rtl/core/core_rtl.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "Vcore_4_checked.h"
#include "hw/program/program_image.h"
#include "testbench/rtl/dma/memory_side.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

using CoreModel = Vcore_4_checked;
using CoreDut = VerilatedDut<CoreModel>;

constexpr unsigned kCoreEntryBits = 4;
constexpr std::size_t kIdle = ~std::size_t{0};

/// The pins of a port that reads, by the names of that for loads.
struct ReadPins {
  ReadPins* operator->() { return this; }

  CData &ar_ready_i, &r_valid_i, &r_id_i, &r_resp_i, &r_last_i;
  IData& r_data_i;
  CData &ar_valid_o, &ar_id_o;
  QData& ar_addr_o;
  CData &ar_len_o, &ar_size_o, &ar_burst_o, &r_ready_o;
};

ReadPins fetch_pins(CoreModel& core) {
  return {core.fetch_ar_ready_i, core.fetch_r_valid_i,  core.fetch_r_id_i,    core.fetch_r_resp_i,
          core.fetch_r_last_i,   core.fetch_r_data_i,   core.fetch_ar_valid_o, core.fetch_ar_id_o,
          core.fetch_ar_addr_o,  core.fetch_ar_len_o,   core.fetch_ar_size_o,
          core.fetch_ar_burst_o, core.fetch_r_ready_o};
}

ReadPins operand_pins(CoreModel& core) {
  return {core.operand_ar_ready_i, core.operand_r_valid_i,  core.operand_r_id_i,
          core.operand_r_resp_i,   core.operand_r_last_i,   core.operand_r_data_i,
          core.operand_ar_valid_o, core.operand_ar_id_o,    core.operand_ar_addr_o,
          core.operand_ar_len_o,   core.operand_ar_size_o,  core.operand_ar_burst_o,
          core.operand_r_ready_o};
}

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
    of_entry_.fill(kIdle);
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
      throw std::invalid_argument("command " + std::to_string(next_) + " is none for the RTL");
    }
    const bool moved = observe(now);
    fetches_.take(fetch_pins_, now, 0);
    loads_.take(dut_, now, current_[0]);
    operands_.take(operand_pins_, now, current_[2]);
    stores_.take(dut_, now, current_[2]);
    dut_.settle();
    cycle(moved || !fetches_.idle() || !loads_.idle() || !operands_.idle() || !stores_.idle());
    dut_.settle();
  }

  bool observe(std::uint64_t now) {
    for (std::size_t unit = 0; unit < hw::kStations; ++unit) {
      if ((dut_->started_o >> unit & 1U) == 0) continue;
      const std::size_t entry = std::size_t{dut_->start_entry_o} >> (unit * kCoreEntryBits) &
                                ((1U << kCoreEntryBits) - 1);
      current_.at(unit) = of_entry_.at(entry);
      run_.commands.at(current_.at(unit)).started = now;
      show(unit);
    }
    for (std::size_t entry = 0; entry < of_entry_.size(); ++entry) {
      const bool load = entry < CoreRtl::kStationSizes[0];
      if (!load && (dut_->released_o >> entry & 1U) != 0) {
        run_.commands.at(of_entry_[entry]).released = now + 1;
      }
      if ((dut_->completed_o >> entry & 1U) == 0) continue;
      run_.commands.at(of_entry_[entry]).completed = now + 1;
    }
    if (dut_->entry_o != 0) {
      std::size_t entry = 0;
      while ((dut_->entry_o >> entry & 1U) == 0) ++entry;
      of_entry_.at(entry) = next_;
      run_.commands.at(next_++).dispatched = now + 1;
    }
    return dut_->started_o != 0 || dut_->completed_o != 0 || dut_->entry_o != 0;
  }

  void show(std::size_t unit) {
    if (expected_ == nullptr) return;
    const CoreCommandTimes& times = expected_->commands[current_[unit]];
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
  std::array<std::size_t,
             CoreRtl::kStationSizes[0] + CoreRtl::kStationSizes[1] + CoreRtl::kStationSizes[2]>
      of_entry_{};                                    ///< command
  std::array<std::size_t, hw::kStations> current_{};  ///< by unit: the command that started last
  std::array<std::int32_t, kCoreViewWords> words_{};
  std::size_t next_ = 0;
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

#include "testbench/rtl/core/command_fetch_rtl.h"

#include <algorithm>
#include <utility>

#include "Vcommand_fetch_4_checked.h"
#include "hw/dma/chain_schedule.h"
#include "hw/dma/fetch_schedule.h"
#include "hw/program/program_image.h"
#include "testbench/rtl/dma/memory_side.h"
#include "testbench/rtl/dma/read_dma_rtl.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

using FetchRtl = CommandFetchRtl;

class CommandFetch final : public CommandFetchRtl {
 public:
  explicit CommandFetch(const RtlOptions& options) : dut_(options) { quiet(); }

  FetchRun run(const FetchCase& test, const hw::ReadMemory& memory,
               const FetchRun* expected) override {
    quiet();
    dut_->in_order_i = test.slots == hw::SlotOrder::kIssue;
    dut_->row_bytes_i = 0;
    dut_.reset();
    ReadSide side(kBeatBytes, kOutstanding, memory, test.bytes);
    FetchRun run;
    dut_->address_i = test.address;
    std::array<std::int32_t, kFetchViewWords> words{};
    dut_.show_operation(words.data(), 0);
    bool started = false;
    std::uint64_t ready_from = 0;  // cycle in which the next command is taken
    std::size_t looked = 0;
    for (std::size_t next = 0; next < test.commands && dut_->fault_o == 0;) {
      const std::uint64_t cycle = dut_.cycles();
      dut_->start_i = !started;
      side.drive(dut_, cycle);
      dut_->ready_i = 0;
      dut_.settle();
      started = started || dut_->started_o != 0;
      bool taken = false;
      if (dut_->valid_o != 0) {
        if (run.arrivals.size() == next) {
          run.arrivals.push_back(cycle);
          ready_from = cycle + test.waits[next];
        }
        taken = cycle >= ready_from;
      }
      if (taken) {
        for (std::size_t i = 0; i < hw::kCommandBytes; ++i) {
          run.commands.push_back(static_cast<std::uint8_t>(get_lane<8>(dut_->command_o, i)));
        }
        ++next;
        dut_->ready_i = 1;
      }
      look(next - (taken ? 1 : 0), looked, run);
      side.take(dut_, cycle, 0);
      if (expected != nullptr && next < expected->arrivals.size()) {
        words[0] = static_cast<std::int32_t>(expected->arrivals[next]);
      }
      dut_.show_cycle(cycle);
      dut_.show_words(words.data(), words.size());
      dut_.settle();
      dut_.end_cycle(taken || dut_->valid_o != 0 || !side.idle());
    }
    run.requests = std::move(side.requests());
    run.fault = dut_->fault_o != 0;
    return run;
  }

  [[nodiscard]] std::uint64_t cycles() const override { return dut_.cycles(); }
  [[nodiscard]] bool failed() const override { return dut_.failed() || dut_->error_o != 0; }

 private:
  /// Looks at a command, if there is one, in each cycle.
  void look(std::size_t next, std::size_t& looked, FetchRun& run) {
    if (dut_->look_valid_o == 0) return;
    if ((dut_->look_next_o != 0) != (looked == next)) ++run.wrong_looks;
    run.looked.push_back(dut_->look_op_o);
    run.looked.push_back(static_cast<std::uint8_t>(dut_->look_chain_o));
    run.looked.push_back(static_cast<std::uint8_t>(dut_->look_chain_o >> 8));
    for (unsigned bit = 0; bit < 32; bit += 8) {
      run.looked.push_back(static_cast<std::uint8_t>(dut_->look_operands_o >> bit));
    }
    ++looked;
  }

  void quiet() {
    dut_->look_ready_i = 1;
    dut_->start_i = dut_->ready_i = dut_->ar_ready_i = dut_->r_valid_i = 0;
    dut_->record_valid_i = dut_->stop_i = 0;  // a core's chains: tests/rtl/core/core_test.cpp
  }

  mutable VerilatedDut<Vcommand_fetch_4_checked> dut_;
};

}  // namespace

std::unique_ptr<CommandFetchRtl> make_command_fetch(const RtlOptions& options) {
  return std::make_unique<CommandFetch>(options);
}

FetchRun model_command_fetch(const FetchCase& test, const hw::ReadMemory& memory) {
  const ReadDmaSize port{FetchRtl::kBeatBytes, FetchRtl::kRequestBytes, FetchRtl::kOutstanding, 1};
  hw::FetchSchedule schedule(read_params(port, test.slots, 0), memory, FetchRtl::kChunk,
                             test.address, test.commands);
  schedule.start(0);
  FetchRun run;
  std::uint64_t out = 0;
  hw::ChainSchedule looks({}, 1, 1);
  for (std::uint32_t i = 0; i < test.commands; ++i) {
    const std::uint64_t arrival = schedule.arrival(i);
    run.arrivals.push_back(std::max(out, arrival));
    (void)looks.ready(schedule, std::nullopt, std::nullopt, arrival, run.arrivals.back());
    out = run.arrivals.back() + test.waits[i] + 1;
    schedule.is_out(i, out);
  }
  const auto begin =
      test.bytes.begin() + static_cast<std::ptrdiff_t>(test.address + hw::kHeaderBytes);
  run.commands.assign(begin,
                      begin + static_cast<std::ptrdiff_t>(test.commands * hw::kCommandBytes));
  for (std::size_t at = 0; at < run.commands.size(); at += hw::kCommandBytes) {
    for (const std::size_t byte : {0U, 4U, 5U, 48U, 49U, 50U, 51U})
      run.looked.push_back(run.commands[at + byte]);
  }
  run.requests = schedule.requests();
  return run;
}

void check_command_fetch(CommandFetchRtl& fetch, const FetchCase& test,
                         const std::function<hw::ReadMemory()>& make_memory, RtlCounts& counts) {
  RtlCheck check(counts, {});
  const FetchRun expected = model_command_fetch(test, make_memory());
  const FetchRun found = fetch.run(test, make_memory(), &expected);
  counts.cycles += fetch.cycles();
  check.mismatch(found.fault || found.arrivals.size() != expected.arrivals.size());
  for (std::size_t i = 0; i < std::min(found.arrivals.size(), expected.arrivals.size()); ++i) {
    check.operation();
    check.mismatch(found.arrivals[i] != expected.arrivals[i]);
  }
  check.mismatch(found.commands != expected.commands);
  check.mismatch(found.looked != expected.looked || found.wrong_looks != 0);
  check.mismatch(found.requests.size() != expected.requests.size());
  for (std::size_t i = 0; i < std::min(found.requests.size(), expected.requests.size()); ++i) {
    const hw::ReadRequest &is = found.requests[i], &should = expected.requests[i];
    check.mismatch(is.address != should.address || is.issued != should.issued);
    check.mismatch(is.done != should.done);
  }
  check.assertions(fetch.failed());
}

}  // namespace systole::testbench

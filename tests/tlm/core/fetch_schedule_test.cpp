#include "hw/dma/fetch_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "hw/dma/chain_schedule.h"
#include "hw/program/program_image.h"
#include "support/network/commands.h"
#include "support/tlm/fixed_target.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/core/program_reader.h"
#include "tlm/dma/request_dma.h"

/// The model's reader beside the contracts that the gates meet
/// (tests/rtl/core/command_fetch_test.cpp).
namespace systole::tlm_model {
namespace {

class FetchScheduleTest : public test::SystemCTest {};

constexpr std::size_t kStages = 3;

/// Commands of which some name a chain: of no tensor operand, one, or two.
hw::Program random_program(std::mt19937_64& random) {
  hw::Program program;
  hw::Stage sum = hw::default_stage(hw::StageOp::kAdd);
  sum.operand = hw::Operand::kTensor;
  sum.tensor = hw::DType::kS8;
  program.chains.resize(1 + random() % 24);
  for (hw::Chain& chain : program.chains) {
    chain.stages.assign(random() % kStages, sum);
    chain.out = hw::DType::kS8;
  }
  const std::uint64_t named = random() % 5;  // of four
  for (std::uint64_t i = random() % 40; i > 0; --i) {
    if (random() % 4 >= named) {
      program.commands.push_back(test::matmul_command({1, 1, 1}, 0, 64, 0));
      continue;
    }
    program.commands.push_back(test::move_command(0, 64, 1, 1));
    hw::ChainUse& use = program.commands.back().as<hw::cmd::Result>()->chain;
    use.chain = static_cast<std::uint16_t>(random() % program.chains.size());
    if (program.chains[use.chain].stages.size() < 2) continue;
    use.operands = static_cast<std::uint32_t>(program.operand_tiles.size());
    program.operand_tiles.push_back({0, 1});
  }
  program.commands.emplace_back();
  return program;
}

TEST_F(FetchScheduleTest, IsWhatTheReaderDoesOnRandomPrograms) {
  std::mt19937_64 random(12);
  std::uint64_t late = 0, of_records = 0;
  for (int i = 0; i < 300; ++i) {
    test::fresh_kernel();
    hw::Machine machine;
    machine.dma.request_bytes = 16U << random() % 3;
    machine.dma.slots = random() % 2 == 0 ? hw::SlotOrder::kIssue : hw::SlotOrder::kCompletion;
    machine.dma.outstanding_reads = 1 + static_cast<std::uint32_t>(random() % 16);
    machine.core.fetch_commands = 1 + static_cast<std::uint32_t>(random() % 8);
    machine.core.chain_slots = 8U << random() % 2;
    const hw::Program program = random_program(random);
    const std::vector<std::uint8_t> image = hw::encode_program(program);
    const std::uint64_t address = 16 * (random() % 100);
    std::vector<std::uint64_t> latencies(4096), waits(program.commands.size()),
        works(program.commands.size());
    const std::uint64_t slowest = 1 + random() % 60, longest = random() % 3 == 0 ? 1 : 50;
    const std::uint64_t hardest = 1 + random() % 300;
    for (std::uint64_t& latency : latencies) latency = 1 + random() % slowest;
    for (std::uint64_t& wait : waits) wait = random() % longest;
    for (std::uint64_t& work : works) work = 1 + random() % hardest;

    test::FixedTarget memory("memory", 1 << 14);
    std::copy(image.begin(), image.end(),
              memory.bytes.begin() + static_cast<std::ptrdiff_t>(address));
    memory.latency_of = [&](std::size_t request) { return test::ns(latencies.at(request)); };
    RequestDma port("port", machine, machine.dma.outstanding_reads);
    port.socket.bind(memory.socket);
    ProgramReader reader("reader", machine, port);
    std::vector<std::uint64_t> arrivals;
    const auto now = [] { return to_ps(sc_core::sc_time_stamp()) / 1000; };
    test::run_body([&] {
      sc_core::wait(sc_core::SC_ZERO_TIME);
      reader.start(address);
      for (const std::uint64_t wait : waits) {
        const ProgramReader::Fetched fetched = reader.next();
        if (fetched.arrival > now()) sc_core::wait(test::ns(fetched.arrival - now()));
        arrivals.push_back(now());
        // Commands complete in any order.
        sc_core::sc_spawn(
            [&reader, &command = program.commands[fetched.index], left = works[fetched.index]] {
              sc_core::wait(test::ns(left));
              reader.complete(command);
            });
        sc_core::wait(test::ns(wait + 1));
      }
    });
    ASSERT_EQ(reader.fault(), "");

    std::size_t answered = 0;
    hw::FetchSchedule schedule(
        {hw::RequestCut(machine.dma), machine.dma.outstanding_reads, machine.dma.slots, 1},
        {[](std::uint64_t) { return true; },
         [&](const hw::ReadRequest& request) { return request.issued + latencies.at(answered++); }},
        machine.core.fetch_commands, address, static_cast<std::uint32_t>(waits.size()));
    hw::ChainSchedule chains(hw::header_of(program), machine.core.chain_slots, kStages);
    schedule.start(0);
    std::uint64_t out = 0;
    for (std::uint32_t c = 0; c < waits.size(); ++c) {
      const hw::References to = hw::references_of(program.commands[c]);
      const hw::OperandEntries entries = hw::operand_entries(program.commands[c], program);
      std::optional<std::uint32_t> chain, operand;
      if (to.chain_count != 0) chain = to.chains[0];
      if (entries.count != 0) operand = entries.first;
      const std::uint64_t arrival = schedule.arrival(c);
      late += arrival > out ? 1 : 0;
      const std::uint64_t next = std::max(out, arrival);
      out = chains.ready(schedule, chain, operand, arrival, next);
      of_records += out > next ? 1 : 0;
      ASSERT_EQ(arrivals[c], out) << "program " << i << " command " << c;
      if (chain) chains.is_used(*chain, out + works[c]);
      out += waits[c] + 1;
      schedule.is_out(c, out);
    }
    const std::vector<std::uint64_t> issued = memory.cycles();
    ASSERT_EQ(issued.size(), schedule.requests().size()) << i;
    for (std::size_t r = 0; r < issued.size(); ++r) {
      ASSERT_EQ(issued[r], schedule.requests()[r].issued) << i << ' ' << r;
      ASSERT_EQ(memory.addresses[r], schedule.requests()[r].address) << i << ' ' << r;
    }
  }
  EXPECT_GT(late, 500U);
  EXPECT_GT(of_records, 500U);
}

}  // namespace
}  // namespace systole::tlm_model

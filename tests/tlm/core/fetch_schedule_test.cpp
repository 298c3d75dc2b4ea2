#include "hw/dma/fetch_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "hw/program/program_image.h"
#include "support/network/commands.h"
#include "support/tlm/fixed_target.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/core/program_reader.h"
#include "tlm/dma/request_dma.h"

/// The model's reader beside the contract that the gates meet
/// (tests/rtl/core/command_fetch_test.cpp).
namespace systole::tlm_model {
namespace {

class FetchScheduleTest : public test::SystemCTest {};

TEST_F(FetchScheduleTest, IsWhatTheReaderDoesOnRandomPrograms) {
  std::mt19937_64 random(12);
  std::uint64_t late = 0;
  for (int i = 0; i < 200; ++i) {
    test::fresh_kernel();
    hw::Machine machine;
    machine.dma.request_bytes = 16U << random() % 3;
    machine.dma.slots = random() % 2 == 0 ? hw::SlotOrder::kIssue : hw::SlotOrder::kCompletion;
    machine.dma.outstanding_reads = 1 + static_cast<std::uint32_t>(random() % 16);
    machine.core.fetch_commands = 1 + static_cast<std::uint32_t>(random() % 8);
    hw::Program program;
    program.commands.assign(random() % 40, test::matmul_command({1, 1, 1}, 0, 64, 0));
    program.commands.emplace_back();
    const std::vector<std::uint8_t> image = hw::encode_program(program);
    const std::uint64_t address = 16 * (random() % 100);
    std::vector<std::uint64_t> latencies(4096), waits(program.commands.size());
    const std::uint64_t slowest = 1 + random() % 60, longest = random() % 3 == 0 ? 1 : 50;
    for (std::uint64_t& latency : latencies) latency = 1 + random() % slowest;
    for (std::uint64_t& wait : waits) wait = random() % longest;

    test::FixedTarget memory("memory", 1 << 14);
    std::copy(image.begin(), image.end(),
              memory.bytes.begin() + static_cast<std::ptrdiff_t>(address));
    memory.latency_of = [&](std::size_t request) { return test::ns(latencies.at(request)); };
    RequestDma port("port", machine, machine.dma.outstanding_reads);
    port.socket.bind(memory.socket);
    const sc_core::sc_event completed;
    ProgramReader reader(
        "reader", machine, port, [] { return std::uint64_t{0}; }, completed);
    std::vector<std::uint64_t> arrivals;
    const auto now = [] { return to_ps(sc_core::sc_time_stamp()) / 1000; };
    test::run_body([&] {
      sc_core::wait(sc_core::SC_ZERO_TIME);
      reader.start(address);
      for (const std::uint64_t wait : waits) {
        const ProgramReader::Fetched fetched = reader.next();
        if (fetched.arrival > now()) sc_core::wait(test::ns(fetched.arrival - now()));
        arrivals.push_back(now());
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
    schedule.start(0);
    std::uint64_t out = 0;
    for (std::uint32_t c = 0; c < waits.size(); ++c) {
      const std::uint64_t arrival = schedule.arrival(c);
      late += arrival > out ? 1 : 0;
      out = std::max(out, arrival);
      ASSERT_EQ(arrivals[c], out) << "program " << i << " command " << c;
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
}

}  // namespace
}  // namespace systole::tlm_model

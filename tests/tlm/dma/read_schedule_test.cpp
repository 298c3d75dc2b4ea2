#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "hw/dma/read_dma.h"
#include "support/tlm/fixed_target.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/dma/request_dma.h"

/// The model's port beside the contract that the gates meet (tests/rtl/dma/read_dma_test.cpp).
namespace systole::tlm_model {
namespace {

using hw::RowRead;

constexpr std::uint64_t kReadableBytes = 1 << 16;

std::uint64_t random_within(std::mt19937_64& random, std::uint64_t least, std::uint64_t most) {
  return least + random() % (most - least + 1);
}

std::vector<RowRead> random_commands(std::mt19937_64& random) {
  std::vector<RowRead> commands(random_within(random, 1, 12));
  std::uint64_t arrival = random_within(random, 0, 9);
  for (RowRead& command : commands) {
    command.rows = random_within(random, 1, 6);
    command.bytes = random_within(random, 1, random() % 3 == 0 ? 900 : 90);
    command.pitch = random_within(random, 1, 1000);
    command.address = random_within(random, 0, kReadableBytes - 6000);
    command.arrival = arrival += random() % 2 * random_within(random, 0, 120);
  }
  return commands;
}

hw::Machine random_port(std::mt19937_64& random) {
  hw::Machine machine;
  machine.dma.request_bytes = 16U << random() % 4;
  machine.dma.row_bytes = random() % 2 == 0 ? 0 : 1U << random_within(random, 3, 8);
  machine.dma.slots = random() % 2 == 0 ? hw::SlotOrder::kIssue : hw::SlotOrder::kCompletion;
  machine.dma.outstanding_reads = static_cast<std::uint32_t>(random_within(random, 1, 20));
  return machine;
}

/// When the last byte of each row of each command has arrived.
std::vector<std::vector<std::uint64_t>> row_ends(const std::vector<RowRead>& commands,
                                                 const hw::ReadSchedule& schedule) {
  std::vector<std::vector<std::uint64_t>> ends;
  for (const RowRead& command : commands) ends.emplace_back(command.rows, 0);
  std::size_t command = ~std::size_t{0};
  std::uint64_t bytes = 0;
  for (const hw::ReadRequest& request : schedule.requests) {
    if (request.command != command) bytes = 0;
    command = request.command;
    std::uint64_t& end = ends[command][bytes / commands[command].bytes];
    end = std::max(end, request.done);
    bytes += request.bytes;
  }
  return ends;
}

class ReadScheduleTest : public test::SystemCTest {};

TEST_F(ReadScheduleTest, IsWhatAPortDoesOnRandomReads) {
  std::mt19937_64 random(4);
  std::uint64_t waited = 0;
  for (int i = 0; i < 500; ++i) {
    test::fresh_kernel();
    const hw::Machine machine = random_port(random);
    const std::vector<RowRead> commands = random_commands(random);
    std::vector<std::uint64_t> latencies(8192);
    const std::uint64_t slowest = random_within(random, 1, 90);
    for (std::uint64_t& latency : latencies) latency = random_within(random, 1, slowest);
    std::size_t answered = 0;
    const hw::ReadSchedule expected = hw::read_schedule(
        commands,
        {hw::RequestCut(machine.dma), machine.dma.outstanding_reads, machine.dma.slots, 100},
        {[](std::uint64_t) { return true; },
         [&](const hw::ReadRequest& request) {
           return request.issued + latencies.at(answered++);
         }});

    test::FixedTarget memory("memory", kReadableBytes);
    memory.latency_of = [&](std::size_t request) { return test::ns(latencies.at(request)); };
    RequestDma port("port", machine, machine.dma.outstanding_reads);
    port.socket.bind(memory.socket);
    const auto now = [] { return to_ps(sc_core::sc_time_stamp()) / 1000; };
    std::vector<hw::ReadTimes> times;
    std::vector<std::vector<std::uint64_t>> rows;
    test::run_body([&] {
      for (const RowRead& command : commands) {
        if (command.arrival > now()) sc_core::wait(test::ns(command.arrival - now()));
        hw::ReadTimes time;
        time.started = now();
        rows.emplace_back();
        time.completed = port.read_rows(
            {command.address, command.pitch, nullptr, 0, command.rows, command.bytes},
            [&](const DmaPort::Arrival& arrival) {
              if (arrival.ends_row) rows.back().push_back(arrival.row_done);
            });
        port.synchronise();
        time.released = now();
        times.push_back(time);
      }
    });

    ASSERT_EQ(memory.addresses.size(), expected.requests.size()) << i;
    const std::vector<std::uint64_t> issued = memory.cycles();
    for (std::size_t r = 0; r < issued.size(); ++r) {
      ASSERT_EQ(memory.addresses[r], expected.requests[r].address) << i << ' ' << r;
      ASSERT_EQ(memory.lengths[r], expected.requests[r].bytes) << i << ' ' << r;
      ASSERT_EQ(issued[r], expected.requests[r].issued) << i << ' ' << r;
      waited += r != 0 && issued[r] > issued[r - 1] + 1 ? 1 : 0;
    }
    for (std::size_t c = 0; c < commands.size(); ++c) {
      ASSERT_EQ(times[c].started, expected.times[c].started) << i << ' ' << c;
      ASSERT_EQ(times[c].released, expected.times[c].released) << i << ' ' << c;
      ASSERT_EQ(times[c].completed, expected.times[c].completed) << i << ' ' << c;
    }
    ASSERT_EQ(rows, row_ends(commands, expected)) << i;
  }
  EXPECT_GT(waited, 5'000U);
}

}  // namespace
}  // namespace systole::tlm_model

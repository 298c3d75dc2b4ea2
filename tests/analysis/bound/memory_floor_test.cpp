#include "analysis/bound/memory_floor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hw/memory/dram_timing.h"

namespace systole::analysis {
namespace {

/// Core cycles that the DRAM takes for a stream of reads that have all arrived at once.
double streamed_cycles(const hw::Machine& machine, std::uint64_t bytes) {
  hw::DramTiming dram(machine.dram);
  std::uint64_t end = 0;
  for (std::uint64_t at = 0; at < bytes; at += 64) end = dram.access(at, 64, false, 0).end;
  return static_cast<double>(end) * machine.core.clock_mhz / 1e6;
}

TEST(MemoryFloor, CountsRefreshes) {
  const hw::Machine machine;
  constexpr std::uint64_t kBytes = 4 << 20;
  // Half in each direction of the bus, so that the DRAM is the limit.
  const double least = MemoryFloor(machine).move(kBytes / 2, 0, kBytes / 2);
  EXPECT_GT(least, 1.04 * kBytes / 19.2) << "350 ns and a row to open of 7.8 us";
  const double streamed = streamed_cycles(machine, kBytes);
  EXPECT_LE(least, streamed);
  EXPECT_GT(1.01 * least, streamed);
}

TEST(MemoryFloor, WithoutRefreshIsTheBursts) {
  hw::Machine machine;
  machine.dram.t_refi_ns = 0;
  EXPECT_NEAR(MemoryFloor(machine).move(1 << 19, 0, 1 << 19), (1 << 20) / 19.2, 30);
}

TEST(MemoryFloor, OfFixedLatencyIsTheAnswerBeats) {
  hw::Machine machine;
  machine.memory.model = hw::MemoryModel::kFixed;
  machine.memory.latency = 10;
  const MemoryFloor wide(machine);
  EXPECT_NEAR(wide.read_trip(64), 4 + 10 + 3 + 4, 0.01);
  EXPECT_NEAR(wide.write_trip(64), 4 + 10 + 3 + 4, 0.01);
  machine.memory.read_beat_cycles = 8;
  const MemoryFloor narrow(machine);
  EXPECT_NEAR(narrow.read_trip(64), 4 + 10 + 3 + 4, 0.01) << "a floor: the gaps are not in it";
  // Four beats of a read of 64 bytes, one of a write.
  EXPECT_NEAR(narrow.move(6400, 0, 6400), 100 * (4 + 1) * 8, 1e-6);
}

TEST(MemoryFloor, CountsTheWindowAndTheRequestOfACycle) {
  hw::Machine machine;
  machine.dma.outstanding_reads = 1;
  const MemoryFloor one(machine);
  // 4 + 4 bus cycles, 38 for 20 + 14.16 + 3.34 ns at the DRAM, 4 beats.
  EXPECT_NEAR(one.read_trip(64), 4 + 38 + 3 + 4, 0.01);
  EXPECT_NEAR(one.write_trip(64), 4 + 34 + 3 + 4, 0.01);
  EXPECT_NEAR(one.move(6400, 0, 0), 100 * one.read_trip(64), 1e-6);
  EXPECT_NEAR(one.move(0, 6400, 0), 100 * one.read_trip(64), 1e-6);
  machine.dma.outstanding_reads = 64;
  machine.dma.row_bytes = 4;
  EXPECT_NEAR(MemoryFloor(machine).move(6400, 0, 0), 1600, 1e-6);
}

/// Core cycles of a port that reads one request after the other on an idle machine, each in the
/// slot of the oldest: the contracts of port, bus and DRAM step by step.
double ported_cycles(const hw::Machine& machine, std::uint64_t bytes) {
  hw::DramTiming dram(machine.dram);
  std::vector<std::uint64_t> slots(machine.dma.outstanding_reads, 0);
  std::uint64_t issue = 0, bus_free = 0;
  const std::uint64_t beats = 64 / machine.bus.width_bytes;
  for (std::uint64_t i = 0; i < bytes / 64; ++i) {
    std::uint64_t& slot = slots[i % slots.size()];
    issue = std::max(issue, slot);
    const std::uint64_t arrival = (issue + machine.bus.request_latency) * 1000;
    const std::uint64_t there = (dram.access(i * 64, 64, false, arrival).end + 999) / 1000;
    bus_free = std::max(bus_free, there) + beats;
    slot = bus_free - 1 + machine.bus.response_latency;
    ++issue;
  }
  return static_cast<double>(*std::max_element(slots.begin(), slots.end()));
}

TEST(MemoryFloor, WindowsWaitForRefreshes) {
  hw::Machine machine;
  machine.bus.width_bytes = 32;
  machine.dma.outstanding_reads = 8;
  constexpr std::uint64_t kBytes = 4 << 20;
  const double least = MemoryFloor(machine).move(kBytes, 0, 0);
  EXPECT_GT(least, 1.015 * kBytes / 64 * MemoryFloor(machine).read_trip(64) / 8);
  const double ported = ported_cycles(machine, kBytes);
  EXPECT_LE(least, ported);
  EXPECT_GT(1.05 * least, ported);
  EXPECT_EQ(MemoryFloor(machine).move(0, kBytes, 0), least) << "operands have a window, too";
}

TEST(MemoryFloor, SharesWhatEitherUnitReadsBetweenTheirPorts) {
  hw::Machine machine;
  machine.dma.outstanding_reads = 1;
  const MemoryFloor memory(machine);
  EXPECT_DOUBLE_EQ(memory.move(6400, 0, 0, 6400), memory.move(6400, 0, 0));
  EXPECT_DOUBLE_EQ(memory.move(6400, 0, 0, 12800), memory.move(9600, 0, 0));
  EXPECT_DOUBLE_EQ(memory.move(0, 0, 0, 12800), memory.move(6400, 0, 0));
  machine.dma.outstanding_reads = 64;
  EXPECT_DOUBLE_EQ(MemoryFloor(machine).move(64000, 0, 0, 64000),
                   MemoryFloor(machine).move(64000, 64000, 0))
      << "the bus";
}

TEST(MemoryFloor, TheBusMovesOnlyWhatIsInFlightDuringARefresh) {
  hw::Machine machine;
  constexpr std::uint64_t kBytes = 4 << 20;
  const double least = MemoryFloor(machine).move(kBytes, 0, 0);
  EXPECT_GT(least, 1.03 * kBytes / 16) << "3 % of the time";
  const double ported = ported_cycles(machine, kBytes);
  EXPECT_LE(least, ported);
  EXPECT_GT(1.03 * least, ported);
  machine.dram.t_refi_ns = 0;
  EXPECT_NEAR(MemoryFloor(machine).move(kBytes, 0, 0), kBytes / 16, 1);
}

TEST(MemoryFloor, IsNeverAboveAPortOfAnyMachine) {
  for (const std::uint32_t window : {1U, 4U, 8U, 12U, 16U, 64U}) {
    for (const std::uint32_t width : {4U, 8U, 16U, 32U, 64U}) {
      for (const std::uint32_t channels : {1U, 4U}) {
        hw::Machine machine;
        machine.dma.outstanding_reads = window;
        machine.bus.width_bytes = width;
        machine.dram.channels = channels;
        for (const std::uint64_t bytes : {64U, 6400U, 100'000U, 1U << 20}) {
          const double ported = ported_cycles(machine, bytes / 64 * 64);
          EXPECT_LE(MemoryFloor(machine).move(static_cast<double>(bytes / 64 * 64), 0, 0), ported)
              << window << " in flight, " << width << " bytes, " << channels << " channels";
        }
      }
    }
  }
}

}  // namespace
}  // namespace systole::analysis

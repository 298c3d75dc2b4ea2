#include "analysis/memory_floor.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "hw/dram_timing.h"

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

}  // namespace
}  // namespace systole::analysis

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/bus/system_bus.h"
#include "tlm/dma/dma_port.h"
#include "tlm/memory/dram.h"
#include "tlm/memory/l2_cache.h"

namespace systole::tlm_model {
namespace {

/// Gemmini's DMA in front of a warm L2 cache: 16 requests of 64 bytes in flight, 16-byte beats.
class ReadBandwidthTest : public test::SystemCTest,
                          public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(ReadBandwidthTest, IsTheBusOrAKibibytePerLatency) {
  hw::Machine machine;
  machine.l2.kib = 512;
  machine.l2.hit_latency = GetParam();
  SystemBus bus("bus", machine.bus);
  Dram dram("dram", machine.dram, false);
  L2Cache l2("l2", machine, dram.capacity(), false);
  DmaPort port("port", machine, machine.dma.outstanding_reads);
  l2.memory.bind(dram.socket);
  bus.connect_target(l2.socket, 0, dram.capacity());
  bus.connect_initiator(port.socket);
  constexpr std::uint64_t kBytes = 256 * 1024, kRow = 64, kPitch = 128;
  std::uint64_t cycles = 0;
  test::run_body([&] {
    port.read(0, nullptr, 2 * kBytes);  // fills the cache
    port.synchronise();
    const std::uint64_t begun = port.next_issue() + 1000;
    port.read(0, nullptr, kRow, begun);
    cycles = port.read_rows({0, kPitch, nullptr, 0, kBytes / kRow, kRow}, {}) - begun;
  });
  // To the cache and back, four beats out of a bank and, store and forward, four on the bus.
  const double latency = 4 + GetParam() + 3 + 3 + 4;
  const double expected = std::min(16.0, 1024.0 / latency);
  EXPECT_NEAR(static_cast<double>(kBytes) / static_cast<double>(cycles), expected, expected * 0.02);
}

// 1024 / 200 = 5.1 bytes per cycle is what Gemmini's large matmuls get.
INSTANTIATE_TEST_SUITE_P(Latencies, ReadBandwidthTest,
                         ::testing::Values(10U, 50U, 86U, 136U, 186U, 286U));

}  // namespace
}  // namespace systole::tlm_model

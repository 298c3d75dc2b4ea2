/// The DMA in RTL on the bus of a machine, beside others: pins, bridge, bus and DRAM together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/tlm/systemc_test.h"
#include "testbench/rtl/dma/axi_dma_rtl.h"
#include "tlm/axi/axi_bridge.h"
#include "tlm/bus/system_bus.h"
#include "tlm/memory/dram.h"

namespace systole::tlm_model {
namespace {

constexpr std::uint64_t kDmaBase = 0x4000'0000;
constexpr std::uint64_t kDmaBytes = 1 << 18;  ///< of memory

struct CopyCase {
  std::uint64_t source, target, bytes;
};

class AxiDmaSystem : public test::SystemCTest, public testing::WithParamInterface<unsigned> {
 protected:
  AxiDmaSystem() {
    bus.connect_target(dram.socket, kDmaBase, kDmaBytes);
    for (const unsigned width : {4U, 16U}) {
      testbench::RtlOptions options;
      options.checked = true;
      dmas.push_back(testbench::make_axi_dma(width, options));
      hw::AxiSubordinate::Params params;
      params.bytes = width;
      params.stalls_per_mille = GetParam();
      params.seed = width;
      const std::string name = "bridge" + std::to_string(width);
      bridges.push_back(
          std::make_unique<AxiBridge>(name.c_str(), machine.bus, params, *dmas.back()));
      bus.connect_initiator(bridges.back()->socket);
    }
    bus.observe([](const BusTransaction& transaction, const std::string&) {
      const std::uint64_t last = transaction.address + transaction.bytes - 1;
      EXPECT_EQ(transaction.address / hw::kAxiBoundary, last / hw::kAxiBoundary);
      EXPECT_LE(transaction.asked, transaction.granted);
      EXPECT_LT(transaction.granted, transaction.answered);
    });
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }

  void move(tlm::tlm_command command, std::vector<std::uint8_t>& bytes) {
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    payload.set_address(0);
    payload.set_data_ptr(bytes.data());
    payload.set_data_length(static_cast<unsigned>(bytes.size()));
    ASSERT_EQ(bus.targets[0]->transport_dbg(payload), bytes.size());
  }

  const hw::Machine machine = hw::find_machine("transformer");
  SystemBus bus{"bus", machine.bus};
  Dram dram{"dram", machine, true};
  std::vector<std::unique_ptr<testbench::AxiDmaRtl>> dmas;
  std::vector<std::unique_ptr<AxiBridge>> bridges;
};

TEST_P(AxiDmaSystem, TwoOnOneBusMoveTheirBytes) {
  std::mt19937_64 random(GetParam() + 1);
  std::vector<std::uint8_t> expected(kDmaBytes), found(kDmaBytes);
  for (std::uint8_t& byte : expected) byte = static_cast<std::uint8_t>(random());
  move(tlm::TLM_WRITE_COMMAND, expected);
  std::uint64_t moved[2] = {};
  for (int round = 0; round < 4; ++round) {
    for (std::size_t i = 0; i < dmas.size(); ++i) {
      // Each in its half of the memory, from one quarter to the other.
      const std::uint64_t quarter = kDmaBytes / 4, begin = i * 2 * quarter;
      const std::uint64_t bytes = 1 + random() % (quarter / 8);
      const CopyCase copy{begin + random() % (quarter - bytes),
                          begin + quarter + random() % (quarter - bytes), bytes};
      std::copy_n(expected.begin() + static_cast<std::ptrdiff_t>(copy.source), bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(copy.target));
      dmas[i]->copy(kDmaBase + copy.source, kDmaBase + copy.target, bytes);
      bridges[i]->start();
      moved[i] += bytes;
    }
    sc_core::sc_start();
    for (const auto& dma : dmas) {
      EXPECT_FALSE(dma->active());
      EXPECT_FALSE(dma->error());
      EXPECT_FALSE(dma->failed());
    }
  }
  move(tlm::TLM_READ_COMMAND, found);
  EXPECT_EQ(found, expected);
  const std::vector<BusCore::Initiator>& initiators = bus.core().initiators();
  for (std::size_t i = 0; i < dmas.size(); ++i) {
    EXPECT_EQ(initiators[i].written_bytes, moved[i]);
    EXPECT_EQ(initiators[i].reads, bridges[i]->counts().reads);
    EXPECT_EQ(initiators[i].writes, bridges[i]->counts().writes);
    EXPECT_GT(bridges[i]->counts().most_reads, 1U);
  }
}
INSTANTIATE_TEST_SUITE_P(Stalls, AxiDmaSystem, testing::Values(0U, 400U));

using AxiDmaErrors = AxiDmaSystem;
TEST_P(AxiDmaErrors, NowhereOnTheBusIsAnError) {
  dmas[1]->copy(kDmaBase + kDmaBytes - 8, kDmaBase, 32);
  bridges[1]->start();
  sc_core::sc_start();
  EXPECT_TRUE(dmas[1]->error());
  EXPECT_GT(bus.core().decode_errors, 0U);
}
INSTANTIATE_TEST_SUITE_P(Stalls, AxiDmaErrors, testing::Values(0U));

}  // namespace
}  // namespace systole::tlm_model

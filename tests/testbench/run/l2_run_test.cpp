#include <gtest/gtest.h>

#include <cstdint>

#include "support/network/vit_run.h"
#include "support/tlm/systemc_test.h"

/// Networks on machines with an L2 cache.
namespace systole::testbench {
namespace {

using test::VitRun;

class L2RunTest : public test::SystemCTest {
 protected:
  static constexpr std::size_t kImages = 3;

  SimulationResult run(std::uint32_t kib, bool functional = true) {
    vit_.machine.l2.kib = kib;
    SimulationOptions options;
    options.functional = functional;
    options.check = true;
    return vit_.simulate(options);
  }
  static std::uint64_t lines(const SimulationResult& result) {
    return VitRun::counter(result, "l2", "fills") + VitRun::counter(result, "l2", "write_backs");
  }

  VitRun vit_{"transformer", kImages};
};

TEST_F(L2RunTest, NoSizeChangesABitOrDependsOnValues) {
  for (const std::uint32_t kib : {1U, 16U, 256U}) {
    const SimulationResult result = run(kib);
    EXPECT_EQ(result.check.mismatches, 0U) << kib << ": " << result.check.first;
    EXPECT_GT(result.check.bytes, 0U);
    EXPECT_EQ(run(kib, false).cycles, result.cycles) << kib;
  }
}

TEST_F(L2RunTest, ACacheThatHoldsEverythingReadsEachLineOnce) {
  const SimulationResult result = run(4096);
  EXPECT_LE(VitRun::counter(result, "l2", "fills"), vit_.mapping.dram_bytes / 64 + 1);
  EXPECT_EQ(VitRun::counter(result, "l2", "write_backs"), 0U);
  EXPECT_LT(result.cycles[1], result.cycles[0]) << "the weights are there";
  EXPECT_LT(result.cycles[1], run(0).cycles[1]);
}

TEST_F(L2RunTest, MemoryAndEnergyCountWhatPassesTheCache) {
  const SimulationResult none = run(0);
  const SimulationResult result = run(64);
  EXPECT_EQ(result.events.dram_bytes, 64 * lines(result));
  EXPECT_EQ(VitRun::counter(result, "dram", "read_bytes") +
                VitRun::counter(result, "dram", "written_bytes"),
            64 * lines(result));
  EXPECT_EQ(none.events.l2_bytes, 0U);
  EXPECT_GT(result.events.l2_bytes, none.events.dram_bytes) << "all of it, and fills";
  EXPECT_GT(lines(result), lines(run(4096)));
}

}  // namespace
}  // namespace systole::testbench

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/network/vit_run.h"
#include "support/temp_directory.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "testbench/run/rtl_blocks.h"

namespace systole::testbench {
namespace {

// The machine with blocks swapped for their RTL: nothing may change.

class RtlRunTest : public test::SystemCTest {
 protected:
  struct Run {
    SimulationResult result;
    RtlReport report;
  };
  static Run run(const test::VitRun& vit, const std::vector<std::string>& blocks) {
    hw::Machine machine = vit.machine;
    for (const std::string& block : blocks) swap_for_rtl(machine, block);
    SimulationOptions options;
    options.check = true;
    Run run;
    tlm_model::Engines engines = make_engines(machine, {}, run.report);
    test::fresh_kernel();
    run.result =
        simulate(vit.network.graph, vit.mapping, machine, std::move(engines), vit.inputs, options);
    return run;
  }
  static void expect_the_same(const Run& rtl, const Run& model) {
    EXPECT_EQ(rtl.result.outputs, model.result.outputs);
    EXPECT_EQ(rtl.result.cycles, model.result.cycles);
    EXPECT_EQ(rtl.result.check.mismatches, 0U);
    for (const auto& [block, counts] : rtl.report) {
      EXPECT_GT(counts.operations, 0U) << block;
      EXPECT_GT(counts.cycles, 0U) << block;
      EXPECT_EQ(counts.mismatches, 0U) << block;
    }
  }
};

TEST_F(RtlRunTest, AllBlocksInRtlChangeNeitherABitNorACycle) {
  for (const char* machine : {"tiny", "transformer"}) {
    const test::VitRun vit(machine, 2);
    const Run model = run(vit, {});
    EXPECT_TRUE(model.report.empty());
    const Run rtl = run(vit, {"all"});
    EXPECT_EQ(rtl.report.size(), rtl_blocks(vit.machine).size());
    expect_the_same(rtl, model);
  }
}

TEST_F(RtlRunTest, AnyBlockCanBeSwappedAlone) {
  const test::VitRun vit("tiny");
  const Run model = run(vit, {});
  for (const std::string& block : rtl_blocks(vit.machine)) {
    const Run rtl = run(vit, {block});
    ASSERT_EQ(rtl.report.size(), 1U);
    EXPECT_EQ(rtl.report.begin()->first, block);
    expect_the_same(rtl, model);
  }
}

TEST_F(RtlRunTest, OneLineOfAMachineFileSwapsABlock) {
  const TempDirectory directory;
  const std::string file =
      directory.write("mine.toml", "base = \"tiny\"\n[backend]\nsoftmax_unit = \"rtl\"\n");
  test::VitRun vit("tiny");
  vit.machine = hw::find_machine(file);
  const Run rtl = run(vit, {});
  ASSERT_EQ(rtl.report.size(), 1U);
  EXPECT_EQ(rtl.report.begin()->first, "softmax_unit");
}

}  // namespace
}  // namespace systole::testbench

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "model/seeded/shapes.h"
#include "support/network/encoder_run.h"
#include "support/network/vit_run.h"
#include "support/temp_directory.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "testbench/run/rtl_blocks.h"
#include "tlm/dma/dma_port.h"

namespace systole::testbench {
namespace {

using test::Workload;

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

// How much the results depend on DMA ports that run ahead of simulated time.

double change(const Workload& workload, const std::string& machine_name) {
  const hw::Machine machine = hw::find_machine(machine_name);
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  const auto exact = static_cast<double>(workload.cycles(mapping, machine, 0));
  const auto ahead = static_cast<double>(workload.cycles(mapping, machine));
  return std::abs(ahead / exact - 1.0);
}

class QuantumTest : public test::SystemCTest {};

// A port that is ahead asks the memory for a run of requests before the others get a turn, which
// saves conflicts between open rows; on a bus that is never free it also keeps them waiting.
TEST_F(QuantumTest, HardlyMovesTheCyclesOfAnEncoderLayer) {
  model::EncoderShape shape = model::find_shape("bert-base");
  shape.layers = 1;
  const Workload layer{model::make_seeded_encoder("layer", shape, 128, 1, {{}, true}), {}};
  EXPECT_LT(change(layer, "gemmini"), 0.01);
  EXPECT_LT(change(layer, "transformer"), 0.03);
}

TEST_F(QuantumTest, MovesTheCyclesOfASmallMachineByAFewPercent) {
  const Workload small = test::encoder_workload({1, 32, 2, 64, true}, 19, 1);
  EXPECT_LT(change(small, "gemmini"), 0.02) << "the program's reads meet those of the loads";
  EXPECT_LT(change(small, "transformer"), 0.05) << "operators in turns meet in the memory";
  EXPECT_LT(change(small, "tiny"), 0.12);
}

TEST_F(QuantumTest, RepeatsExactly) {
  const Workload small = test::encoder_workload({1, 32, 2, 64, true}, 19, 1);
  const hw::Machine machine = hw::find_machine("tiny");
  const mapper::Mapping mapping = mapper::map_graph(small.graph, machine);
  const std::uint64_t cycles = small.cycles(mapping, machine);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(small.cycles(mapping, machine), cycles);
}

}  // namespace
}  // namespace systole::testbench

#include "tlm/core/array_unit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "hw/array/accumulator.h"
#include "hw/array/array.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"

namespace systole::tlm_model {
namespace {

using test::CoreRig;
using test::kBank;
using test::load_command;
using test::matmul_command;
using test::MatmulShape;
using test::roomy;

class ArrayUnitTest : public test::SystemCTest {};

using ArrayCase =
    std::tuple<std::uint32_t, std::uint32_t, hw::Dataflow, hw::ArrayOverlap, MatmulShape>;

class ArrayContractTest : public ArrayUnitTest, public ::testing::WithParamInterface<ArrayCase> {};

TEST_P(ArrayContractTest, ALoneMatmulTakesTheCyclesOfTheContract) {
  const auto& [rows, cols, dataflow, overlap, param_shape] = GetParam();
  const MatmulShape shape = param_shape;  // a lambda may not capture the binding
  hw::Machine machine = roomy();
  machine.array.rows = rows;
  machine.array.cols = cols;
  machine.array.dataflow = dataflow;
  machine.array.overlap = overlap;
  CoreRig rig(machine);
  rig.run([&] { rig.execute({matmul_command(shape, 0, 2 * kBank, 0)}); });
  const hw::ArrayCycles cycles = hw::array_cycles(machine.array, shape.m, shape.n, shape.k, false);
  EXPECT_EQ(rig[0].started, rig[0].dispatched);
  // What sums take to leave the array, and the next weights to come in, is not the operands'.
  const std::uint64_t skew = std::uint64_t{rows} + cols - 2;
  EXPECT_EQ(rig[0].released - rig[0].started,
            dataflow == hw::Dataflow::kWeightStationary ? cycles.latency - skew : cycles.interval);
  EXPECT_EQ(rig[0].completed - rig[0].started,
            cycles.latency + hw::kMatmulRegisterCycles + hw::kAccumulatorWriteCycles);
}

std::string array_case_name(const ::testing::TestParamInfo<ArrayCase>& info) {
  const auto& [rows, cols, dataflow, overlap, shape] = info.param;
  const char* const overlaps[] = {"none", "preload", "full"};
  return std::to_string(rows) + "x" + std::to_string(cols) +
         (dataflow == hw::Dataflow::kWeightStationary ? "_ws_" : "_os_") +
         overlaps[static_cast<int>(overlap)] + "_" + std::to_string(shape.m) + "x" +
         std::to_string(shape.n) + "x" + std::to_string(shape.k);
}

INSTANTIATE_TEST_SUITE_P(
    Contracts, ArrayContractTest,
    ::testing::Combine(
        ::testing::Values(4U, 16U), ::testing::Values(16U, 32U),
        ::testing::Values(hw::Dataflow::kWeightStationary, hw::Dataflow::kOutputStationary),
        ::testing::Values(hw::ArrayOverlap::kNone, hw::ArrayOverlap::kPreload,
                          hw::ArrayOverlap::kFull),
        ::testing::Values(MatmulShape{1, 1, 1}, MatmulShape{16, 16, 16}, MatmulShape{37, 50, 23})),
    array_case_name);

/// Cycles between the starts of consecutive matmuls, after the first few.
std::uint64_t steady_interval(const hw::Machine& machine, std::uint32_t a, std::uint32_t b,
                              bool accumulate) {
  CoreRig rig(machine);
  constexpr std::uint32_t kTiles = 30;
  const std::vector<hw::Command> tiles(kTiles, matmul_command({16, 16, 16}, a, b, 0, accumulate));
  rig.run([&] { rig.execute(tiles); });
  const std::uint64_t interval = rig[5].started - rig[4].started;
  for (std::uint32_t i = 5; i < kTiles; ++i) {
    EXPECT_EQ(rig[i].started - rig[i - 1].started, interval) << i;
    EXPECT_EQ(rig[i].started, rig[i - 1].released);
  }
  return interval;
}

TEST_F(ArrayUnitTest, ATileTakesSixteenCyclesInSteadyState) {
  EXPECT_EQ(steady_interval(roomy(), 0, kBank, true), 16U);
}

TEST_F(ArrayUnitTest, ExposedPreloadAndDrainShowInSteadyState) {
  hw::Machine machine = roomy();
  machine.array.overlap = hw::ArrayOverlap::kPreload;
  EXPECT_EQ(steady_interval(machine, 0, kBank, false), 16U + 30);
}

TEST_F(ArrayUnitTest, NothingOverlapsWithoutOverlap) {
  hw::Machine machine = roomy();
  machine.array.overlap = hw::ArrayOverlap::kNone;
  EXPECT_EQ(steady_interval(machine, 0, kBank, false), 16U + 16 + 30);
}

TEST_F(ArrayUnitTest, StationaryOutputsNeedNoPreload) {
  hw::Machine machine = roomy();
  machine.array.dataflow = hw::Dataflow::kOutputStationary;
  EXPECT_EQ(steady_interval(machine, 0, kBank, false), 16U);
}

TEST_F(ArrayUnitTest, OnePortOfABankServesOneOperand) {
  hw::Machine machine = roomy();
  machine.scratchpad.ports = 1;
  EXPECT_EQ(steady_interval(machine, 0, kBank, false), 16U) << "A and B in two banks";
}

TEST_F(ArrayUnitTest, OperandsInOneBankShareItsPort) {
  hw::Machine machine = roomy();
  machine.scratchpad.ports = 1;
  // 16 rows of A and 16 of B through one port.
  EXPECT_EQ(steady_interval(machine, 0, 256, false), 32U);
}

// A row of A in every cycle, and a load into its bank meanwhile, which goes first.
TEST_F(ArrayUnitTest, ALoadTakesItsBankForEachWordOrWiderBeat) {
  constexpr std::uint32_t kRows = 1000, kLoaded = 2048;
  for (const std::uint32_t width : {4U, 8U, 16U, 32U, 64U}) {
    hw::Machine machine = roomy();
    machine.scratchpad.ports = 1;
    machine.bus.width_bytes = width;
    const hw::Command matmul = matmul_command({kRows, 16, 16}, 0, kBank, 0);
    const auto cycles = [&](std::uint32_t to) {
      test::fresh_kernel();
      CoreRig rig(machine);
      rig.run([&] { rig.execute({matmul, load_command(to, 0, kLoaded)}); });
      EXPECT_LT(rig[1].completed, rig[0].released) << "bus of " << width;
      return rig[0].released - rig[0].started;
    };
    const std::uint64_t alone = cycles(2 * kBank);
    EXPECT_EQ(cycles(kBank - kLoaded) - alone, kLoaded / std::max(16U, width))
        << "bus of " << width;
  }
}

// Its rows wait with the first weights of the next one, whose bank a load takes in every cycle.
TEST_F(ArrayUnitTest, ALoadAtTheNextWeightsHoldsUpTheMatmulBefore) {
  constexpr std::uint32_t kRows = 500, kWords = 2048, kLoaded = 16 * kWords;
  hw::Machine machine = test::even_machine(20);
  machine.scratchpad.ports = 1;
  const hw::Command matmul = matmul_command({kRows, 16, 16}, 0, kBank, 0);
  const hw::Command next = matmul_command({kRows, 16, 16}, 0, 2 * kBank, 8192);
  for (const bool held : {false, true}) {
    test::fresh_kernel();
    CoreRig rig(machine, false);
    const std::uint32_t to = held ? 3 * kBank - kLoaded : 3 * kBank;
    rig.run([&] {
      rig.execute({matmul, load_command(2 * kBank, 0, 256), next, load_command(to, 0, kLoaded)});
    });
    const std::uint64_t taken = rig[0].released - rig[0].started, alone = 16 + kRows;
    EXPECT_GE(taken, held ? alone + kWords - 16 : alone);
    EXPECT_LE(taken, held ? alone + kWords : alone);
    EXPECT_EQ(rig[2].started, rig[0].released);
    EXPECT_EQ(rig[0].completed - rig[0].released, 33U);
  }
}

TEST_F(ArrayUnitTest, TwoPortsServeBothOperands) {
  hw::Machine machine = roomy();
  machine.scratchpad.ports = 2;
  EXPECT_EQ(steady_interval(machine, 0, 256, false), 16U);
}

TEST_F(ArrayUnitTest, OutputStationaryOperandsInOneBankShareItsPort) {
  hw::Machine machine = roomy();
  machine.array.dataflow = hw::Dataflow::kOutputStationary;
  machine.scratchpad.ports = 1;
  EXPECT_EQ(steady_interval(machine, 0, 256, false), 32U);
}

TEST_F(ArrayUnitTest, OutputStationaryOperandsInTwoBanksDoNot) {
  hw::Machine machine = roomy();
  machine.array.dataflow = hw::Dataflow::kOutputStationary;
  machine.scratchpad.ports = 1;
  EXPECT_EQ(steady_interval(machine, 0, kBank, false), 16U);
}

class OperandRangeTest : public ArrayUnitTest,
                         public ::testing::WithParamInterface<hw::Dataflow> {};

/// B begins 16 KiB before the end of the bank of A. So 16 of its rows are in that bank, however
/// many there are. Rows of A are enough to hide a transposer.
TEST_P(OperandRangeTest, OfBCoversTheRowsThatItHasInMemory) {
  hw::Machine machine = roomy();
  machine.array.dataflow = GetParam();
  machine.scratchpad.ports = 1;
  for (const bool transposed : {false, true}) {
    for (const MatmulShape shape : {MatmulShape{64, 64, 32}, MatmulShape{64, 32, 64}}) {
      test::fresh_kernel();
      hw::Command matmul = matmul_command(shape, 0, kBank - 16 * 1024, 0);
      matmul.as<hw::cmd::Matmul>()->b_transposed = transposed;
      matmul.as<hw::cmd::Matmul>()->b.pitch = 1024;
      CoreRig rig(machine, false);
      rig.run([&] { rig.execute(std::vector<hw::Command>(5, matmul)); });
      const hw::ArrayCycles cycles =
          hw::array_cycles(machine.array, shape.m, shape.n, shape.k, true);
      const hw::ArrayReads reads = hw::array_reads(machine.array, shape.m, shape.n, shape.k);
      const std::uint64_t rows = transposed ? shape.n : shape.k;
      const std::uint64_t shared = reads.a + reads.b * 16 / rows;
      ASSERT_GT(shared, cycles.interval);
      EXPECT_EQ(rig[3].released - rig[3].started, shared)
          << shape.n << " x " << shape.k << (transposed ? ", transposed" : "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dataflows, OperandRangeTest,
                         ::testing::Values(hw::Dataflow::kWeightStationary,
                                           hw::Dataflow::kOutputStationary));

TEST_F(ArrayUnitTest, AShortTileWaitsForTheNextWeights) {
  CoreRig rig(roomy());
  rig.run([&] {
    rig.execute(std::vector<hw::Command>(10, matmul_command({1, 16, 16}, 0, kBank, 0)));
  });
  EXPECT_EQ(rig[0].released - rig[0].started, 17U) << "16 to preload, 1 to stream";
  EXPECT_EQ(rig[9].released - rig[9].started, 16U);
}

TEST_F(ArrayUnitTest, WeightsShiftInAfterThePreviousTileAsFarAsTheyWereThere) {
  bool hidden = false, partly = false, exposed = false;
  for (std::uint32_t rows = 1; rows < 120; rows += 3) {
    test::fresh_kernel();
    CoreRig rig(roomy());
    rig.run([&] {
      rig.execute({load_command(kBank, 4096, 256), matmul_command({rows, 16, 16}, 0, 2 * kBank, 0),
                   matmul_command({40, 16, 16}, 0, kBank, 4096)});
    });
    const std::uint64_t ready = rig[0].completed;
    const std::uint64_t free = rig[1].released;
    EXPECT_EQ(rig[2].released, std::max(free, ready + 16) + 40) << rows;
    hidden |= ready + 16 <= free;
    partly |= ready < free && free < ready + 16;
    exposed |= free < ready;
  }
  EXPECT_TRUE(hidden && partly && exposed) << "the sweep must show all three";
}

struct OverlapCase {
  hw::ArrayOverlap overlap;
  std::uint64_t cycles;
};

TEST_F(ArrayUnitTest, ALayerOfBertTakesWhatItsOverlapLeavesExposed) {
  // 128 x 768 by 768 x 768 on 16 x 16: 48 x 48 folds of 128 rows, all operands on chip.
  constexpr std::uint64_t kFolds = 48 * 48;
  for (const auto& [overlap, cycles] :
       {OverlapCase{hw::ArrayOverlap::kFull, 16 + kFolds * 128},
        OverlapCase{hw::ArrayOverlap::kPreload, 16 + kFolds * (128 + 30) - 30},
        OverlapCase{hw::ArrayOverlap::kNone, kFolds * (16 + 128 + 30) - 30}}) {
    hw::Machine machine = roomy();
    machine.array.overlap = overlap;
    machine.scratchpad = {1024, 2, 2};
    machine.accumulator = {512, 2, 4};
    test::fresh_kernel();
    CoreRig rig(machine, false);
    rig.run([&] { rig.execute({matmul_command({128, 768, 768}, 0, 512 * 1024 - 98304, 0)}); });
    EXPECT_EQ(rig[0].released - rig[0].started, cycles);
  }
}

}  // namespace
}  // namespace systole::tlm_model

#include "analysis/dataflow.h"

#include <gtest/gtest.h>

#include <utility>

#include "hw/array/array.h"
#include "mapper/place/sharing.h"
#include "mapper/tile/tiling.h"

namespace systole::analysis {
namespace {

DataflowCost on_chip(Stationary stationary, const ProductShape& shape, const hw::Machine& machine) {
  return cost_of(stationary, make_nest(stationary, shape, machine.array, {}), machine.energy);
}

TEST(Dataflow, ReadsTheRowsThatTheArrayReads) {
  // As long as no edge is ragged: the contract counts padded rows.
  for (const auto& [stationary, dataflow] :
       {std::pair{Stationary::kWeight, hw::Dataflow::kWeightStationary},
        {Stationary::kOutput, hw::Dataflow::kOutputStationary}}) {
    hw::Machine machine;
    machine.array.dataflow = dataflow;
    const DataflowCost cost = on_chip(stationary, {64, 48, 96}, machine);
    const hw::ArrayReads reads = hw::array_reads(machine.array, 64, 48, 96);
    EXPECT_EQ(cost.operands[0].buffer, reads.a * 16);
    EXPECT_EQ(cost.operands[1].buffer, reads.b * 16);
  }
}

TEST(Dataflow, KeepsWhatItsNameSays) {
  const hw::Machine machine;
  const ProductShape shape{128, 64, 96};
  const auto cost = [&](Stationary stationary) { return on_chip(stationary, shape, machine); };
  const DataflowCost ws = cost(Stationary::kWeight), os = cost(Stationary::kOutput);
  const DataflowCost rs = cost(Stationary::kRow), nlr = cost(Stationary::kNothing);
  const std::uint64_t a = 128 * 96, b = 96 * 64, c = 128 * 64, macs = a * 64;
  EXPECT_EQ(ws.operands[1].buffer, b);  // weights once
  EXPECT_EQ(ws.operands[0].buffer, a * (64 / 16));
  EXPECT_EQ(ws.operands[2].buffer, c * (96 / 16));
  EXPECT_EQ(os.operands[2].buffer, c);  // sums once
  EXPECT_EQ(os.operands[1].buffer, b * (128 / 16));
  EXPECT_EQ(rs.operands[0].buffer, a);      // rows once
  EXPECT_EQ(rs.operands[2].buffer, c);      // 96 are less than 16 segments of 16
  EXPECT_EQ(nlr.operands[1].buffer, macs);  // weights for every MAC
  EXPECT_EQ(nlr.register_accesses, 0U);
  EXPECT_EQ(ws.register_accesses, b + macs);
  EXPECT_EQ(os.register_accesses, c + 2 * macs);
  for (const DataflowCost* other : {&os, &rs, &nlr}) {
    EXPECT_EQ(other->dram_reads, ws.dram_reads);
    EXPECT_EQ(other->dram_writes, c);
  }
  EXPECT_GT(nlr.energy(), ws.energy());
}

TEST(Dataflow, HasTheTrafficOfTheMappersTiles) {
  const hw::Machine machine;
  const ProductShape shape{512, 768, 768};
  const DramTiles tiles = mapper_tiles(shape, machine);
  ASSERT_EQ(tiles.loops.size(), kDims);
  mapper::TilingProblem problem;
  problem.m = shape.m;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.out_bytes = 1;
  problem.postop_interval = 1;
  problem.stream_bytes = 256 * 1024;
  problem.sums = mapper::whole_share(machine).sums_end;
  const mapper::Tiling tiling = mapper::Tiler(machine).choose(problem, "product");
  for (const Stationary stationary : kStationaries) {
    const DataflowCost cost =
        cost_of(stationary, make_nest(stationary, shape, machine.array, tiles), machine.energy);
    EXPECT_EQ(cost.dram_reads, tiling.load_bytes) << long_name(stationary);
    EXPECT_EQ(cost.dram_writes, 512U * 768);
  }
}

TEST(Dataflow, ItsEnergyIsThatOfTheMachine) {
  hw::Machine machine;
  const DataflowCost cost = on_chip(Stationary::kWeight, {64, 48, 96}, machine);
  EXPECT_DOUBLE_EQ(cost.mac_energy, 64 * 48 * 96 * 0.3e-12);
  EXPECT_DOUBLE_EQ(cost.dram_energy, (64 * 96 + 96 * 48 + 64 * 48) * 160e-12);
  EXPECT_DOUBLE_EQ(cost.accumulator_energy, 2 * 64 * 48 * (96 / 16) * 4 * 1.25e-12);
  EXPECT_DOUBLE_EQ(cost.scratchpad_energy,
                   (64 * 96 * (48 / 16) + 96 * 48 + 64 * 96 + 96 * 48) * 1.25e-12);
}

}  // namespace
}  // namespace systole::analysis

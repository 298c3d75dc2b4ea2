#include "analysis/dataflow.h"

#include <gtest/gtest.h>

#include <utility>

#include "analysis/roofline.h"
#include "analysis/survey_performance.h"
#include "analysis/transformer_cost.h"
#include "hw/array/array.h"
#include "hw/energy.h"
#include "mapper/place/sharing.h"
#include "mapper/tile/tiling.h"
#include "tests/analysis/survey_shapes.h"

namespace systole::analysis {
namespace {

DataflowCost on_chip(Stationary stationary, const ProductShape& shape, const hw::Machine& machine) {
  return cost_of(stationary, make_nest(stationary, shape, machine.array, {}),
                 hw::energy_table(machine));
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
    const DataflowCost cost = cost_of(
        stationary, make_nest(stationary, shape, machine.array, tiles), hw::energy_table(machine));
    EXPECT_EQ(cost.dram_reads, tiling.load_bytes) << long_name(stationary);
    EXPECT_EQ(cost.dram_writes, 512U * 768);
  }
}

TEST(Dataflow, ItsEnergyIsThatOfTheMachine) {
  hw::Machine machine;
  machine.energy.scratchpad_byte_pj = 1.25;
  machine.energy.accumulator_byte_pj = 2.5;
  const DataflowCost cost = on_chip(Stationary::kWeight, {64, 48, 96}, machine);
  EXPECT_DOUBLE_EQ(cost.mac_energy, 64 * 48 * 96 * 0.3e-12);
  EXPECT_DOUBLE_EQ(cost.dram_energy, (64 * 96 + 96 * 48 + 64 * 48) * 160e-12);
  EXPECT_DOUBLE_EQ(cost.accumulator_energy, 2 * 64 * 48 * (96 / 16) * 4 * 2.5e-12);
  EXPECT_DOUBLE_EQ(cost.scratchpad_energy,
                   (64 * 96 * (48 / 16) + 96 * 48 + 64 * 96 + 96 * 48) * 1.25e-12);
}

TEST(Roofline, IsTheMachines) {
  hw::Machine machine;
  const Roofline roofline = roofline_of(machine);
  EXPECT_EQ(roofline.macs, 256);
  EXPECT_EQ(roofline.bus_bytes, 16);
  EXPECT_DOUBLE_EQ(roofline.dram_bytes, 19.2);
  EXPECT_EQ(roofline.elements, 16);
  // 16 requests of 64 bytes; 8 cycles on the bus, 20 ns in the controller, 14.16 ns CL.
  EXPECT_DOUBLE_EQ(roofline.read_bytes, 16 * 64 / 42.16);
  EXPECT_EQ(roofline.memory_bytes(), 16);
  EXPECT_EQ(roofline.ridge(), 16);
  machine.dma.outstanding_reads = 4;
  EXPECT_DOUBLE_EQ(roofline_of(machine).memory_bytes(), 4 * 64 / 42.16);
}

TEST(Roofline, KnowsAMemoryOfFixedLatency) {
  hw::Machine machine;
  machine.memory.model = hw::MemoryModel::kFixed;
  machine.memory.read_beat_cycles = 4;
  const Roofline roofline = roofline_of(machine);
  EXPECT_DOUBLE_EQ(roofline.dram_bytes, 4);
  EXPECT_DOUBLE_EQ(roofline.memory_bytes(), 4);
  machine.memory.read_beat_cycles = 1;
  machine.memory.latency = 120;
  // 16 requests of 64 bytes; 8 cycles on the bus.
  EXPECT_DOUBLE_EQ(roofline_of(machine).read_bytes, 16 * 64 / 128.0);
}

TEST(Roofline, TellsWhatBoundsAnOperator) {
  const Roofline roofline = roofline_of(hw::Machine{});
  const CostSummary encode = summarise(ideal_costs({kBertBase, 512}));
  const CostSummary decode = summarise(decode_costs(kGpt2, 512));
  // 438.86 FLOPs per byte are above the ridge of 2 x 16, the decoder's 2 are below.
  const Bound projections = bound_of(encode.of(OperatorClass::kProjection), roofline);
  EXPECT_EQ(projections.resource(), Resource::kArray);
  EXPECT_EQ(projections.cycles(), encode.of(OperatorClass::kProjection).macs / 256);
  EXPECT_EQ(bound_of(decode.of(OperatorClass::kProjection), roofline).resource(),
            Resource::kMemory);
  EXPECT_EQ(bound_of(encode.of(OperatorClass::kOther), roofline).resource(), Resource::kMemory);
  EXPECT_EQ(bound_of({"", OperatorClass::kOther, 0, 0, 10, 160}, roofline).resource(),
            Resource::kPostop);
  EXPECT_EQ(bound_of({"", OperatorClass::kOther, 0, 0, 10, 160}, roofline).cycles(), 10);
}

double encoder_cycles(const model::EncoderShape& shape, std::uint32_t length, std::uint32_t count) {
  const SurveyModel model;
  return model.cycles(tiled_costs({shape, length, count}, model.limits));
}

/// Latency relative to BERT-Base of 128 tokens, as Fig. 32 gives it: a whole number, hence within
/// half a unit, and 2.5 % beyond that.
void expect_latency(double cycles, double published) {
  const double ratio = cycles / encoder_cycles(kBertBase, 128, 4);
  EXPECT_GT(ratio, (published - 0.5) * 0.975) << published;
  EXPECT_LT(ratio, (published + 0.5) * 1.025) << published;
}

TEST(SurveyModel, IsFigure32) {
  struct Row {
    std::uint32_t length;
    double base, large, gpt2;
  };
  for (const Row& row : {Row{128, 1, 3, 18},
                         {256, 2, 7, 37},
                         {512, 5, 14, 75},
                         {1024, 11, 33, 159},
                         {2048, 28, 82, 352},
                         {4096, 80, 229, 840}}) {
    SCOPED_TRACE(row.length);
    expect_latency(encoder_cycles(kBertBase, row.length, 4), row.base);
    expect_latency(encoder_cycles(kBertLarge, row.length, 3), row.large);
    expect_latency(SurveyModel().cycles(decode_costs(kGpt2, row.length)), row.gpt2);
  }
}

TEST(SurveyModel, HasTheseCyclesAndShares) {
  struct Expected {
    std::uint32_t length;
    double mega, projections, attention, feed_forward, other;
  };
  // Of our model: the survey's Fig. 30 has no numbers.
  for (const Expected& e : {Expected{128, 48.2, 29.4, 3.1, 58.7, 8.8},
                            {512, 219.9, 25.8, 10.0, 51.5, 12.7},
                            {4096, 3791.4, 11.9, 36.5, 23.9, 27.7}}) {
    const SurveyModel model;
    const std::vector<OperatorCost> costs = tiled_costs({kBertBase, e.length}, model.limits);
    const double total = model.cycles(costs);
    EXPECT_EQ(printed(total * 1e-6, 1), e.mega);
    const auto share = [&](OperatorClass kind) {
      std::vector<OperatorCost> part;
      for (const OperatorCost& cost : costs) {
        if (cost.kind == kind) part.push_back(cost);
      }
      return printed(100 * model.cycles(part) / total, 1);
    };
    EXPECT_EQ(share(OperatorClass::kProjection), e.projections);
    EXPECT_EQ(share(OperatorClass::kAttention), e.attention);
    EXPECT_EQ(share(OperatorClass::kFeedForward), e.feed_forward);
    EXPECT_EQ(share(OperatorClass::kOther), e.other);
  }
}

TEST(SurveyModel, TakesTheSlowerOfComputationAndMemory) {
  const SurveyModel model;
  EXPECT_EQ(model.cycles(OperatorCost{"", OperatorClass::kOther, 256 * 100, 0, 64}), 100);
  EXPECT_EQ(model.cycles(OperatorCost{"", OperatorClass::kOther, 256, 0, 6400}), 500);
}

}  // namespace
}  // namespace systole::analysis

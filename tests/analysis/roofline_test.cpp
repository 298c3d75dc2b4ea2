#include "analysis/roofline.h"

#include <gtest/gtest.h>

#include "analysis/transformer_cost.h"
#include "tests/analysis/survey_shapes.h"

namespace systole::analysis {
namespace {

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

}  // namespace
}  // namespace systole::analysis

#include "analysis/bound/lower_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "analysis/bound/memory_floor.h"
#include "hw/description/machine_file.h"
#include "model/seeded/shapes.h"
#include "support/random/random_graph.h"

namespace systole::analysis {
namespace {

using test::GraphSketch;

/// Bytes that one loop nest of a product loads, counted tile by tile: C tiles of tile_m x tile_n,
/// `stays` bytes of the operand that the inner loop does not index stay over that loop.
double counted_bytes(std::uint64_t m, std::uint64_t n, std::uint64_t k, std::uint64_t tile_m,
                     std::uint64_t tile_n, bool rows_outside, std::uint64_t room) {
  double bytes = 0;
  const auto at_most = [](std::uint64_t from, std::uint64_t step, std::uint64_t end) {
    return std::min(step, end - from);
  };
  const std::uint64_t outer = rows_outside ? m : n, inner = rows_outside ? n : m;
  const std::uint64_t outer_step = rows_outside ? tile_m : tile_n;
  const std::uint64_t inner_step = rows_outside ? tile_n : tile_m;
  for (std::uint64_t i = 0; i < outer; i += outer_step) {
    const std::uint64_t panel = at_most(i, outer_step, outer) * k;
    bool first = true;
    for (std::uint64_t j = 0; j < inner; j += inner_step) {
      bytes += static_cast<double>(at_most(j, inner_step, inner) * k);
      bytes += static_cast<double>(first ? panel : panel - std::min(panel, room));
      first = false;
    }
  }
  return bytes;
}

/// Post-norm, 64 wide.
model::Graph encoder(std::uint32_t layers, std::uint32_t tokens = 40) {
  model::SeededOptions options;
  options.shape_only = true;
  return model::make_seeded_encoder("encoder", {layers, 64, 4, 128, true}, tokens, 1, options);
}

TEST(LeastOperandBytes, AreOnePassWhereAnOperandFits) {
  // All of A fits beside C tiles of one column.
  EXPECT_DOUBLE_EQ(least_operand_bytes(64, 300, 128, 64, 64 * 128), 64.0 * 128 + 128 * 300);
  EXPECT_DOUBLE_EQ(least_operand_bytes(300, 64, 128, 1 << 20, 0), 300.0 * 128 + 128 * 64);
}

TEST(LeastOperandBytes, AreThoseOfSquareTilesWithoutRoomForOperands) {
  // m n k (1 / tile + 1 / tile) with tiles of 32 x 32 sums.
  EXPECT_DOUBLE_EQ(least_operand_bytes(512, 512, 512, 1024, 0), 2.0 * 512 * 512 * 512 / 32);
}

TEST(LeastOperandBytes, FallWithCapacityAndNoLoopNestIsBelow) {
  test::Random random(5);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t m = test::between(random, 1, 90), n = test::between(random, 1, 90),
                        k = test::between(random, 1, 90);
    const std::uint64_t sums = test::between(random, 1, 4000), room = random() % 9000;
    const double least = least_operand_bytes(m, n, k, sums, room);
    EXPECT_LE(least_operand_bytes(m, n, k, 2 * sums, room), least);
    EXPECT_LE(least_operand_bytes(m, n, k, sums, 2 * room), least);
    EXPECT_GE(least, static_cast<double>(m * k + k * n));
    for (int j = 0; j < 20; ++j) {
      const std::uint64_t tile_m = test::between(random, 1, static_cast<std::uint32_t>(m));
      const std::uint64_t tile_n = std::min(n, sums / tile_m);
      if (tile_n == 0) continue;
      for (const bool rows_outside : {false, true}) {
        EXPECT_LE(least, counted_bytes(m, n, k, tile_m, tile_n, rows_outside, room) + 1e-6);
      }
    }
  }
}

TEST(LowerBound, OfOneProductIsItsSlowestUnit) {
  GraphSketch g("one", 1);
  const model::View x = g.input("x", 64, 48);
  const model::Graph graph = g.take(g.stage("q", g.matmul("c", x, g.weight("w", 48, 32)),
                                            GraphSketch::to_bits(8, 6), hw::DType::kS8));
  const hw::Machine machine;
  const LowerBound bound = lower_bound(graph, machine);
  ASSERT_EQ(bound.operators.size(), 1U);
  EXPECT_EQ(bound.operators[0].array, 3 * 2 * 64.0) << "folds of 16 x 16, 64 rows each";
  EXPECT_EQ(bound.operators[0].postop, 64 * 2.0 + 6) << "two vectors of 16 a row, and one fill";
  EXPECT_EQ(bound.operators[0].loaded, 64.0 * 48 + 48 * 32);
  EXPECT_EQ(bound.operators[0].written, 64.0 * 32);
  const MemoryFloor memory(machine);
  const double fetch = memory.read_trip(80);
  EXPECT_DOUBLE_EQ(bound.total.memory, fetch + memory.move(64.0 * 48 + 48 * 32, 0, 64 * 32));
  EXPECT_EQ(bound.cycles(), 3 * 2 * 64.0 + fetch + memory.read_trip(1));
  EXPECT_EQ(bound.bound_by(), "array");
}

TEST(LowerBound, CountsNormsOfRowsThatNoProductBeforeHas) {
  GraphSketch g("norm", 1);
  const model::View x = g.input("x", 64, 32);
  const model::View q = g.stage("q", g.matmul("c", x, g.weight("w", 32, 32)),
                                GraphSketch::to_bits(8, 6), hw::DType::kS8);
  const model::View more = g.input("more", 65, 32, hw::DType::kS16);
  g.stage("norm", more, GraphSketch::layer_norm(), hw::DType::kS8);
  const model::Graph graph = g.take(q);
  const LowerBound bound = lower_bound(graph, hw::Machine{});
  ASSERT_EQ(bound.operators.size(), 1U);
  EXPECT_EQ(bound.operators[0].postop, 64 * 2.0 + 6 + 65 * 23.0);
}

TEST(LowerBound, ReadsAgainWhatANormAndAResidualNeed) {
  const auto either = [](bool residual_goes_on) {
    GraphSketch g("residual", 1);
    const auto add = [&](const std::string& name, const model::View& x, const model::View& y) {
      return g.stage(name, x,
                     model::add_tensor_stage(hw::DType::kS16, {3, 3}, 14, hw::Rounding::kHalfUp),
                     hw::DType::kS16, y);
    };
    const model::View stream = g.input("stream", 40, 64, hw::DType::kS16);
    const model::View c = g.matmul("c", g.input("x", 40, 64), g.weight("w", 64, 64));
    const model::View sum = add("sum", c, stream);
    const model::View norm = g.stage("norm", sum, GraphSketch::layer_norm(), hw::DType::kS8);
    const model::View d = g.matmul("d", norm, g.weight("v", 64, 64));
    const model::Graph graph = g.take(add("out", d, residual_goes_on ? sum : stream));
    double bytes = 0;
    const hw::Machine machine;
    for (const OperatorBound& op : lower_bound(graph, machine).operators) bytes += op.either;
    return bytes;
  };
  EXPECT_EQ(either(true), 40.0 * 64 * 2) << "16 bits: of the sum, or of the stream again";
  EXPECT_EQ(either(false), 0) << "the sum is the norm's alone";
}

TEST(LowerBound, ReadsAgainWhatAProductAndAResidualNeed) {
  // Post-norm: what a norm gives is an operand of the next product, and of the addition after it.
  const auto either = [](bool adds) {
    GraphSketch g("residual", 1);
    const auto add = [&](const std::string& name, const model::View& x, const model::View& y) {
      return g.stage(name, x,
                     model::add_tensor_stage(hw::DType::kS8, {3, 3}, 7, hw::Rounding::kHalfUp),
                     hw::DType::kS8, y);
    };
    const model::View c = g.matmul("c", g.input("x", 40, 64), g.weight("w", 64, 64));
    const model::View sum = adds ? add("sum", c, g.input("stream", 40, 64)) : c;
    const model::View norm = g.stage("norm", sum, GraphSketch::layer_norm(), hw::DType::kS8);
    g.matmul("e", norm, g.weight("u", 64, 32));  // the copy on chip serves both
    const model::View d = g.matmul("d", norm, g.weight("v", 64, 64));
    const model::Graph graph = g.take(add("out", d, norm));
    double bytes = 0;
    const hw::Machine machine;
    for (const OperatorBound& op : lower_bound(graph, machine).operators) bytes += op.either;
    return bytes;
  };
  EXPECT_EQ(either(true), 40.0 * 64);
  EXPECT_EQ(either(false), 0) << "a second chain of the same sums moves it on chip";
}

TEST(LowerBound, ReadsInputsOfStages) {
  GraphSketch g("input", 1);
  const model::View x = g.input("x", 40, 64, hw::DType::kS16);
  const model::View norm = g.stage("norm", x, GraphSketch::layer_norm(), hw::DType::kS8);
  const model::Graph graph = g.take(g.stage("q", g.matmul("c", norm, g.weight("w", 64, 32)),
                                            GraphSketch::to_bits(8, 6), hw::DType::kS8));
  const LowerBound bound = lower_bound(graph, hw::Machine{});
  ASSERT_EQ(bound.operators.size(), 2U);
  EXPECT_EQ(bound.operators[0].either, 40.0 * 64 * 2);
}

TEST(LowerBound, IsByTheLatencyOfSmallOperatorsOnALargeMachine) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.array.rows = machine.array.cols = 128;
  machine.scratchpad.kib = 1024;
  machine.postop.lanes = 64;
  machine.bus.width_bytes = 64;
  machine.dma.outstanding_reads = machine.dma.outstanding_writes = 64;
  machine.dram.channels = 8;
  const LowerBound bound = lower_bound(encoder(3, 4), machine);
  EXPECT_EQ(bound.bound_by(), "latency");
  EXPECT_EQ(bound.cycles(), bound.latency);
  EXPECT_GT(bound.latency, bound.total.array);
}

TEST(LowerBound, FallsWithEveryResource) {
  const model::Graph graph = encoder(2);
  hw::Machine machine = hw::find_machine("transformer");
  machine.scratchpad.kib = 8;
  machine.accumulator.kib = 8;
  const double at_first = lower_bound(graph, machine).cycles();
  const auto larger = [&](std::uint32_t& key) {
    key *= 2;
    const double bound = lower_bound(graph, machine).cycles();
    key /= 2;
    return bound;
  };
  for (std::uint32_t* key : {&machine.scratchpad.kib, &machine.accumulator.kib, &machine.array.rows,
                             &machine.array.cols, &machine.postop.lanes, &machine.dram.channels,
                             &machine.bus.width_bytes, &machine.dma.outstanding_reads}) {
    EXPECT_LE(larger(*key), at_first);
  }
  EXPECT_LT(larger(machine.postop.lanes), at_first);
}

TEST(LowerBound, CountsResidualsAndWhatDoesNotFit) {
  const model::Graph graph = encoder(1);
  hw::Machine machine = hw::find_machine("transformer");
  const auto sum = [&](auto field) {
    double bytes = 0;
    for (const OperatorBound& op : lower_bound(graph, machine).operators) bytes += op.*field;
    return bytes;
  };
  const double operands = sum(&OperatorBound::operands);
  EXPECT_GE(operands, 2.0 * 40 * 64) << "two residual additions";
  const double loaded = sum(&OperatorBound::loaded);
  machine.scratchpad.kib = machine.accumulator.kib = 1;
  EXPECT_EQ(sum(&OperatorBound::operands), operands);
  EXPECT_GT(sum(&OperatorBound::loaded), loaded + 4 * 1024) << "rows again, or weights";
}

}  // namespace
}  // namespace systole::analysis

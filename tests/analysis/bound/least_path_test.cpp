#include "analysis/bound/least_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/bound/dependence.h"
#include "analysis/bound/memory_floor.h"
#include "hw/array/array.h"
#include "hw/description/machine_file.h"
#include "hw/memory/dram_timing.h"
#include "model/seeded/shapes.h"
#include "support/random/random_graph.h"

namespace systole::analysis {
namespace {

using test::GraphSketch;

model::Graph network(std::uint32_t layers, std::uint32_t length, bool causal) {
  model::SeededOptions options;
  options.shape_only = true;
  model::EncoderShape shape{layers, 64, 4, 128, false};
  shape.causal = causal;
  return model::make_seeded_encoder("encoder", shape, length, 1, options);
}

std::size_t node(const model::Graph& graph, const std::string& name) {
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const model::Node& one) { return one.name == name; });
  EXPECT_NE(found, graph.nodes.end()) << name;
  return static_cast<std::size_t>(found - graph.nodes.begin());
}

double path(const model::Graph& graph, const hw::Machine& machine) {
  return least_path(graph, machine, MemoryFloor(machine));
}

TEST(DependenceGraph, AttentionNeedsAllRowsAndTheRestItsOwn) {
  const model::Graph graph = network(2, 40, false);
  const DependenceGraph dependence(graph);
  const auto on = dependence.on(node(graph, "blocks.0.mlp.fc2"), graph.nodes.size());
  const auto of = [&](const char* name) { return on[node(graph, name)]; };
  EXPECT_EQ(of("blocks.1.norm1").result, Reach::kRow);
  EXPECT_EQ(of("blocks.1.attn.qkv").work, Reach::kRow);
  EXPECT_EQ(of("blocks.1.attn.head0.softmax").result, Reach::kAll);
  EXPECT_EQ(of("blocks.1.attn.head3.context").work, Reach::kAll);
  EXPECT_EQ(of("blocks.1.mlp.fc2").work, Reach::kAll);
  EXPECT_EQ(of("blocks.0.mlp.fc1").work, Reach::kNone) << "an earlier one";
  // Columns of fc1 may be used before the row is complete.
  const auto on_fc1 = dependence.on(node(graph, "blocks.0.mlp.fc1"), graph.nodes.size());
  EXPECT_EQ(on_fc1[node(graph, "blocks.0.mlp.fc2")].work, Reach::kSome);
  EXPECT_EQ(on_fc1[node(graph, "blocks.0.mlp.fc2")].result, Reach::kRow);
}

TEST(DependenceGraph, KnowsNothingAfterACausalMask) {
  const model::Graph graph = network(2, 40, true);
  const auto on = DependenceGraph(graph).on(node(graph, "blocks.0.mlp.fc2"), graph.nodes.size());
  EXPECT_EQ(on[node(graph, "blocks.1.attn.qkv")].work, Reach::kRow);
  EXPECT_EQ(on[node(graph, "blocks.1.attn.head0.softmax")].result, Reach::kNone);
  EXPECT_NE(on[node(graph, "blocks.1.attn.proj")].result, Reach::kAll);
}

TEST(DependenceGraph, NeedsWhatIsReadInPartsTogether) {
  const model::Graph graph = network(1, 40, false);
  const auto needed = DependenceGraph(graph).needed_by(node(graph, "blocks.0.attn.proj"));
  EXPECT_TRUE(needed[node(graph, "blocks.0.attn.qkv")]) << "by twelve views";
  EXPECT_TRUE(needed[node(graph, "blocks.0.attn.head2.softmax")]);
  EXPECT_FALSE(needed[node(graph, "blocks.0.mlp.fc1")]);
  const auto by_one = DependenceGraph(graph).needed_by(node(graph, "blocks.0.attn.head0.scores"));
  EXPECT_FALSE(by_one[node(graph, "blocks.0.attn.qkv")]) << "its Q and K alone";
}

TEST(LeastPath, IsTheWayThroughArrayAndChainsAndWhatComesAfter) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.array.rows = machine.array.cols = 64;
  GraphSketch g("row", 1);
  const auto narrow = [&](const std::string& name, const model::View& x) {
    return g.stage(name, x, GraphSketch::to_bits(8, 6), hw::DType::kS8);
  };
  const model::View a = g.matmul("a", g.input("x", 1, 64), g.weight("wa", 64, 64));
  const model::View b = g.matmul("b", narrow("qa", a), g.weight("wb", 64, 64));
  const model::View c = g.matmul("c", narrow("qb", b), g.weight("wc", 64, 64));
  const model::Graph graph = g.take(narrow("qc", c));
  const MemoryFloor memory(machine);
  // Through the skew of 64 x 64 PEs into the accumulator; out of it in a cycle, a vector in the
  // next, and a requantisation.
  const double product = 64 + 64 - 1 + 1, chain = 1 + 1 + 5;
  const double from_a_to_c = chain + product + chain + product;
  EXPECT_DOUBLE_EQ(path(graph, machine),
                   memory.read_trip(80) + memory.read_trip(1) + product + from_a_to_c + 2);
  // All of a takes 16 folds of 16 cycles. No MAC of c can begin before all of a has gone through
  // b, then it takes 16 folds, too.
  machine.array.rows = machine.array.cols = 16;
  const double small = 16 + 16 - 1 + 1, rest = small - 16;
  EXPECT_DOUBLE_EQ(path(graph, machine), memory.read_trip(80) + memory.read_trip(1) + 16 * 16 +
                                             rest + chain + small + chain + 16 * 16 + rest + 2);
}

TEST(LeastPath, ContainsTheNormsOfAllRowsBeforeTheLastOneGoesOn) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.array.rows = machine.array.cols = 64;
  const model::Graph graph = network(4, 40, false);
  const double layer = path(graph, machine) - path(network(3, 40, false), machine);
  const auto products = [&](std::uint64_t n, std::uint64_t k) {
    return static_cast<double>(hw::array_cycles(machine.array, 1, n, k, true).interval);
  };
  // Of 40 rows in four heads: the passes of a softmax over three vectors, a division, and a norm.
  const double chains = 4 * 40 * (2 * 3 + 13) + 39 * (4 + 28);
  EXPECT_GT(layer, chains + products(128, 64) + products(64, 128));
  EXPECT_LT(layer, 1.5 * chains);
}

TEST(DependenceGraph, OfARowWiseStageNeedsItsRow) {
  const model::Graph graph = network(2, 40, false);
  const auto on = DependenceGraph(graph).on(node(graph, "blocks.0.norm2"), graph.nodes.size());
  EXPECT_EQ(on[node(graph, "blocks.0.mlp.fc1")].work, Reach::kRow) << "a MAC of any element";
  EXPECT_EQ(on[node(graph, "blocks.1.attn.head0.context")].work, Reach::kAll);
}

TEST(LeastPath, GrowsByTheSameWithEveryLayerThatNeedsAllOfTheOneBefore) {
  const hw::Machine machine = hw::find_machine("transformer");
  const double two = path(network(2, 40, false), machine);
  const double three = path(network(3, 40, false), machine);
  const double four = path(network(4, 40, false), machine);
  EXPECT_GT(three, two);
  EXPECT_NEAR(four - three, three - two, 1e-6);
  EXPECT_LT(path(network(4, 40, true), machine), four) << "rows need no later ones";
}

TEST(LeastPath, ContainsWhatAttentionAndTheMlpTakeInAnyOrder) {
  const hw::Machine machine = hw::find_machine("transformer");
  const double layer = path(network(4, 40, false), machine) - path(network(3, 40, false), machine);
  const auto array = [&](std::uint64_t m, std::uint64_t n, std::uint64_t k) {
    return static_cast<double>(hw::array_cycles(machine.array, m, n, k, true).interval);
  };
  EXPECT_GT(layer, 4 * array(40, 16, 40) + array(40, 64, 64) + 2 * array(40, 128, 64));
}

TEST(LeastPath, IsNotKnownOfHostsAndEngines) {
  const model::Graph graph = network(2, 40, false);
  EXPECT_EQ(path(graph, hw::find_machine("vitcod")), 0);
}

/// Core cycles that the DRAM takes for a stream of reads that have all arrived at once.
double streamed_cycles(const hw::Machine& machine, std::uint64_t bytes) {
  hw::DramTiming dram(machine.dram);
  std::uint64_t end = 0;
  for (std::uint64_t at = 0; at < bytes; at += 64) end = dram.access(at, 64, false, 0).end;
  return static_cast<double>(end) * machine.core.clock_mhz / 1e6;
}

TEST(MemoryFloor, CountsRefreshes) {
  const hw::Machine machine;
  constexpr std::uint64_t kBytes = 4 << 20;
  // Half in each direction of the bus, so that the DRAM is the limit.
  const double least = MemoryFloor(machine).move(kBytes / 2, 0, kBytes / 2);
  EXPECT_GT(least, 1.04 * kBytes / 19.2) << "350 ns and a row to open of 7.8 us";
  const double streamed = streamed_cycles(machine, kBytes);
  EXPECT_LE(least, streamed);
  EXPECT_GT(1.01 * least, streamed);
}

TEST(MemoryFloor, WithoutRefreshIsTheBursts) {
  hw::Machine machine;
  machine.dram.t_refi_ns = 0;
  // What the write queue holds at the end has not moved.
  const double queued = machine.dram.write_queue * 64.0;
  EXPECT_NEAR(MemoryFloor(machine).move(1 << 19, 0, 1 << 19), ((1 << 20) - queued) / 19.2, 30);
  machine.dram.write_queue = 0;
  EXPECT_NEAR(MemoryFloor(machine).move(1 << 19, 0, 1 << 19), (1 << 20) / 19.2, 30);
}

TEST(MemoryFloor, OfFixedLatencyIsTheAnswerBeats) {
  hw::Machine machine;
  machine.memory.model = hw::MemoryModel::kFixed;
  machine.memory.latency = 10;
  const MemoryFloor wide(machine);
  EXPECT_NEAR(wide.read_trip(64), 4 + 10 + 3 + 4, 0.01);
  EXPECT_NEAR(wide.write_trip(64), 4 + 10 + 3 + 4, 0.01);
  machine.memory.read_beat_cycles = 8;
  const MemoryFloor narrow(machine);
  EXPECT_NEAR(narrow.read_trip(64), 4 + 10 + 3 + 4, 0.01) << "a floor: the gaps are not in it";
  // Four beats of a read of 64 bytes, one of a write.
  EXPECT_NEAR(narrow.move(6400, 0, 6400), 100 * (4 + 1) * 8, 1e-6);
}

TEST(MemoryFloor, CountsTheWindowAndTheRequestOfACycle) {
  hw::Machine machine;
  machine.dma.outstanding_reads = 1;
  const MemoryFloor one(machine);
  // 4 + 4 bus cycles, 38 for 20 + 14.16 + 3.34 ns at the DRAM, 4 beats.
  EXPECT_NEAR(one.read_trip(64), 4 + 38 + 3 + 4, 0.01);
  EXPECT_NEAR(one.write_trip(64), 4 + 20 + 3 + 4, 0.01) << "into the write queue";
  hw::Machine unqueued = machine;
  unqueued.dram.write_queue = 0;
  EXPECT_NEAR(MemoryFloor(unqueued).write_trip(64), 4 + 34 + 3 + 4, 0.01);
  EXPECT_NEAR(one.move(6400, 0, 0), 100 * one.read_trip(64), 1e-6);
  EXPECT_NEAR(one.move(0, 6400, 0), 100 * one.read_trip(64), 1e-6);
  machine.dma.outstanding_reads = 64;
  machine.dma.row_bytes = 4;
  EXPECT_NEAR(MemoryFloor(machine).move(6400, 0, 0), 1600, 1e-6);
}

/// Core cycles of a port that reads one request after the other on an idle machine, each in the
/// slot of the oldest: the contracts of port, bus and DRAM step by step.
double ported_cycles(const hw::Machine& machine, std::uint64_t bytes) {
  hw::DramTiming dram(machine.dram);
  std::vector<std::uint64_t> slots(machine.dma.outstanding_reads, 0);
  std::uint64_t issue = 0, bus_free = 0;
  const std::uint64_t beats = 64 / machine.bus.width_bytes;
  for (std::uint64_t i = 0; i < bytes / 64; ++i) {
    std::uint64_t& slot = slots[i % slots.size()];
    issue = std::max(issue, slot);
    const std::uint64_t arrival = (issue + machine.bus.request_latency) * 1000;
    const std::uint64_t there = (dram.access(i * 64, 64, false, arrival).end + 999) / 1000;
    bus_free = std::max(bus_free, there) + beats;
    slot = bus_free - 1 + machine.bus.response_latency;
    ++issue;
  }
  return static_cast<double>(*std::max_element(slots.begin(), slots.end()));
}

TEST(MemoryFloor, WindowsWaitForRefreshes) {
  hw::Machine machine;
  machine.bus.width_bytes = 32;
  machine.dma.outstanding_reads = 8;
  constexpr std::uint64_t kBytes = 4 << 20;
  const double least = MemoryFloor(machine).move(kBytes, 0, 0);
  EXPECT_GT(least, 1.015 * kBytes / 64 * MemoryFloor(machine).read_trip(64) / 8);
  const double ported = ported_cycles(machine, kBytes);
  EXPECT_LE(least, ported);
  EXPECT_GT(1.05 * least, ported);
  EXPECT_EQ(MemoryFloor(machine).move(0, kBytes, 0), least) << "operands have a window, too";
}

TEST(MemoryFloor, SharesWhatEitherUnitReadsBetweenTheirPorts) {
  hw::Machine machine;
  machine.dma.outstanding_reads = 1;
  const MemoryFloor memory(machine);
  EXPECT_DOUBLE_EQ(memory.move(6400, 0, 0, 6400), memory.move(6400, 0, 0));
  EXPECT_DOUBLE_EQ(memory.move(6400, 0, 0, 12800), memory.move(9600, 0, 0));
  EXPECT_DOUBLE_EQ(memory.move(0, 0, 0, 12800), memory.move(6400, 0, 0));
  machine.dma.outstanding_reads = 64;
  EXPECT_DOUBLE_EQ(MemoryFloor(machine).move(64000, 0, 0, 64000),
                   MemoryFloor(machine).move(64000, 64000, 0))
      << "the bus";
}

TEST(MemoryFloor, TheBusMovesOnlyWhatIsInFlightDuringARefresh) {
  hw::Machine machine;
  constexpr std::uint64_t kBytes = 4 << 20;
  const double least = MemoryFloor(machine).move(kBytes, 0, 0);
  EXPECT_GT(least, 1.03 * kBytes / 16) << "3 % of the time";
  const double ported = ported_cycles(machine, kBytes);
  EXPECT_LE(least, ported);
  EXPECT_GT(1.03 * least, ported);
  machine.dram.t_refi_ns = 0;
  EXPECT_NEAR(MemoryFloor(machine).move(kBytes, 0, 0), kBytes / 16, 1);
}

TEST(MemoryFloor, IsNeverAboveAPortOfAnyMachine) {
  for (const std::uint32_t window : {1U, 4U, 8U, 12U, 16U, 64U}) {
    for (const std::uint32_t width : {4U, 8U, 16U, 32U, 64U}) {
      for (const std::uint32_t channels : {1U, 4U}) {
        hw::Machine machine;
        machine.dma.outstanding_reads = window;
        machine.bus.width_bytes = width;
        machine.dram.channels = channels;
        for (const std::uint64_t bytes : {64U, 6400U, 100'000U, 1U << 20}) {
          const double ported = ported_cycles(machine, bytes / 64 * 64);
          EXPECT_LE(MemoryFloor(machine).move(static_cast<double>(bytes / 64 * 64), 0, 0), ported)
              << window << " in flight, " << width << " bytes, " << channels << " channels";
        }
      }
    }
  }
}

}  // namespace
}  // namespace systole::analysis

#include "mapper/choose/plan_replay.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "hw/description/machine_file.h"
#include "mapper/fuse/fusion.h"
#include "mapper/place/pipeline.h"
#include "mapper/place/placement.h"
#include "mapper/test_graphs.h"
#include "model/seeded/shapes.h"
#include "support/network/pipelined_mapping.h"

namespace systole::mapper {
namespace {

PlanReplay replay(const model::Graph& graph, const hw::Machine& machine, TilingChoice& choice,
                  std::uint64_t limit, const Pipelining& allowed = {},
                  Repeats repeats = Repeats::kTakenOver) {
  const std::vector<Group> groups = fuse(graph, machine).groups;
  const std::vector<Pipeline> pipelines = find_pipelines(graph, groups, machine, allowed);
  const Placement placement = place_tensors(graph, groups, pipelines, machine);
  return replay_plan(graph, machine, groups, pipelines, placement, choice, repeats, limit);
}
PlanReplay replay(const model::Graph& graph, const hw::Machine& machine, std::uint64_t limit) {
  TilingChoice choice(machine);
  return replay(graph, machine, choice, limit);
}

/// Machines whose array, post-op unit and memory, in turn, hold everything up.
std::vector<hw::Machine> machines() {
  std::vector<hw::Machine> all(4, hw::find_machine("transformer"));
  all[1].array.rows = all[1].array.cols = 4;
  all[2].postop.lanes = 4;
  all[3].bus.width_bytes = 8;
  return all;
}

// The least time of what is left never says that a plan is late which is not.
TEST(PlanReplay, PlanThatIsAsFastAsTheLimitIsNotGivenUp) {
  for (const hw::Machine& machine : machines()) {
    for (const model::Graph& graph : {graph_of("vit17"), graph_of("vit65"), product(64, 512, 512),
                                      product(1, 1024, 1024), product(2048, 64, 16)}) {
      const PlanReplay plan = replay(graph, machine, UINT64_MAX);
      const std::uint64_t cycles = plan.cycles;
      EXPECT_LE(plan.least, cycles) << graph.name;
      const PlanReplay again = replay(graph, machine, cycles);
      EXPECT_FALSE(again.given_up) << graph.name;
      EXPECT_EQ(again.cycles, cycles);
    }
  }
}

TEST(PlanReplay, PlanIsGivenUpBeforeItIsLateIfItsUnitsNeedLonger) {
  const std::vector<hw::Machine> all = machines();
  // 64 x 512 x 512 on 16 cells, 2048 rows of 64 results in vectors of 4, 1024 x 1024 weights.
  const std::uint64_t array = 64 * 512 * 512 / 16, postop = 2048 * 64 / 4, loads = 1024 * 1024 / 8;
  EXPECT_EQ(replay(product(64, 512, 512), all[1], array - 1).replayed, 0U);
  EXPECT_EQ(replay(product(64, 512, 512), all[1], array).replayed, 1U);
  EXPECT_EQ(replay(product(2048, 64, 16), all[2], postop - 1).replayed, 0U);
  EXPECT_EQ(replay(product(2048, 64, 16), all[2], postop).replayed, 1U);
  EXPECT_EQ(replay(product(1, 1024, 1024), all[3], loads - 1).replayed, 0U);
  EXPECT_EQ(replay(product(1, 1024, 1024), all[3], loads).replayed, 1U);
  EXPECT_EQ(replay(product(64, 512, 512), all[1], UINT64_MAX).least, array);
  EXPECT_EQ(replay(product(2048, 64, 16), all[2], UINT64_MAX).least, postop);
  EXPECT_EQ(replay(product(1, 1024, 1024), all[3], UINT64_MAX).least, loads);
}

// Operators whose last commands are not replayed end where those that they repeat say.
TEST(PlanReplay, OperatorsOfRepeatedCommandsTakeWhatTheyWouldIfAllWereReplayed) {
  model::EncoderShape shape = model::find_shape("bert-base");
  shape.layers = 2;
  model::SeededOptions options;
  options.shape_only = true;
  const model::Graph graph = model::make_seeded_encoder("bert", shape, 256, 1, options);
  for (const hw::Machine& machine : machines()) {
    for (const bool by_heads : {false, true}) {
      const Pipelining allowed{by_heads, false, 0, false};
      TilingChoice choice(machine);  // decides once
      const PlanReplay some = replay(graph, machine, choice, UINT64_MAX, allowed);
      const PlanReplay all =
          replay(graph, machine, choice, UINT64_MAX, allowed, Repeats::kReplayed);
      const auto cycles = static_cast<double>(all.cycles);
      EXPECT_NEAR(static_cast<double>(some.cycles) / cycles, 1, 0.01);
      ASSERT_EQ(some.tilings.size(), all.tilings.size());
      for (std::size_t i = 0; i < all.tilings.size(); ++i) {
        ASSERT_TRUE(same_tiles(some.tilings[i], all.tilings[i])) << i;
        const auto here = static_cast<double>(all.tilings[i].cycles);
        EXPECT_NEAR(static_cast<double>(some.tilings[i].cycles), here, 0.05 * here + 2'000)
            << i << ' ' << by_heads;
      }
    }
  }
}

// To compare plans, a pipeline between new neighbours is tried with what was found between others.
// That is near to a full search, and not the same.
TEST(PlanReplay, PlansAreComparedByLessThanAFullSearch) {
  const hw::Machine machine = hw::find_machine("transformer");
  const model::Graph graph = graph_of("vit65");
  TilingChoice choice(machine);
  choice.search_all(false);
  std::vector<std::uint64_t> in_short;
  for (const Pipelining& allowed : test::kAllPipelinings) {
    in_short.push_back(replay(graph, machine, choice, UINT64_MAX, allowed).cycles);
  }
  choice.search_all(true);
  std::uint64_t short_sum = 0, sum = 0;
  for (std::size_t i = 0; i < in_short.size(); ++i) {
    const Pipelining& allowed = test::kAllPipelinings[i];
    const std::uint64_t in_full = replay(graph, machine, choice, UINT64_MAX, allowed).cycles;
    EXPECT_LE(in_short[i], in_full + in_full / 10) << test::text_of(allowed);
    EXPECT_LE(in_full, in_short[i] + in_short[i] / 10) << test::text_of(allowed);
    short_sum += in_short[i];
    sum += in_full;
  }
  EXPECT_NE(sum, short_sum);
}

}  // namespace
}  // namespace systole::mapper

#include "mapper/choose/plan_replay.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "hw/description/machine_file.h"
#include "mapper/fuse/fusion.h"
#include "mapper/place/pipeline.h"
#include "mapper/place/placement.h"
#include "mapper/test_graphs.h"

namespace systole::mapper {
namespace {

PlanReplay replay(const model::Graph& graph, const hw::Machine& machine, std::uint64_t limit) {
  const std::vector<Group> groups = fuse(graph, machine).groups;
  const std::vector<Pipeline> pipelines = find_pipelines(graph, groups, machine, {});
  const Placement placement = place_tensors(graph, groups, pipelines, machine);
  TilingChoice choice(machine);
  return replay_plan(graph, machine, groups, pipelines, placement, choice, Repeats::kTakenOver,
                     limit);
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

}  // namespace
}  // namespace systole::mapper

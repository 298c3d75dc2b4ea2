#include "mapper/choose/tiling_trials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "hw/description/machine_file.h"
#include "mapper/fuse/fusion.h"
#include "mapper/test_graphs.h"
#include "mapper/tile/tiling.h"

namespace systole::mapper {
namespace {

// What the first commands of a tiling say of all of them.
TEST(TilingTrials, ASampleKnowsThePace) {
  constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  const model::Graph graph = product(256, 512, 1024);
  for (const std::uint32_t kib : {32U, 64U, 128U}) {
    for (const std::uint32_t banks : {2U, 4U}) {
      hw::Machine machine = hw::find_machine("transformer");
      machine.scratchpad.kib = kib;
      machine.scratchpad.banks = banks;
      const std::vector<Group> groups = fuse(graph, machine).groups;
      const std::vector<Pipeline> pipelines = find_pipelines(graph, groups, machine, {});
      const Placement placement = place_tensors(graph, groups, pipelines, machine);
      const Share& share = placement.shares.front();
      ConstantImage constants(placement.dram_end);
      hw::Program program;
      const Emitter emitter({graph, machine, placement, constants, program});
      const Replay replay(machine);
      std::vector<std::vector<hw::Command>> spare;
      Replay scratch(machine);
      TiledGroup group{&groups.front(), {}, {}, share};
      group.problem = tiling_problem(graph, groups.front(), placement, machine, share);
      Tiler tiler(machine);
      std::uint64_t best = kNoLimit, chosen = 0, least = kNoLimit;
      for (const Tiling& tiling : tiler.candidates(group.problem, "product")) {
        group.tiling = tiling;
        TilingTrials trials(pipelines.front(), nullptr, emitter, replay, spare, scratch);
        const std::uint64_t expected = trials.expected_by_sample(group);
        const std::optional<std::uint64_t> all = trials.end({group}, kNoLimit);
        ASSERT_TRUE(all);
        const double off = static_cast<double>(expected) / static_cast<double>(*all) - 1;
        EXPECT_LT(std::abs(off), 0.1) << kib << " KiB, " << banks << " banks, " << tiling.m << " x "
                                      << tiling.n << " x " << tiling.k;
        if (expected < least) {
          least = expected;
          chosen = *all;
        }
        best = std::min(best, *all);
      }
      EXPECT_LE(static_cast<double>(chosen), 1.05 * static_cast<double>(best))
          << kib << ' ' << banks;
    }
  }
}

}  // namespace
}  // namespace systole::mapper

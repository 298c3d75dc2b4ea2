#include "testbench/run/mapping_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hw/description/machine_file.h"
#include "model/seeded/shapes.h"
#include "support/input_error.h"
#include "testbench/network/networks.h"

namespace systole::testbench {
namespace {

hw::Machine searching(hw::MappingObjective objective) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.mapper.strategy = hw::MappingStrategy::kSearch;
  machine.mapper.objective = objective;
  return machine;
}

const MappingCandidate& plain(const MappingSearch& search) {
  return *std::find_if(search.candidates.begin(), search.candidates.end(), [](const auto& c) {
    return c.mapper.strategy == hw::MappingStrategy::kCost &&
           c.mapper.fusion == hw::FusionLevel::kAll;
  });
}

TEST(MappingSearch, IsNeverWorseThanCostExpectedAndSimulated) {
  for (const hw::MappingObjective objective :
       {hw::MappingObjective::kCycles, hw::MappingObjective::kEnergy, hw::MappingObjective::kEdp}) {
    const hw::Machine machine = searching(objective);
    const MappingSearch search = search_mappings(load_network("vit17", machine).graph, machine, 2);
    ASSERT_GE(search.candidates.size(), 3U);
    const MappingCandidate& cost = plain(search);
    EXPECT_LE(search.value(search.candidates.front().expected), search.value(cost.expected));
    ASSERT_TRUE(cost.simulated && search.chosen().simulated);
    EXPECT_LE(search.value(*search.chosen().simulated), search.value(*cost.simulated));
    // By cycles it may well find what the cost model finds, which is then the one that is shown.
    if (objective != hw::MappingObjective::kCycles) {
      EXPECT_TRUE(std::any_of(search.candidates.begin(), search.candidates.end(),
                              [](const MappingCandidate& c) { return c.tried > 1000; }));
    }
    const auto confirmed =
        std::count_if(search.candidates.begin(), search.candidates.end(),
                      [](const MappingCandidate& c) { return c.simulated.has_value(); });
    EXPECT_TRUE(confirmed == 2 || confirmed == 3);
    for (std::size_t i = 1; i < search.candidates.size(); ++i) {
      EXPECT_LE(search.value(search.candidates[i - 1].expected),
                search.value(search.candidates[i].expected));
    }
  }
}

TEST(MappingSearch, ExpectsAboutWhatIsSimulated) {
  const hw::Machine machine = searching(hw::MappingObjective::kEdp);
  const MappingSearch search = search_mappings(load_network("vit17", machine).graph, machine, 100);
  for (const MappingCandidate& candidate : search.candidates) {
    ASSERT_TRUE(candidate.simulated) << candidate.strategy_name();
    const double cycles = candidate.simulated->cycles / candidate.expected.cycles;
    EXPECT_GT(cycles, 0.6) << candidate.strategy_name() << " " << candidate.fusion_name();
    EXPECT_LT(cycles, 1.5) << candidate.strategy_name() << " " << candidate.fusion_name();
    const double energy = candidate.simulated->joules / candidate.expected.joules;
    EXPECT_GT(energy, 0.75) << candidate.strategy_name() << " " << candidate.fusion_name();
    EXPECT_LT(energy, 1.1) << candidate.strategy_name() << " " << candidate.fusion_name();
  }
}

TEST(MappingSearch, WithoutSimulationsTakesWhatIsExpectedToBeBest) {
  hw::Machine machine = searching(hw::MappingObjective::kCycles);
  machine.mapper.fusion = hw::FusionLevel::kNone;
  const MappingSearch search = search_mappings(load_network("vit17", machine).graph, machine, 0);
  EXPECT_EQ(search.best, 0U);
  for (const MappingCandidate& candidate : search.candidates) {
    EXPECT_FALSE(candidate.simulated);
    EXPECT_EQ(candidate.fusion_name(), "none") << "no more than the machine's";
  }
}

TEST(MappingSearch, RefusesANetworkThatDoesNotFit) {
  hw::Machine machine = searching(hw::MappingObjective::kCycles);
  machine.accumulator.kib = 1;  // half of it is less than a row for LayerNorm
  const model::Graph graph =
      model::make_seeded_encoder("wide", {1, 256, 4, 64, true}, 16, 1, {machine.datapath, true});
  EXPECT_EQ(input_error_of([&] {
              (void)search_mappings(graph, machine, 1);
            }).rfind("accumulator.kib = 1", 0),
            0U);
}

}  // namespace
}  // namespace systole::testbench

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/description/machine_text.h"
#include "support/network/encoder_run.h"
#include "testbench/cores/column_parts.h"
#include "testbench/cores/head_split.h"
#include "testbench/cores/layer_split.h"
#include "testbench/network/tensors.h"

/// How a network is divided among cores, before anything runs.
namespace systole::testbench {
namespace {

using test::Workload;

std::shared_ptr<const model::Graph> whole_of(const Workload& workload) {
  return {std::shared_ptr<void>(), &workload.graph};
}

// Each column of the output leaves the system once, and begins at a row of the array.
TEST(ColumnParts, GiveEachColumnOfTheOutputToOneCore) {
  for (const std::uint32_t width : {64U, 96U, 128U}) {
    const Workload workload = test::encoder_workload({2, width, 4, 2 * width, true}, 13, 1);
    const model::Graph& graph = workload.graph;
    const std::uint32_t cols = graph.tensors[output_tensor(graph)].cols;
    for (const std::size_t cores : {1U, 2U, 4U}) {
      std::vector<int> given(cols);
      for (const auto& segment : column_parts(graph, cores)) {
        ASSERT_EQ(segment.size(), cores);
        for (const auto& part : segment) {
          if (!part) continue;
          for (const Columns& columns : part->output) {
            for (std::uint32_t col = columns.begin; col < columns.end; ++col) ++given.at(col);
          }
        }
      }
      EXPECT_EQ(std::count(given.begin(), given.end(), 1), cols) << width << ' ' << cores;
    }
  }
}

// Of the hidden layer, which no head divides.
TEST(ColumnParts, AreMultiplesOfSixteenWhereThereAreEnough) {
  const Workload workload = test::encoder_workload({1, 64, 2, 80, true}, 9, 1);
  std::size_t looked_at = 0;
  for (const auto& segment : column_parts(workload.graph, 2)) {
    for (const auto& part : segment) {
      if (!part) continue;
      for (std::size_t id = 0; id < part->graph->tensors.size(); ++id) {
        const TensorOrigin& origin = part->origins[id];
        if (origin.whole_cols != 80 || origin.columns.empty()) continue;
        ++looked_at;
        EXPECT_EQ(origin.columns.front() % 16, 0U) << part->graph->tensors[id].name;
      }
    }
  }
  EXPECT_GE(looked_at, 2U);
}

/// Expected cycles of stages between cuts, each mapped once.
class ExpectedStages {
 public:
  ExpectedStages(const model::Graph& graph, const hw::Machine& machine)
      : graph_(graph), machine_(machine), cuts_(cuts_of(graph)) {
    cuts_.insert(cuts_.begin(), 0);
    cuts_.push_back(graph.nodes.size());
  }
  std::uint64_t of(std::size_t begin, std::size_t end) {
    std::uint64_t& cycles = cycles_[{begin, end}];
    if (cycles == 0) {
      cycles = mapper::map_graph(*sub_graph(graph_, cuts_[begin], cuts_[end]).graph, machine_)
                   .expected_cycles;
    }
    return cycles;
  }
  /// The longest stage of cuts by their numbers, and which it is.
  std::pair<std::uint64_t, std::size_t> longest(const std::vector<std::size_t>& at) {
    std::pair<std::uint64_t, std::size_t> found{0, 0};
    for (std::size_t stage = 0; stage + 1 < at.size(); ++stage) {
      const std::uint64_t cycles = of(at[stage], at[stage + 1]);
      if (cycles > found.first) found = {cycles, stage};
    }
    return found;
  }
  /// From these cuts on, the longest stage gives parts away while the one that takes them stays
  /// shorter.
  std::vector<std::size_t> after_giving(std::vector<std::size_t> at) {
    for (;;) {
      const auto found = longest(at);
      const std::size_t where = found.second;
      if (at[where + 1] - at[where] < 2) return at;
      if (where > 0 && of(at[where - 1], at[where] + 1) < found.first) {
        ++at[where];
      } else if (where + 2 < at.size() && of(at[where + 1] - 1, at[where + 2]) < found.first) {
        --at[where + 1];
      } else {
        return at;
      }
    }
  }
  /// Where the stages of a plan begin, and the end.
  [[nodiscard]] std::vector<std::size_t> cuts_of_plan(const CorePlan& plan) const {
    std::vector<std::size_t> at{0};
    std::size_t node = 0;
    for (std::size_t core = 0; core < plan.system.cores.size(); ++core) {
      const auto program = std::find_if(plan.programs.begin(), plan.programs.end(),
                                        [&](const CoreProgram& one) { return one.core == core; });
      node += program->graph->nodes.size();
      const auto cut = std::find(cuts_.begin(), cuts_.end(), node);
      at.push_back(static_cast<std::size_t>(cut - cuts_.begin()));
    }
    return at;
  }

 private:
  const model::Graph& graph_;
  const hw::Machine machine_;
  std::vector<std::size_t> cuts_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> cycles_;
};

// Whichever cut of the longest stage moves, and whichever way: of the two stages beside it one
// would be as long.
TEST(LayerSplit, NoCutOfTheLongestStageCanMove) {
  const Workload workload = test::encoder_workload({3, 32, 4, 64, true}, 13, 1);
  test::Random random(12);
  std::size_t moves = 0;
  for (std::uint32_t i = 0; i < 10; ++i) {
    hw::Machine machine = test::random_fit(random, workload.graph).first;
    machine.dram.mib = 128;
    SCOPED_TRACE(hw::to_toml(machine));
    const std::size_t cores = 2 + i % 3;
    const hw::CoreSystem system = hw::equal_cores(machine, cores);
    ExpectedStages stages(workload.graph, hw::mapped_machine(system, 0));
    const CorePlan plan = plan_layers(system, whole_of(workload), 1);
    const std::vector<std::size_t> at = stages.cuts_of_plan(plan);
    const std::pair<std::uint64_t, std::size_t> found = stages.longest(at);
    const std::uint64_t longest = found.first;
    const std::size_t where = found.second;
    for (const std::size_t cut : {where, where + 1}) {
      if (cut == 0 || cut == cores) continue;
      for (const bool later : {false, true}) {
        std::vector<std::size_t> moved = at;
        later ? ++moved[cut] : --moved[cut];
        if (moved[cut] == moved[cut - 1] || moved[cut] == moved[cut + 1]) continue;
        EXPECT_GE(
            std::max(stages.of(moved[cut - 1], moved[cut]), stages.of(moved[cut], moved[cut + 1])),
            longest);
        ++moves;
      }
    }
    // Whatever a stage gives away from there makes no plan that is better.
    EXPECT_LE(longest, stages.longest(stages.after_giving(at)).first);
  }
  EXPECT_GT(moves, 20U);
}

/// By task: those that are done before it begins, because it waits for them, or its core took them
/// before.
std::vector<std::vector<bool>> done_before(const CorePlan& plan) {
  std::vector<std::vector<bool>> before(plan.tasks.size(), std::vector<bool>(plan.tasks.size()));
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    std::vector<std::size_t> direct = plan.tasks[i].after;
    for (std::size_t j = 0; j < i; ++j) {
      if (plan.programs[*plan.tasks[j].program].core ==
          plan.programs[*plan.tasks[i].program].core) {
        direct.push_back(j);
      }
    }
    for (const std::size_t j : direct) {
      before[i][j] = true;
      for (std::size_t k = 0; k < before[j].size(); ++k) {
        if (before[j][k]) before[i][k] = true;
      }
    }
  }
  return before;
}

// No core writes a buffer that another may still read, or reads one that is not complete.
TEST(LayerSplit, BuffersBetweenStagesHaveAnOrder) {
  const Workload workload = test::encoder_workload({3, 32, 4, 64, true}, 9, 1);
  for (const std::size_t cores : {2U, 3U, 4U}) {
    const CorePlan plan =
        plan_layers(hw::equal_cores(hw::find_machine("transformer"), cores), whole_of(workload), 7);
    const auto before = done_before(plan);
    const auto place = [&](std::size_t task, bool output) {
      const CoreProgram& program = plan.programs[*plan.tasks[task].program];
      const model::Graph& graph = *program.graph;
      return mapper::place_of(graph, *program.mapping,
                              output ? output_tensor(graph) : input_tensor(graph));
    };
    std::size_t shared = 0;
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const bool conflict = place(j, true).address == place(i, false).address ||
                              place(i, true).address == place(j, false).address ||
                              place(i, true).address == place(j, true).address;
        if (!conflict) continue;
        ++shared;
        EXPECT_TRUE(before[i][j]) << cores << ": " << j << ", " << i;
      }
    }
    EXPECT_GT(shared, 7 * (cores - 1));
  }
}

// What every core computes for itself each has in memory for itself, in one place for all segments:
// a slow core would else read what a fast one has written for its next inference.
TEST(HeadSplit, CopiesOfTheCoresAreApart) {
  const Workload workload = test::encoder_workload({2, 64, 4, 128, true}, 9, 1);
  constexpr std::size_t kCores = 3;
  const CorePlan plan =
      plan_heads(hw::equal_cores(hw::find_machine("transformer"), kCores), whole_of(workload), 1);
  const auto parts = column_parts(workload.graph, kCores);
  std::map<model::TensorId, std::map<std::size_t, std::set<std::uint64_t>>> places;  // by core
  std::size_t next = 0;
  for (const auto& segment : parts) {
    for (std::size_t core = 0; core < kCores; ++core) {
      if (!segment[core]) continue;
      const CoreProgram& program = plan.programs[next++];
      ASSERT_EQ(program.core, core);
      for (const ColumnPart::Exchanged& exchanged : segment[core]->exchanged) {
        if (!exchanged.own) continue;
        places[exchanged.whole][core].insert(program.mapping->tensors[exchanged.here].address);
      }
    }
  }
  EXPECT_GE(places.size(), 2U);
  for (const auto& [whole, by_core] : places) {
    std::set<std::uint64_t> all;
    for (const auto& [core, addresses] : by_core) {
      EXPECT_EQ(addresses.size(), 1U) << workload.graph.tensors[whole].name;
      all.insert(addresses.begin(), addresses.end());
    }
    EXPECT_EQ(all.size(), by_core.size()) << workload.graph.tensors[whole].name;
  }
}

std::uint64_t constant_bytes(const CoreProgram& program) {
  std::uint64_t bytes = 0;
  for (const hw::MemoryPiece& piece : program.mapping->image) {
    if (!piece.is_program) bytes += piece.bytes.size();
  }
  return bytes;
}

// Weights of a network are in memory once for cores that run it alike.
TEST(BatchSplit, EqualCoresShareTheirConstants) {
  const Workload workload = test::encoder_workload({2, 32, 4, 64, true}, 13, 4);
  const hw::Machine machine = hw::find_machine("transformer");
  const auto mapping =
      std::make_shared<mapper::Mapping>(mapper::map_graph(workload.graph, machine));
  const CoreSubject subject{whole_of(workload), mapping};
  const CorePlan plan = plan_batch(hw::equal_cores(machine, 3), {subject, subject, subject}, 4);
  EXPECT_GT(constant_bytes(plan.programs[0]), 0U);
  EXPECT_EQ(constant_bytes(plan.programs[1]), 0U);
  EXPECT_EQ(constant_bytes(plan.programs[2]), 0U);
}

}  // namespace
}  // namespace systole::testbench

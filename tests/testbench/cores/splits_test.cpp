#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
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

// A part of the longest stage moves to its neighbour as long as that one stays shorter.
TEST(LayerSplit, TheLongestStageCannotGiveAnyMore) {
  for (const char* name : {"transformer", "tiny", "gemmini"}) {
    hw::Machine machine = hw::find_machine(name);
    machine.host.operators = hw::HostOperators::kNone;
    const Workload workload = test::encoder_workload({3, 32, 4, 128, true}, 21, 1);
    const model::Graph& graph = workload.graph;
    const hw::CoreSystem system = hw::equal_cores(machine, 2);
    const CorePlan plan = plan_layers(system, whole_of(workload), 1);
    const std::size_t cut = plan.programs.front().graph->nodes.size();
    const std::vector<std::size_t> cuts = cuts_of(graph);
    const auto at = std::find(cuts.begin(), cuts.end(), cut);
    ASSERT_NE(at, cuts.end());
    const auto cycles = [&](std::size_t begin, std::size_t end) {
      return mapper::map_graph(*sub_graph(graph, begin, end).graph, machine).expected_cycles;
    };
    const std::size_t end = graph.nodes.size();
    const std::uint64_t first = cycles(0, cut), second = cycles(cut, end);
    if (first > second && at != cuts.begin()) {
      EXPECT_GE(cycles(*(at - 1), end), first) << name;
    }
    if (second > first && at + 1 != cuts.end()) {
      EXPECT_GE(cycles(0, *(at + 1)), second) << name;
    }
  }
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

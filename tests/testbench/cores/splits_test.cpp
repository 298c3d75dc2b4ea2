#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/network/encoder_run.h"
#include "testbench/cores/column_parts.h"
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

// A cut moves as long as that makes the longest stage shorter.
TEST(LayerSplit, NoNeighbourOfTheCutIsBetter) {
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
    const auto longest = [&](std::size_t where) {
      const auto cycles = [&](std::size_t begin, std::size_t end) {
        return mapper::map_graph(*sub_graph(graph, begin, end).graph, machine).expected_cycles;
      };
      return std::max(cycles(0, where), cycles(where, graph.nodes.size()));
    };
    const std::uint64_t chosen = longest(cut);
    if (at != cuts.begin()) {
      EXPECT_GE(longest(*(at - 1)), chosen) << name;
    }
    if (at + 1 != cuts.end()) {
      EXPECT_GE(longest(*(at + 1)), chosen) << name;
    }
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

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/network/core_plans.h"
#include "support/network/encoder_run.h"
#include "support/temp_directory.h"
#include "support/text_lines.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "testbench/cores/cores_simulation.h"
#include "testbench/cores/head_split.h"
#include "testbench/explain/pipeline_view.h"
#include "testbench/network/matmul_graph.h"
#include "testbench/report/action_counts.h"
#include "testbench/run/rtl_blocks.h"

/// What a run of several cores writes besides its report.
namespace systole::testbench {
namespace {

using test::Workload;

/// A tile core and one with attention engines, of another clock.
hw::CoreSystem unlike_cores() {
  const TempDirectory directory;
  return hw::find_system(directory.write("system.toml",
                                         "base = 'transformer'\n[[core]]\nname = 'tile'\n"
                                         "[[core]]\nname = 'sparse'\nkind = 'vitcod'\n"));
}

struct CoresViews : public test::SystemCTest {
  CoresResult run(const CorePlan& plan, const CoresOptions& options) const {
    test::fresh_kernel();
    return simulate(plan, workload.inputs, options);
  }
  const Workload workload = test::encoder_workload({2, 32, 4, 64, true}, 13, 4);
};

// Different widths, clocks and units, one DRAM, near or behind a link: the bits of the reference by
// every split.
TEST_F(CoresViews, UnlikeKindsOfCoresGiveTheSameBits) {
  hw::CoreSystem system = unlike_cores();
  ASSERT_NE(system.cores[0].machine.core.clock_mhz, system.cores[1].machine.core.clock_mhz);
  ASSERT_NE(system.cores[1].machine.attention.lines, 0U);
  for (const Split split : {Split::kBatch, Split::kLayers, Split::kHeads}) {
    SCOPED_TRACE(name_of(split));
    system.cores[1].link_ns = split == Split::kLayers ? 0 : 15;
    CoresOptions options;
    options.check = true;
    const CoresResult result = run(test::plan_of(split, system, workload), options);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
    for (const CoreShare& core : result.cores) {
      EXPECT_GT(core.tasks, 0U) << core.name;
      EXPECT_GT(core.macs, 0U) << core.name;
      EXPECT_EQ(core.running + core.wait + core.done + core.host, core.total);
    }
    const auto engines =
        std::find_if(result.blocks.begin(), result.blocks.end(),
                     [](const hw::BlockReport& block) { return block.name == "sparse.attention"; });
    ASSERT_NE(engines, result.blocks.end());
  }
}

// A row for each command of each core's first run, in cycles of the first core, arrows within a
// core.
TEST_F(CoresViews, PipelinesOfAllCoresAreInOneLog) {
  const hw::CoreSystem system = unlike_cores();
  CoresOptions options;
  options.functional = options.alone = false;
  const CorePlan plan = test::plan_of(Split::kLayers, system, workload);
  const CoresResult result = run(plan, options);
  const TempDirectory directory;
  std::vector<CoreCommands> cores;
  for (std::size_t i = 0; i < 2; ++i) {
    const FirstTask& first = result.first_tasks[i];
    cores.push_back({system.cores[i].name, first.program, first.traces, first.accounts,
                     system.cores[i].machine.core.clock_mhz, first.finished, 0});
  }
  {
    PipelineView view(directory.path("run.kanata"));
    view.write(cores);
  }
  std::istringstream in(read_file(directory.path("run.kanata")));
  std::map<std::uint64_t, std::uint64_t> thread_of;  // by row
  std::map<std::uint64_t, std::size_t> rows;         // by thread
  std::map<std::uint64_t, std::uint64_t> first_at, last_at;
  std::uint64_t now = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    std::uint64_t a = 0, b = 0, c = 0;
    words >> a >> b >> c;
    if (kind == "C=") now = a;
    if (kind == "C") now += a;
    if (kind == "I") {
      EXPECT_TRUE(thread_of.emplace(a, c).second) << "row " << a << " twice";
      EXPECT_EQ(b, rows[c]++) << "of its core";
      first_at.emplace(c, now);
    }
    if (kind == "R") last_at[thread_of.at(a)] = now;
    if (kind == "W") {
      EXPECT_EQ(thread_of.at(a), thread_of.at(b));
    }
    if (kind == "L" && b == 0) {
      EXPECT_NE(line.find("\t" + system.cores[thread_of.at(a)].name + " "), std::string::npos);
    }
  }
  for (std::uint32_t i = 0; i < 2; ++i) {
    const FirstTask& first = result.first_tasks[i];
    EXPECT_EQ(rows[i], first.program->commands.size() - 1);
    const std::uint64_t mhz = system.cores[0].machine.core.clock_mhz;
    const std::uint64_t own = system.cores[i].machine.core.clock_mhz;
    std::uint64_t last = 0;
    for (const tlm_model::CommandTrace& trace : first.traces)
      last = std::max(last, trace.completed);
    EXPECT_EQ(last_at[i], last * mhz / own);
  }
  EXPECT_GT(first_at[1], last_at[0]) << "the second stage waits for the first";
  EXPECT_LT(3 * result.first_tasks[0].finished, result.total_cycles) << "of four inferences";
  const std::uint64_t clock = system.cores[0].machine.core.clock_mhz;
  const std::uint64_t stage = result.first_tasks[0].finished - result.first_tasks[0].started;
  EXPECT_GE(result.cores[1].wait * clock, stage * system.cores[1].machine.core.clock_mhz)
      << "at least for the first one's first run";
  EXPECT_EQ(result.cores[0].done, result.cores[0].total - result.cores[0].running -
                                      result.cores[0].wait - result.cores[0].host);
  EXPECT_GT(result.cores[0].done * 2, stage) << "while the last inference is in the second stage";
}

// One inference for three cores: two have nothing to do from the beginning.
TEST_F(CoresViews, CoresWithoutWorkAreDone) {
  const hw::CoreSystem system = hw::equal_cores(hw::find_machine("transformer"), 3);
  Workload one = test::encoder_workload({2, 32, 4, 64, true}, 13, 1);
  CoresOptions options;
  options.functional = options.alone = false;
  test::fresh_kernel();
  const CoresResult result =
      simulate(test::plan_of(Split::kBatch, system, one), one.inputs, options);
  EXPECT_EQ(result.cores[0].tasks, 1U);
  for (const std::size_t i : {1U, 2U}) {
    const CoreShare& core = result.cores[i];
    EXPECT_EQ(core.tasks, 0U);
    EXPECT_EQ(core.running + core.wait, 0U);
    EXPECT_GT(core.done, core.total - core.total / 10);
    EXPECT_EQ(core.done + core.host, core.total);
  }
}

// The output's columns are spread over the cores.
TEST_F(CoresViews, ColumnsOfTheOutputComeFromAllCores) {
  const hw::Machine machine = hw::find_machine("transformer");
  const MatmulShape shape{20, 48, 80};
  const auto graph =
      std::make_shared<model::Graph>(make_matmul_graph(shape, machine.datapath, false));
  std::vector<std::vector<std::uint8_t>> expected;
  for (const std::size_t cores : {1U, 2U, 4U}) {
    CoresOptions options;
    options.check = true;
    options.alone = false;
    test::fresh_kernel();
    const CorePlan plan = plan_heads(hw::equal_cores(machine, cores), graph, 1);
    const CoresResult result = simulate(plan, {matmul_input(shape)}, options);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
    if (expected.empty()) expected = result.outputs;
    EXPECT_EQ(result.outputs, expected) << cores;
    for (const CoreShare& core : result.cores) EXPECT_GT(core.macs, 0U);
  }
}

TEST_F(CoresViews, ActionCountsNameTheBlocksOfEachCore) {
  const hw::CoreSystem system = unlike_cores();
  CoresOptions options;
  options.functional = options.alone = false;
  const CoresResult result = run(test::plan_of(Split::kBatch, system, workload), options);
  const std::string yaml = action_counts_yaml(system, result.core_events, result.events);
  std::map<std::string, std::uint64_t> counts;
  std::istringstream in(yaml);
  std::string name;
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find("- name: system.");
    if (at != std::string::npos) name = line.substr(at + 8, line.find(' ', at + 8) - at - 8);
    if (const std::size_t count = line.find("counts: ");
        count != std::string::npos && line.find("action") == std::string::npos) {
      counts[name] = std::stoull(line.substr(count + 8));
    }
  }
  EXPECT_EQ(counts.at("system.tile.mac") + counts.at("system.sparse.mac"), result.events.macs);
  EXPECT_EQ(counts.at("system.tile.postop"), result.core_events[0].postop_elements);
  EXPECT_EQ(counts.at("system.sparse.postop"), result.core_events[1].postop_elements);
  EXPECT_GT(counts.at("system.sparse.scratchpad"), 0U);
  EXPECT_GT(counts.at("system.tile.accumulator"), 0U);
  const std::uint64_t width = system.machine.bus.width_bytes;
  EXPECT_EQ(counts.at("system.bus"), (result.events.bus_bytes + width - 1) / width);
  EXPECT_EQ(counts.size(), 10U) << "four blocks of each core, bus and DRAM";
}

// The same cycles as with models, every operation counted.
TEST_F(CoresViews, RtlOfEveryCoreTakesTheCyclesOfItsModel) {
  hw::Machine machine = hw::find_machine("tiny");
  const hw::CoreSystem models = hw::equal_cores(machine, 2);
  for (const char* block : {"softmax_unit", "layernorm_unit", "requantizer"}) {
    swap_for_rtl(machine, block);
  }
  const hw::CoreSystem system = hw::equal_cores(machine, 2);
  for (const Split split : {Split::kBatch, Split::kLayers, Split::kHeads}) {
    SCOPED_TRACE(name_of(split));
    CoresOptions options;
    options.alone = false;
    const CoresResult expected = run(test::plan_of(split, models, workload), options);
    RtlReport report;
    std::set<std::size_t> asked;
    options.engines = [&](std::size_t core) {
      asked.insert(core);
      return make_engines(system.cores[core].machine, {}, report);
    };
    options.check = true;
    const CoresResult result = run(test::plan_of(split, system, workload), options);
    EXPECT_EQ(result.cycles, expected.cycles);
    EXPECT_EQ(result.outputs, expected.outputs);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
    EXPECT_EQ(total_mismatches(report), 0U);
    EXPECT_EQ(asked.size(), 2U);
    for (const char* block : {"softmax_unit", "layernorm_unit", "requantizer"}) {
      EXPECT_GT(report.at(block).operations, 0U) << block;
    }
  }
}

}  // namespace
}  // namespace systole::testbench

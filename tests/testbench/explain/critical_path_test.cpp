#include "testbench/explain/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/network/encoder_run.h"
#include "support/network/vit_run.h"
#include "testbench/explain/explanation.h"

namespace systole::testbench {
namespace {

using test::Random;
using tlm_model::CommandTrace;
using tlm_model::DispatchSteps;

/// A command that was dispatched at `dispatched`, a cycle after the one before it.
CommandTrace command(std::uint32_t index, hw::Unit unit, std::uint64_t dispatched,
                     std::uint64_t started, std::uint64_t released, std::uint64_t completed) {
  CommandTrace trace;
  trace.index = index;
  trace.unit = unit;
  trace.dispatched = dispatched;
  trace.started = trace.ready = started;
  trace.released = released;
  trace.completed = completed;
  DispatchSteps& steps = trace.dispatch;
  steps.begun = steps.fetched = steps.fenced = steps.issued = steps.room = dispatched - 1;
  return trace;
}

using Step = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, Stage>;

std::vector<Step> path(const std::vector<CommandTrace>& traces, std::uint64_t begin,
                       std::uint64_t end) {
  std::vector<Step> steps;
  for (const PathStep& step : critical_path(traces, begin, end)) {
    steps.emplace_back(step.begin, step.end, step.command, step.stage);
  }
  return steps;
}

TEST(CriticalPath, GoesFromAUnitToTheHazardAndToTheDispatch) {
  // The matmul waits for the second load, which waits for its unit; the store for the matmul.
  std::vector<CommandTrace> traces = {
      command(0, hw::Unit::kLoad, 11, 11, 20, 24), command(1, hw::Unit::kLoad, 12, 20, 30, 35),
      command(2, hw::Unit::kCompute, 13, 35, 50, 52), command(3, hw::Unit::kStore, 14, 52, 60, 66)};
  traces[0].dispatch.begun = 5;
  traces[2].was_blocked = traces[3].was_blocked = true;
  traces[2].blocker = 1;
  traces[3].blocker = 2;
  EXPECT_EQ(path(traces, 5, 66), (std::vector<Step>{{5, 10, 0, Stage::kFetch},
                                                    {10, 11, 0, Stage::kDispatch},
                                                    {11, 20, 0, Stage::kExecute},
                                                    {20, 30, 1, Stage::kExecute},
                                                    {30, 35, 1, Stage::kInFlight},
                                                    {35, 50, 2, Stage::kExecute},
                                                    {50, 52, 2, Stage::kInFlight},
                                                    {52, 60, 3, Stage::kExecute},
                                                    {60, 66, 3, Stage::kInFlight}}));
}

TEST(CriticalPath, LeavesOutWhatIsInFlightIfItsOperandsWereWaitedFor) {
  // The load overwrites what the matmul reads.
  std::vector<CommandTrace> traces = {command(0, hw::Unit::kCompute, 1, 1, 40, 49),
                                      command(1, hw::Unit::kLoad, 2, 40, 60, 70)};
  traces[1].was_blocked = traces[1].blocker_released = true;
  EXPECT_EQ(path(traces, 0, 70), (std::vector<Step>{{0, 1, 0, Stage::kDispatch},
                                                    {1, 40, 0, Stage::kExecute},
                                                    {40, 60, 1, Stage::kExecute},
                                                    {60, 70, 1, Stage::kInFlight}}));
}

TEST(CriticalPath, GoesFromAFullStationToTheCommandThatLeftIt) {
  std::vector<CommandTrace> traces = {command(0, hw::Unit::kLoad, 1, 1, 9, 15),
                                      command(1, hw::Unit::kLoad, 16, 16, 20, 25)};
  traces[1].dispatch.begun = 1;
  traces[1].dispatch.fetched = traces[1].dispatch.fenced = traces[1].dispatch.issued = 4;
  traces[1].dispatch.room_by = 0;
  EXPECT_EQ(path(traces, 0, 25), (std::vector<Step>{{0, 1, 0, Stage::kDispatch},
                                                    {1, 9, 0, Stage::kExecute},
                                                    {9, 15, 0, Stage::kInFlight},
                                                    {15, 16, 1, Stage::kDispatch},
                                                    {16, 20, 1, Stage::kExecute},
                                                    {20, 25, 1, Stage::kInFlight}}));
}

TEST(CriticalPath, GoesFromACallOfTheHostToWhatItWaitedFor) {
  std::vector<CommandTrace> traces = {command(0, hw::Unit::kLoad, 1, 1, 9, 15),
                                      command(1, hw::Unit::kLoad, 116, 116, 120, 121)};
  DispatchSteps& steps = traces[1].dispatch;
  steps.begun = 1;
  steps.fetched = 2;
  steps.fenced = 15;
  steps.issued = steps.room = 115;
  steps.fence_by = 0;
  EXPECT_EQ(path(traces, 0, 121), (std::vector<Step>{{0, 1, 0, Stage::kDispatch},
                                                     {1, 9, 0, Stage::kExecute},
                                                     {9, 15, 0, Stage::kInFlight},
                                                     {15, 115, 1, Stage::kHost},
                                                     {115, 116, 1, Stage::kDispatch},
                                                     {116, 120, 1, Stage::kExecute},
                                                     {120, 121, 1, Stage::kInFlight}}));
}

TEST(CriticalPath, FollowsTheProcessorWhereItsFetchesAreLate) {
  std::vector<CommandTrace> traces = {command(0, hw::Unit::kHost, 1, 1, 30, 30),
                                      command(1, hw::Unit::kLoad, 51, 51, 60, 60)};
  traces[1].dispatch.begun = 30;
  // The end of the program arrives last.
  EXPECT_EQ(path(traces, 0, 80), (std::vector<Step>{{0, 1, 0, Stage::kDispatch},
                                                    {1, 30, 0, Stage::kExecute},
                                                    {30, 50, 1, Stage::kFetch},
                                                    {50, 51, 1, Stage::kDispatch},
                                                    {51, 80, 2, Stage::kFetch}}));
}

TEST(CriticalPath, TakesLoopsOneAfterTheOther) {
  const std::vector<CommandTrace> traces = {command(0, hw::Unit::kLoop, 1, 1, 50, 50),
                                            command(1, hw::Unit::kLoop, 2, 2, 90, 90)};
  EXPECT_EQ(path(traces, 0, 90), (std::vector<Step>{{0, 1, 0, Stage::kDispatch},
                                                    {1, 50, 0, Stage::kExecute},
                                                    {50, 90, 1, Stage::kExecute}}));
}

TEST(CriticalPath, OfAnEmptyProgramIsItsFetch) {
  EXPECT_EQ(path({}, 3, 9), (std::vector<Step>{{3, 9, 0, Stage::kFetch}}));
}

/// When a command could begin: its unit was free, it was dispatched, its hazards were clear.
std::uint64_t earliest(const std::vector<CommandTrace>& traces, const CommandTrace& trace,
                       std::array<std::uint64_t, hw::kUnits>& free) {
  std::uint64_t& unit = free.at(static_cast<std::size_t>(trace.unit));
  std::uint64_t begin = std::max(unit, trace.dispatched);
  if (trace.was_blocked) {
    const CommandTrace& blocker = traces[trace.blocker];
    begin = std::max(begin, trace.blocker_released ? blocker.operands_read : blocker.completed);
  }
  unit = trace.released;
  return begin;
}

/// The path of a run, and what it is made from, without a gap. `host_waits`: calls of the host that
/// waited for the core.
void expect_explained(const hw::Program& program, const SimulationResult& result,
                      const hw::Machine& machine, int& host_waits) {
  ASSERT_EQ(result.finished - result.started, result.cycles.front());
  std::array<std::uint64_t, hw::kUnits> free{};
  for (const CommandTrace& trace : result.traces) {
    if (trace.unit == hw::Unit::kLoop) continue;
    ASSERT_EQ(trace.started, earliest(result.traces, trace, free)) << trace.index;
    ASSERT_EQ(trace.dispatched, trace.dispatch.room + 1) << trace.index;
    if (trace.unit == hw::Unit::kHost && trace.dispatch.room > trace.dispatch.issued) {
      // The host computes when all commands before have completed: the last of them made room.
      ASSERT_LT(trace.dispatch.room_by, trace.index);
      ASSERT_EQ(trace.dispatch.room, result.traces[trace.dispatch.room_by].completed);
      ++host_waits;
    }
    std::uint64_t stalled = 0;
    for (const std::uint32_t cycles : trace.stalled) stalled += cycles;
    ASSERT_LE(stalled, trace.released - trace.started) << trace.index;
  }
  const Explanation why = explain(program, result);
  std::uint64_t at = result.started;
  for (const PathStep& step : why.path) {
    ASSERT_EQ(step.begin, at);
    ASSERT_GT(step.end, step.begin);
    at = step.end;
  }
  EXPECT_EQ(at, result.finished);
  EXPECT_EQ(why.path_cycles(), result.cycles.front());
  std::uint64_t causes = 0, operators = 0;
  std::map<std::string, std::uint64_t> by_unit;
  for (const PathCause& cause : why.causes) {
    causes += cause.cycles;
    by_unit[cause.unit] += cause.cycles;
  }
  for (const PathOperator& op : why.operators) operators += op.cycles;
  EXPECT_EQ(causes, why.cycles);
  EXPECT_EQ(operators, why.cycles);
  // What the path spends on a cause, the unit has spent on it.
  for (const hw::BlockReport& block : result.blocks) {
    if (!block.time || by_unit.count(block.name) == 0 || block.name == "host") continue;
    EXPECT_LE(why.of(block.name, "busy"), block.time->busy) << block.name << " " << machine.name;
    for (const hw::TimeAccount::Stall& stall : block.time->stalled) {
      EXPECT_LE(why.of(block.name, stall.cause), stall.time) << block.name << "." << stall.cause;
    }
  }
}

TEST(CriticalPathProperty, TakesAsManyCyclesAsTheRunOnRandomMachines) {
  constexpr int kMachines = 120;
  int host_waits = 0;
  Random random(21);
  for (int i = 0; i < kMachines; ++i) {
    SCOPED_TRACE(i);
    const std::uint32_t heads = test::between(random, 1, 3);
    const test::Workload workload = test::encoder_workload(
        {1, 8 * heads, heads, 8 * test::between(random, 2, 9), random() % 2 == 0},
        test::between(random, 3, 20), 1);
    const auto [machine, mapping] = test::random_fit(random, workload.graph);
    SimulationOptions options;
    options.functional = false;
    expect_explained(mapping.program, workload.simulate(mapping, machine, options), machine,
                     host_waits);
    if (HasFatalFailure()) return;
  }
}

TEST(CriticalPathProperty, TakesAsManyCyclesAsTheRunOnEveryPreset) {
  int host_waits = 0;
  const test::Workload workload = test::encoder_workload({2, 32, 2, 64}, 16, 1);
  for (const char* const preset : {"tiny", "gemmini", "gemmini-bare", "transformer", "vitcod"}) {
    SCOPED_TRACE(preset);
    const hw::Machine machine = hw::find_machine(preset);
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    SimulationOptions options;
    options.functional = false;
    expect_explained(mapping.program, workload.simulate(mapping, machine, options), machine,
                     host_waits);
  }
  EXPECT_EQ(host_waits, 0);
}

TEST(CriticalPathProperty, TakesAsManyCyclesAsARunWithCallsOfTheHost) {
  int host_waits = 0;
  const test::VitRun run("gemmini", 1);
  SimulationOptions options;
  options.functional = false;
  expect_explained(run.mapping.program, run.simulate(options), run.machine, host_waits);
  EXPECT_GT(host_waits, 0);
}

}  // namespace
}  // namespace systole::testbench

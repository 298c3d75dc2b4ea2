#include "hw/program/dispatch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/network/encoder_run.h"
#include "testbench/rtl/core/dispatcher_rtl.h"
#include "testbench/rtl/core/load_path_rtl.h"
#include "tests/rtl/dma/read_answers.h"

/// Dispatch of whole networks, command by command, beside its contract and its gates.
namespace systole::testbench {
namespace {

using hw::DispatchItem;
using tlm_model::CommandTrace;

/// The commands of a run in the order of the program.
std::vector<CommandTrace> traces_of(const test::Workload& workload, const mapper::Mapping& mapping,
                                    const hw::Machine& machine) {
  std::vector<CommandTrace> traces;
  SimulationOptions options;
  options.functional = false;
  options.observer = [&](const CommandTrace& trace) { traces.push_back(trace); };
  (void)workload.simulate(mapping, machine, options);
  std::sort(traces.begin(), traces.end(),
            [](const CommandTrace& a, const CommandTrace& b) { return a.index < b.index; });
  return traces;
}

/// What the units and the fetches did, as the dispatcher of another core would see it.
std::vector<DispatchItem> items_of(const std::vector<CommandTrace>& traces,
                                   const hw::Program& program) {
  std::vector<DispatchItem> items;
  for (const CommandTrace& trace : traces) {
    DispatchItem item;
    item.unit = trace.unit;
    item.ranges = hw::ranges_of(program.commands.at(trace.index), program);
    item.arrival = trace.dispatch.issued;
    item.alone = hw::has_unit_alone(program.commands.at(trace.index));
    item.occupied = trace.released - trace.started;
    item.released = trace.operands_read - trace.started;
    item.completed = trace.completed - trace.started;
    EXPECT_GE(item.occupied, 1U) << trace.index;
    EXPECT_GE(item.released, 1U) << trace.index;
    EXPECT_LE(item.released, item.completed) << trace.index;
    items.push_back(std::move(item));
  }
  return items;
}

bool has_stations_only(const std::vector<CommandTrace>& traces) {
  return std::all_of(traces.begin(), traces.end(), [](const CommandTrace& trace) {
    return static_cast<std::size_t>(trace.unit) < hw::kStations;
  });
}

TEST(DispatchPropertyTest, CoresMeetTheContractInEveryCommand) {
  test::Random random(21);
  std::size_t commands = 0, blocked = 0;
  for (int i = 0; i < 40; ++i) {
    const auto length = static_cast<std::uint32_t>(1 + random() % 40);
    const test::Workload workload = test::encoder_workload({1, 32, 2, 64}, length, 1);
    const auto [machine, mapping] = test::random_fit(random, workload.graph);
    const std::vector<CommandTrace> traces = traces_of(workload, mapping, machine);
    if (!has_stations_only(traces)) continue;
    const std::vector<hw::DispatchTimes> times =
        hw::dispatch_times(items_of(traces, mapping.program), hw::station_sizes(machine));
    for (std::size_t c = 0; c < traces.size(); ++c) {
      ASSERT_EQ(times[c].dispatched, traces[c].dispatched) << "machine " << i << " command " << c;
      ASSERT_EQ(times[c].started, traces[c].started) << "machine " << i << " command " << c;
      blocked += traces[c].was_blocked ? 1 : 0;
    }
    commands += traces.size();
  }
  EXPECT_GT(commands, 2000U);
  EXPECT_GT(blocked, commands / 4);
}

TEST(DispatchPropertyTest, GatesDispatchNetworksInTheSameCycles) {
  const std::vector<std::pair<std::string, std::uint32_t>> lengths = {
      {"tiny", 12}, {"transformer", 65}, {"vitcod", 65}};
  for (const auto& [preset, length] : lengths) {
    const hw::Machine machine = hw::find_machine(preset);
    const test::Workload workload = test::encoder_workload({1, 64, 4, 128}, length, 1);
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    const std::vector<CommandTrace> traces = traces_of(workload, mapping, machine);
    const std::vector<DispatchItem> items = items_of(traces, mapping.program);
    const auto sizes = hw::station_sizes(machine);
    const auto dispatcher = make_dispatcher(sizes);
    const std::vector<hw::DispatchTimes> times = dispatcher->run(items);
    ASSERT_EQ(times.size(), traces.size());
    for (std::size_t c = 0; c < traces.size(); ++c) {
      ASSERT_EQ(times[c].dispatched, traces[c].dispatched) << preset << " command " << c;
      ASSERT_EQ(times[c].started, traces[c].started) << preset << " command " << c;
    }
  }
}

// The loads of a network in gates: decoder, dispatcher, reading port and scratchpad, with the other
// units as long as the model's. Arrivals are the model's, the memory is not.
TEST(DispatchPropertyTest, GatesLoadWhatANetworkLoads) {
  const hw::Machine machine = hw::find_machine("tiny");
  const test::Workload workload = test::encoder_workload({1, 64, 4, 128}, 12, 1);
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  const std::vector<CommandTrace> traces = traces_of(workload, mapping, machine);
  hw::Program program = mapping.program;
  program.commands.pop_back();  // end
  ASSERT_EQ(program.commands.size(), traces.size());
  ASSERT_LE(program.chains.size(), LoadPathRtl::kChainSlots);
  std::vector<LoadPathItem> items;
  for (const DispatchItem& item : items_of(traces, mapping.program)) {
    items.push_back({item.arrival, item.occupied, item.released, item.completed});
  }
  std::vector<std::uint8_t> bytes(std::size_t{machine.dram.mib} << 20);
  for (const hw::MemoryPiece& piece : mapping.image) {
    std::copy(piece.bytes.begin(), piece.bytes.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(piece.address));
  }
  const auto path = make_load_path();
  RtlCounts counts;
  for (const ReadAnswers& answers : {ReadAnswers{LoadPathRtl::kBeatBytes, 30, 45, 0, 1},
                                     ReadAnswers{LoadPathRtl::kBeatBytes, 3, 90, 300, 2}}) {
    check_load_path(
        *path, {program, items, bytes}, [&] { return answers.memory(); }, counts);
    EXPECT_EQ(counts.mismatches, 0U);
  }
  EXPECT_GT(traces.size(), 100U);
  EXPECT_EQ(counts.operations, 2 * traces.size());
}

}  // namespace
}  // namespace systole::testbench

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "hw/description/machine_text.h"
#include "model/graph/reference.h"
#include "support/network/core_balance.h"
#include "support/network/core_plans.h"
#include "support/network/encoder_run.h"
#include "support/random/random_machine.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "testbench/cores/cores_simulation.h"
#include "testbench/cores/part_recorder.h"
#include "testbench/network/tensors.h"

/// What holds for every system of several cores.
namespace systole::testbench {
namespace {

using test::Random;
using test::Workload;

/// A machine with the memory of `shared` and its own core.
hw::Machine other_core(Random& random, const hw::Machine& shared, const model::Graph& graph) {
  for (;;) {
    hw::Machine machine = shared;
    const hw::Machine drawn = test::random_machine_without_search(random);
    for (const hw::MachineKey& key : hw::machine_keys()) {
      if (hw::is_core_section(hw::section_of(key.path))) key.set(machine, key.get(drawn));
    }
    try {
      hw::validate(machine);
      static_cast<void>(mapper::map_graph(graph, machine));
      return machine;
    } catch (const hw::InputError&) {
      continue;
    }
  }
}

CoresResult run(const CorePlan& plan, const Workload& workload, const CoresOptions& options) {
  test::fresh_kernel();
  return simulate(plan, workload.inputs, options);
}

/// The times of a core's requests are what the bus counted of its ports, and the bus counts time
/// while any core runs.
void expect_bus(const CoreShare& core, const hw::Machine& machine,
                const std::vector<hw::BlockReport>& blocks) {
  const auto bus = std::find_if(blocks.begin(), blocks.end(),
                                [](const hw::BlockReport& block) { return block.name == "bus"; });
  ASSERT_NE(bus, blocks.end());
  const std::string prefix = "system." + core.name + ".";
  std::map<std::string, std::uint64_t> sums;
  for (const hw::BlockReport& port : bus->parts) {
    if (port.name == "request") {
      const std::uint64_t edges = 2 * core.tasks;
      EXPECT_GE((port.time->total + edges) * machine.core.clock_mhz,
                core.running * machine.bus.clock_mhz);
    }
    if (port.name.compare(0, prefix.size(), prefix) != 0) continue;
    for (const hw::Counter& counter : port.counters) sums[counter.name] += counter.value;
  }
  const RequestTimes& times = core.together_requests;
  EXPECT_EQ(times.requests, sums["reads"] + sums["writes"]);
  EXPECT_EQ(times.bytes, sums["read_bytes"] + sums["written_bytes"]);
  EXPECT_EQ(times.request_wait, sums["request_wait"]);
  EXPECT_EQ(times.data_wait, sums["data_wait"]);
  EXPECT_EQ(times.target_time, sums["target_time"]);
}

void expect_balance(const CorePlan& plan, const CoresResult& result) {
  std::uint64_t tasks = 0, read = 0, written = 0;
  std::size_t index = 0;
  for (const CoreShare& core : result.cores) {
    SCOPED_TRACE(core.name);
    tasks += core.tasks;
    read += core.traffic.read_bytes;
    written += core.traffic.written_bytes;
    test::expect_balance(core);
    EXPECT_LT(core.host, core.total);
    const RequestTimes& there = core.together_requests;
    const hw::Machine& machine = plan.system.cores[index++].machine;
    expect_bus(core, machine, result.blocks);
    EXPECT_TRUE(there.walks == 0 || machine.tlb.entries != 0);
    EXPECT_EQ(there.fetches != 0, core.tasks != 0);
    if (result.cores.size() == 1) {
      EXPECT_EQ(core.alone, core.running);
    }
    const std::string prefix = result.cores.size() == 1 ? "" : core.name + ".";
    for (const hw::BlockReport& block : result.blocks) {
      const bool of_core = prefix.empty() ? block.name == "load" || block.name == "array"
                                          : block.name.compare(0, prefix.size(), prefix) == 0;
      if (!of_core || !block.time) continue;
      EXPECT_EQ(block.time->total, core.running) << block.name;
      EXPECT_EQ(block.time->busy + block.time->stalled_total() + block.time->idle,
                block.time->total)
          << block.name;
    }
  }
  if (plan.split == Split::kLayers) {
    // An inference is in one stage after the other.
    double stages = 0.0, latency = 0.0;
    const double mhz = plan.system.cores.front().machine.core.clock_mhz;
    for (std::size_t i = 0; i < result.cores.size(); ++i) {
      const CoreShare& core = result.cores[i];
      stages +=
          static_cast<double>(core.running) / plan.system.cores[i].machine.core.clock_mhz * mhz;
    }
    for (const std::uint64_t cycles : result.cycles) latency += static_cast<double>(cycles);
    EXPECT_GE(latency, stages);
  }
  EXPECT_EQ(tasks, plan.tasks.size());
  EXPECT_EQ(read, result.traffic.read_bytes);
  EXPECT_EQ(written, result.traffic.written_bytes);
}

/// All that every core leaves in memory; unlike cores may have nothing in common but the output.
std::vector<model::TensorId> kept_of(const CorePlan& plan) { return find_tensors(".*", plan); }

/// Parts of several cores, inferences that overlap: what the reference of the whole network has.
void expect_tensors(const Workload& workload, const std::vector<model::TensorId>& kept,
                    const CoresResult& result) {
  EXPECT_FALSE(kept.empty());
  ASSERT_EQ(result.tensors.size(), kept.size());
  model::Reference reference(workload.graph);
  const model::Tensor& in = workload.graph.tensors[input_tensor(workload.graph)];
  for (std::size_t inference = 0; inference < workload.inputs.size(); ++inference) {
    reference.set_input(in.name, widen(workload.inputs[inference], in.type));
    reference.run();
    for (std::size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(result.tensors[i].at(inference), reference.bytes(kept[i]))
          << inference << ' ' << workload.graph.tensors[kept[i]].name;
    }
  }
}

/// What happened in the cores is what happened, but for memory behind a cache.
void expect_events(const CoresResult& result) {
  hw::EnergyEvents sum;
  ASSERT_EQ(result.core_events.size(), result.cores.size());
  for (std::size_t i = 0; i < result.cores.size(); ++i) {
    sum.add(result.core_events[i]);
    EXPECT_EQ(result.core_events[i].macs != 0, result.cores[i].macs != 0);
    const tlm_model::CoreTraffic& traffic = result.cores[i].traffic;
    EXPECT_EQ(result.core_events[i].bus_bytes, traffic.read_bytes + traffic.written_bytes);
  }
  EXPECT_EQ(sum.macs, result.events.macs);
  EXPECT_EQ(sum.postop_elements, result.events.postop_elements);
  EXPECT_EQ(sum.scratchpad_bytes, result.events.scratchpad_bytes);
  EXPECT_EQ(sum.accumulator_bytes, result.events.accumulator_bytes);
  EXPECT_EQ(sum.bus_bytes, result.events.bus_bytes);
  EXPECT_EQ(sum.noc_byte_hops, result.events.noc_byte_hops);
}

class CoresProperty : public test::SystemCTest {};

TEST_F(CoresProperty, GivesTheBitsOfOneCoreAndAccountsForEveryCycle) {
  const Workload workload = test::encoder_workload({2, 32, 4, 64, true}, 13, 4);
  const auto expected = test::expected_outputs(workload);
  Random random(18), mesh_random(1);
  std::size_t mixed = 0;
  for (int i = 0; i < 12; ++i) {
    hw::Machine machine = test::random_fit(random, workload.graph).first;
    machine.dram.mib = 128;
    if (i % 4 >= 2) test::randomise_mesh(machine, mesh_random, 4);
    SCOPED_TRACE(hw::to_toml(machine));
    const auto split = static_cast<Split>(i % 3);
    SCOPED_TRACE(name_of(split));
    hw::CoreSystem system = hw::equal_cores(machine, 1 + static_cast<std::size_t>(i / 3) % 4);
    for (hw::CoreSite& core : system.cores) core.link_ns = test::between(random, 0, 1) * 15;
    if (split == Split::kBatch && i % 2 == 1) {
      system.cores.back().machine = other_core(random, machine, workload.graph);
      hw::place_cores(system);
      ++mixed;
    }
    const CorePlan plan = test::plan_of(split, system, workload);
    CoresOptions options;
    options.check = true;
    options.tensors = kept_of(plan);
    const CoresResult values = run(plan, workload, options);
    EXPECT_EQ(values.check.mismatches, 0U) << values.check.first;
    expect_tensors(workload, options.tensors, values);
    expect_events(values);
    EXPECT_GT(values.check.bytes, 0U);
    EXPECT_EQ(values.outputs, expected);
    expect_balance(plan, values);
    options.functional = options.check = options.alone = false;
    const CoresResult timing = run(plan, workload, options);
    EXPECT_EQ(timing.cycles, values.cycles);
    EXPECT_EQ(timing.total_cycles, values.total_cycles);
    if (HasFailure()) return;
  }
  EXPECT_GE(mixed, 1U);
}

// Requests of one core can close rows that another would find open: 10 % is more than that costs.
TEST_F(CoresProperty, MoreCoresAreNotSlowerForABatch) {
  const Workload workload = test::encoder_workload({1, 32, 2, 64, true}, 19, 8);
  Random random(4);
  double worst = 0.0;
  for (int i = 0; i < 5; ++i) {
    const hw::Machine machine = test::random_fit(random, workload.graph).first;
    SCOPED_TRACE(hw::to_toml(machine));
    CoresOptions options;
    options.functional = options.alone = false;
    double before = 0.0;
    for (const std::size_t cores : {1, 2, 4}) {
      const CorePlan plan = test::plan_of(Split::kBatch, hw::equal_cores(machine, cores), workload);
      const double seconds = run(plan, workload, options).seconds;
      if (cores != 1) worst = std::max(worst, seconds / before);
      if (cores != 1) {
        EXPECT_LE(seconds, 1.1 * before) << cores;
      }
      before = seconds;
    }
  }
  RecordProperty("worst", std::to_string(worst));
}

// The first core of a system does what the machine of one core does, in every cycle.
TEST_F(CoresProperty, OneCoreTakesTheCyclesOfAMachine) {
  const Workload workload = test::encoder_workload({1, 32, 2, 64, true}, 19, 3);
  Random random(9);
  for (int i = 0; i < 4; ++i) {
    const auto [machine, mapping] = test::random_fit(random, workload.graph);
    SCOPED_TRACE(hw::to_toml(machine));
    SimulationOptions simulation;
    simulation.functional = false;
    const SimulationResult machine_run = workload.simulate(mapping, machine, simulation);
    CoresOptions options;
    options.functional = false;
    const CoresResult result =
        run(test::plan_of(Split::kBatch, hw::equal_cores(machine, 1), workload), workload, options);
    EXPECT_EQ(result.cycles, machine_run.cycles);
    EXPECT_EQ(result.total_cycles, machine_run.total_cycles);
    EXPECT_EQ(result.cores.front().traffic.read_bytes, machine_run.traffic.read_bytes);
  }
}

}  // namespace
}  // namespace systole::testbench

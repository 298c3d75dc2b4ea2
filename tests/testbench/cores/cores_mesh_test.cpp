#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/bound/lower_bound.h"
#include "hw/description/machine_file.h"
#include "hw/description/machine_text.h"
#include "hw/noc/mesh_nodes.h"
#include "support/network/core_plans.h"
#include "support/network/encoder_run.h"
#include "support/random/random_machine.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/port_alone.h"
#include "support/tlm/systemc_test.h"
#include "testbench/cores/cores_simulation.h"

/// Cores on a mesh in the place of the bus.
namespace systole::testbench {
namespace {

using test::Random;
using test::Workload;

struct CoresMesh : public test::SystemCTest {
  /// Without values.
  static CoresResult time_of(const CorePlan& plan, const Workload& workload) {
    test::fresh_kernel();
    CoresOptions options;
    options.functional = options.alone = false;
    return simulate(plan, workload.inputs, options);
  }
};

/// A machine for the graph on a mesh with room for `cores` cores.
hw::Machine machine_on_mesh(Random& random, const model::Graph& graph, std::uint32_t cores) {
  for (;;) {
    hw::Machine machine = test::random_machine_without_search(random);
    machine.dram.mib = 128;
    test::randomise_mesh(machine, random, cores);
    if (!hw::machine_problems(machine).empty()) continue;
    try {
      static_cast<void>(mapper::map_graph(graph, machine));
      return machine;
    } catch (const hw::InputError&) {
      continue;  // too small
    }
  }
}

const hw::BlockReport& mesh_report(const CoresResult& result) {
  return *std::find_if(result.blocks.begin(), result.blocks.end(),
                       [](const hw::BlockReport& block) { return block.name == "noc"; });
}

/// What crossed links, and that none carried more than its wires can.
void expect_links(const hw::Machine& machine, const CoresResult& result) {
  std::uint64_t hops = 0;
  for (const hw::BlockReport& link : mesh_report(result).parts) {
    const bool local = link.name.substr(0, 4) != "link";
    const std::uint32_t width = local ? machine.bus.width_bytes : machine.noc.link_bytes;
    EXPECT_EQ(link.time->busy + link.time->idle, link.time->total) << link.name;
    const double ends = result.seconds * machine.bus.clock_mhz * 1e6;
    EXPECT_LE(static_cast<double>(link.counters[1].value), (ends + 1) * width) << link.name;
    if (!local) hops += link.counters[1].value;
  }
  EXPECT_EQ(mesh_report(result).counters[1].value, hops);
  // The hosts' are no energy of the accelerator.
  EXPECT_LE(result.events.noc_byte_hops, hops);
}

TEST_F(CoresMesh, IsNeverFasterThanTheBoundOnAnyMachineByAnySplit) {
  const Workload workload = test::encoder_workload({2, 32, 4, 64, true}, 13, 3);
  Random random(11);
  for (int i = 0; i < 102; ++i) {
    const std::uint32_t cores = 1 + static_cast<std::uint32_t>(i / 3) % 4;
    const hw::Machine machine = machine_on_mesh(random, workload.graph, cores);
    SCOPED_TRACE(hw::to_toml(machine));
    const auto split = static_cast<Split>(i % 3);
    SCOPED_TRACE(name_of(split));
    const hw::CoreSystem system = hw::equal_cores(machine, cores);
    const CoresResult result = time_of(test::plan_of(split, system, workload), workload);
    expect_links(machine, result);
    if (split == Split::kBatch || cores == 1) {
      double least = 1e30;
      for (const hw::CoreSite& core : system.cores) {
        least = std::min(least, analysis::lower_bound(workload.graph, core.machine).cycles());
      }
      for (const std::uint64_t cycles : result.cycles) {
        EXPECT_GE(static_cast<double>(cycles), least);
      }
    }
    if (HasFailure()) return;
  }
}

// One node, a header on wires of its own: reads of one port take the bus's channels in the same
// order, and an edge of the router more each way.
TEST_F(CoresMesh, OfOneNodeIsABusWithLongerLatencies) {
  Random random(12);
  for (int i = 0; i < 100; ++i) {
    hw::Machine machine = test::random_machine(random);
    machine.dram.channels = 1;
    machine.noc.rows = 1;
    machine.noc.hop_cycles = test::between(random, 1, 9);
    machine.noc.header_bytes = machine.noc.node = 0;
    hw::Machine bus = machine;
    machine.noc.columns = 1;
    bus.bus.request_latency += machine.noc.hop_cycles;
    bus.bus.response_latency += machine.noc.hop_cycles;
    EXPECT_EQ(test::cycles_of_port_alone(machine, false), test::cycles_of_port_alone(bus, false))
        << hw::to_toml(machine);
  }
}

TEST_F(CoresMesh, NeverGetsSlowerByFasterLinksForOneInitiator) {
  Random random(13);
  for (int i = 0; i < 30; ++i) {
    hw::Machine machine = test::random_machine(random);
    machine.dram.t_refi_ns = 0;  // whether a run meets one more refresh is a matter of luck
    machine.dma.slots = hw::SlotOrder::kIssue;
    machine.dram.channels = 1;
    test::randomise_mesh(machine, random, 1);
    SCOPED_TRACE(hw::to_toml(machine));
    std::uint64_t before = 0;
    for (const std::uint32_t hop : {1U, 2U, 4U, 8U}) {
      machine.noc.hop_cycles = hop;
      const std::uint64_t cycles = test::cycles_of_port_alone(machine, false);
      EXPECT_GE(cycles, before) << hop;
      before = cycles;
    }
    before = 0;
    for (const std::uint32_t width : {64U, 16U, 4U, 1U}) {
      machine.noc.link_bytes = width;
      const std::uint64_t cycles = test::cycles_of_port_alone(machine, false);
      EXPECT_GE(cycles, before) << width;
      before = cycles;
    }
  }
}

// As on a bus (tests/testbench/run/monotonic_test.cpp), cores that share a memory have anomalies of
// scheduling: rows that others close, requests that come in another order.
TEST_F(CoresMesh, HardlyEverGetsFasterBySlowerLinks) {
  const Workload workload = test::encoder_workload({2, 32, 4, 64, true}, 13, 3);
  Random random(14);
  double worst = 0;
  for (int i = 0; i < 18; ++i) {
    const std::uint32_t cores = 1 + static_cast<std::uint32_t>(i / 3) % 4;
    const hw::Machine machine = machine_on_mesh(random, workload.graph, cores);
    SCOPED_TRACE(hw::to_toml(machine));
    CorePlan plan =
        test::plan_of(static_cast<Split>(i % 3), hw::equal_cores(machine, cores), workload);
    const auto sweep = [&](auto key, const std::vector<std::uint32_t>& values) {
      double slowest = 0;
      for (const std::uint32_t value : values) {
        plan.system.machine.noc.*key = value;
        for (hw::CoreSite& core : plan.system.cores) core.machine.noc.*key = value;
        const double seconds = time_of(plan, workload).seconds;
        if (slowest != 0) worst = std::max(worst, 1 - seconds / slowest);
        EXPECT_GE(seconds, 0.91 * slowest) << value;
        slowest = std::max(slowest, seconds);
      }
    };
    sweep(&hw::Machine::Noc::hop_cycles, {1, 3, 9, 27});
    sweep(&hw::Machine::Noc::link_bytes, {64, 8, 2});
  }
  RecordProperty("worst", std::to_string(worst));
}

TEST_F(CoresMesh, IsExpectedByTheMapperAsWellAsABus) {
  const Workload workload = test::encoder_workload({1, 192, 3, 768}, 77, 1);
  double of_bus = 0, of_mesh = 0;
  int count = 0;
  for (const std::uint32_t hop : {1U, 4U, 12U}) {
    for (const std::uint32_t side : {2U, 4U}) {
      for (const std::uint32_t width : {16U, 4U}) {
        hw::Machine machine = hw::find_machine("transformer");
        machine.noc.rows = side;
        machine.noc.hop_cycles = hop;
        machine.noc.link_bytes = width;
        const auto off = [&] {
          const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
          const auto cycles = static_cast<double>(workload.cycles(mapping, machine));
          return std::abs(static_cast<double>(mapping.expected_cycles) / cycles - 1);
        };
        of_bus += off();
        machine.noc.columns = side;
        const double now = off();
        // By narrow links data come one by one, and rarer than the replay has it: the array waits
        // for fewer of them at its banks.
        EXPECT_LT(now, width == 4 ? 0.08 : 0.06) << hop << ' ' << side << ' ' << width;
        of_mesh += now;
        ++count;
      }
    }
  }
  RecordProperty("bus", std::to_string(of_bus / count));
  RecordProperty("mesh", std::to_string(of_mesh / count));
  EXPECT_LT(of_mesh / count, 0.035);
}

}  // namespace
}  // namespace systole::testbench

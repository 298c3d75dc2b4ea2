#include "mapper/replay/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "bench/mapping_grid.h"
#include "hw/description/machine_file.h"
#include "support/network/encoder_run.h"
#include "support/tlm/systemc_test.h"

/// The mapper's replay of a program against its simulation.
namespace systole::testbench {
namespace {

using test::Workload;

std::uint64_t expected_cycles(const mapper::Mapping& mapping) {
  std::uint64_t sum = 0;
  for (const mapper::Tiling& tiling : mapping.tilings) sum += tiling.cycles;
  return sum;
}

double deviation(std::uint64_t expected, std::uint64_t found) {
  return static_cast<double>(expected) / static_cast<double>(found) - 1.0;
}

class ReplayTest : public test::SystemCTest {};

TEST_F(ReplayTest, CyclesOfOperatorsAddUpToThoseOfTheProgram) {
  const Workload workload = test::encoder_workload({1, 64, 2, 128}, 40, 1);
  const hw::Machine machine = hw::find_machine("transformer");
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  mapper::Replay replay(machine);
  replay.run(mapping.program, 0, mapping.program.commands.size());
  EXPECT_EQ(expected_cycles(mapping), mapping.expected_cycles);
  // A replay by the pipeline fetches no commands ahead of the next one.
  EXPECT_LT(std::abs(deviation(mapping.expected_cycles, replay.end())), 0.01);
}

// Layers that repeat those before are not replayed.
TEST_F(ReplayTest, AWholeReplayTakesWhatIsExpectedOfTheLayersThatRepeat) {
  const Workload workload = test::encoder_workload({8, 192, 3, 768}, 197, 1);
  std::mt19937_64 random(11);
  for (int count = 0; count < 8;) {
    const hw::Machine machine = bench::draw_base(random);
    if (!bench::is_valid(machine)) continue;
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    mapper::Replay replay(machine);
    replay.run(mapping.program, 0, mapping.program.commands.size());
    EXPECT_LT(std::abs(deviation(mapping.expected_cycles, replay.end())), 0.01)
        << bench::name_of(machine);
    EXPECT_EQ(expected_cycles(mapping), mapping.expected_cycles);
    ++count;
  }
}

/// Mean and worst deviation from the simulation, either way.
struct Deviations {
  double sum = 0, worst = 0;
  int count = 0;
  void add(double off) {
    sum += std::abs(off);
    worst = std::max(worst, std::abs(off));
    ++count;
  }
  [[nodiscard]] double mean() const { return sum / count; }
};

TEST_F(ReplayTest, ComesCloseToTheSimulationOnTheMachinesOfTheGrid) {
  const Workload workload = test::encoder_workload({1, 192, 3, 768}, 77, 1);
  std::mt19937_64 random(5);
  Deviations deviations;
  while (deviations.count < 12) {
    const hw::Machine machine = bench::draw_base(random);
    if (!bench::is_valid(machine)) continue;
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    const double off = deviation(expected_cycles(mapping), workload.cycles(mapping, machine));
    EXPECT_LT(std::abs(off), 0.06) << bench::name_of(machine);
    deviations.add(off);
  }
  EXPECT_LT(deviations.mean(), 0.025);
}

TEST_F(ReplayTest, ComesCloseToTheSimulationOnAMemoryOfFixedLatency) {
  const Workload workload = test::encoder_workload({1, 192, 3, 768}, 77, 1);
  hw::Machine machine = hw::find_machine("transformer");
  machine.memory.model = hw::MemoryModel::kFixed;
  machine.bus.request_latency = machine.bus.response_latency = 0;
  for (const std::uint32_t interval : {1U, 2U, 4U}) {
    for (const std::uint32_t latency : {10U, 80U}) {
      machine.memory.read_beat_cycles = interval;
      machine.memory.latency = latency;
      const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
      const double off = deviation(expected_cycles(mapping), workload.cycles(mapping, machine));
      EXPECT_LT(std::abs(off), 0.1) << interval << " cycles a beat, latency " << latency;
    }
  }
}

// Any clocks, widths, DRAM times, pieces of rows.
TEST_F(ReplayTest, ComesCloseToTheSimulationOnRandomMachines) {
  const Workload workload = test::encoder_workload({1, 96, 3, 192}, 61, 1);
  test::Random random(1);
  Deviations plain, others;
  for (int i = 0; i < 40; ++i) {
    const auto [machine, mapping] = test::random_fit(random, workload.graph);
    const double off = deviation(expected_cycles(mapping), workload.cycles(mapping, machine));
    // What a cache and the walks of a TLB do is only estimated.
    const bool estimated = machine.tlb.entries != 0 || machine.l2.kib != 0;
    EXPECT_LT(std::abs(off), estimated ? 0.4 : 0.2) << "machine " << i;
    (estimated ? others : plain).add(off);
  }
  EXPECT_GT(plain.count, 20);
  EXPECT_LT(plain.mean(), 0.05);
  EXPECT_LT(others.mean(), 0.2);
}

}  // namespace
}  // namespace systole::testbench

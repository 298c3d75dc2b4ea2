#include "mapper/replay/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/mapping_grid.h"
#include "hw/description/machine_file.h"
#include "hw/program/program.h"
#include "mapper/program_file.h"
#include "support/network/encoder_run.h"
#include "support/random/draws.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "testbench/network/tensors.h"
#include "testbench/run/simulation.h"
#include "tests/rtl/core/core_case.h"
#include "tests/testbench/run/random_program_run.h"

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

/// A replay by request of a whole program after the host has written these rows.
std::uint64_t by_request(const mapper::Mapping& mapping, const hw::Machine& machine,
                         const mapper::ReplayRows& input) {
  mapper::Replay replay(machine, mapper::Replay::Service::kRequests);
  replay.place_program(mapping.program_address);
  replay.write_input(input);
  replay.run(mapping.program, 0, mapping.program.commands.size());
  return replay.finish() - replay.begin();
}

class ReplayTest : public test::SystemCTest {};

TEST_F(ReplayTest, CyclesOfOperatorsAddUpToThoseOfTheProgram) {
  const Workload workload = test::encoder_workload({1, 64, 2, 128}, 40, 1);
  const hw::Machine machine = hw::find_machine("transformer");
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  const mapper::TensorPlace input =
      mapper::place_of(workload.graph, mapping, input_tensor(workload.graph));
  EXPECT_EQ(expected_cycles(mapping), mapping.expected_cycles);
  EXPECT_EQ(
      by_request(mapping, machine, {input.address, input.pitch, input.row_bytes(), 0, input.rows}),
      mapping.expected_cycles);
}

// Layers that repeat those before are not replayed, of a network that is too large to be replayed
// by request.
TEST_F(ReplayTest, AWholeReplayTakesWhatIsExpectedOfTheLayersThatRepeat) {
  const Workload workload = test::encoder_workload({8, 512, 8, 2048}, 64, 1);
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
    EXPECT_LT(std::abs(off), estimated ? 0.45 : 0.3) << "machine " << i;
    (estimated ? others : plain).add(off);
  }
  EXPECT_GT(plain.count, 20);
  EXPECT_LT(plain.mean(), 0.05);
  EXPECT_LT(others.mean(), 0.2);
}

// Cycle for cycle: both issue requests in the order of time, those of a cycle by the port.
TEST_F(ReplayTest, ByRequestItTakesWhatTheSimulationTakes) {
  const Workload workload = test::encoder_workload({1, 96, 3, 192}, 61, 1);
  test::Random random(3);
  const std::uint64_t machines = test::draws(60U);
  for (std::uint64_t count = 0; count < machines;) {
    const auto [machine, mapping] = test::random_fit(random, workload.graph);
    if (!mapper::Replay::knows_requests(machine)) continue;
    EXPECT_EQ(by_request(mapping, machine, {}), workload.cycles(mapping, machine))
        << "machine " << count;
    ++count;
  }
  std::mt19937_64 draws(7);
  for (std::uint64_t count = 0; count < machines;) {
    const hw::Machine machine = bench::draw_base(draws);
    if (!bench::is_valid(machine)) continue;
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    EXPECT_EQ(by_request(mapping, machine, {}), workload.cycles(mapping, machine))
        << bench::name_of(machine);
    ++count;
  }
}

// Loads to the accumulator wait while the array adds to their bank, for most of a product.
TEST_F(ReplayTest, ByRequestALoadThatWaitsForALongProductTakesWhatItsSimulationTakes) {
  const Workload workload = test::encoder_workload({1, 768, 12, 3072}, 128, 1);
  hw::Machine machine = hw::find_machine("transformer");
  machine.array.rows = machine.array.cols = 8;
  machine.scratchpad.kib = 512;
  machine.scratchpad.banks = 2;
  machine.accumulator = {256, 2, 2};
  machine.postop.lanes = 32;
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  EXPECT_EQ(by_request(mapping, machine, {}), workload.cycles(mapping, machine));
}

// A machine of any shape, and a program of commands that meet in its memories; nullopt if the
// machine's rules exclude a command.
std::optional<mapper::LoadableProgram> draw_program(test::Random& random) {
  const hw::Machine machine = test::random_machine(random);
  if (!mapper::Replay::knows_requests(machine)) return std::nullopt;
  CoreSize size = kTinyCore;
  size.lanes = machine.array.cols;
  size.stages = std::min(4U, machine.postop.max_stages - 1);
  size.statistics = machine.postop.row_statistics;
  size.banks = 1;
  size.bank_words = machine.scratchpad.kib * 1024 / size.lanes;
  size.sum_banks = 1;
  size.sum_bank_rows = machine.accumulator.kib * 256 / size.lanes;
  RandomCore cases(random, size);
  hw::Program program = cases.next(24);
  make_legal(program);
  program.operators.resize(1);
  mapper::LoadableProgram loaded = loadable(cases, std::move(program), machine);
  try {
    hw::check_program(loaded.program, machine, std::uint64_t{machine.dram.mib} << 20);
  } catch (const hw::InputError&) {
    return std::nullopt;
  }
  return loaded;
}

// Command by command, off what mappers emit.
TEST_F(ReplayTest, ByRequestRandomProgramsTakeWhatTheirSimulationTakes) {
  const std::uint64_t programs = test::draws(1000U);
  std::uint64_t count = 0;
  for (std::uint64_t seed = 0; count < programs; ++seed) {
    test::Random random(seed);
    const std::optional<mapper::LoadableProgram> loaded = draw_program(random);
    if (!loaded) continue;
    ++count;
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::fresh_kernel();
    expect_replay(*loaded, simulate(*loaded, tlm_model::make_models(loaded->machine),
                                    {std::vector<std::uint8_t>(loaded->input.bytes())}, {}));
  }
}

// With its input, and the rows of DRAM that the host leaves open.
TEST_F(ReplayTest, AMapperExpectsOfASmallNetworkWhatItsSimulationTakes) {
  const Workload workload = test::encoder_workload({1, 96, 3, 192}, 61, 1);
  std::mt19937_64 draws(9);
  testbench::SimulationOptions options;
  options.functional = false;
  for (int count = 0; count < 10;) {
    const hw::Machine machine = bench::draw_base(draws);
    if (!bench::is_valid(machine)) continue;
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    EXPECT_EQ(expected_cycles(mapping), mapping.expected_cycles);
    EXPECT_EQ(mapping.expected_cycles, workload.simulate(mapping, machine, options).cycles.front())
        << bench::name_of(machine);
    ++count;
  }
}

}  // namespace
}  // namespace systole::testbench

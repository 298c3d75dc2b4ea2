#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hw/core/bank_words.h"
#include "hw/description/machine_text.h"
#include "hw/number/int4.h"
#include "hw/program/program.h"
#include "support/network/encoder_run.h"
#include "support/network/int4_mapping.h"
#include "support/network/mapped_run.h"
#include "support/random/random_graph.h"
#include "support/random/random_machine.h"
#include "support/tlm/systemc_test.h"

/// Int4 weights on arrays whose multipliers split, on machines of any shape.
namespace systole::testbench {
namespace {

class Int4WeightsTest : public test::SystemCTest {};

// By an interpreter of programs that decodes halves of bytes by itself.
TEST_F(Int4WeightsTest, OfRandomProductsGiveTheValuesOfPlainIntegers) {
  test::Random random(31);
  int narrow = 0;
  for (std::uint64_t seed = 0; narrow < 120; ++seed) {
    hw::Machine machine = test::random_machine_without_search(random);
    if (machine.attention.lines != 0 || machine.unroller.loops != 0) continue;
    machine.array.split = hw::ArraySplit::kWeights;
    const model::Graph graph = test::with_int4(
        test::random_matmul_graph(seed, test::between(random, 1, 60), test::between(random, 1, 70),
                                  test::between(random, 1, 150)));
    mapper::Mapping mapping;
    try {
      mapping = mapper::map_graph(graph, machine);
    } catch (const hw::InputError&) {
      continue;  // too small
    }
    if (test::int4_bytes(mapping).int4_macs == 0) continue;
    ++narrow;
    hw::check_program(mapping.program, machine, mapping.dram_bytes);
    test::expect_program_computes_graph(graph, machine, mapping, seed);
    ASSERT_FALSE(HasFailure()) << seed << "\n" << hw::to_toml(machine);
  }
}

TEST_F(Int4WeightsTest, GiveTheSameValuesOnAnyMachineAndMoveAndTakeNoMore) {
  test::Workload workload = test::encoder_workload({1, 64, 2, 160}, 23, 1);
  workload.graph = test::with_int4(std::move(workload.graph));
  test::Random random(12);
  double off = 0, off_of_whole = 0, off_of_halves = 0, ratio = 0, worst = 0;
  int split = 0, plain = 0;
  while (split < 24) {
    hw::Machine machine = test::random_machine_without_search(random);
    if (machine.attention.lines != 0 || machine.unroller.loops != 0) continue;
    mapper::Mapping whole, halves;
    hw::Machine with_split = machine;
    with_split.array.split = hw::ArraySplit::kWeights;
    try {
      whole = mapper::map_graph(workload.graph, machine);
      halves = mapper::map_graph(workload.graph, with_split);
    } catch (const hw::InputError&) {
      continue;  // too small
    }
    const bool gemmini = machine.mapper.strategy == hw::MappingStrategy::kGemmini;
    EXPECT_EQ(test::int4_bytes(halves).int4_macs, gemmini ? 0U : 23U * 64U * (4 * 64 + 2 * 160));
    EXPECT_EQ(test::int4_bytes(whole).int4_macs, 0U);
    SimulationOptions options;
    options.check = true;
    const SimulationResult result = workload.simulate(halves, with_split, options);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first << "\n" << hw::to_toml(with_split);
    EXPECT_EQ(result.events.int4_macs, test::int4_bytes(halves).int4_macs);
    const auto cycles = static_cast<double>(result.cycles.front());
    EXPECT_GE(cycles, result.bounds.front()) << hw::to_toml(with_split);
    SimulationOptions timing;
    timing.functional = false;
    EXPECT_EQ(workload.simulate(halves, with_split, timing).cycles, result.cycles);
    const SimulationResult before = workload.simulate(whole, machine, timing);
    if (gemmini) {
      EXPECT_EQ(before.cycles, result.cycles);
      continue;
    }
    ++split;
    EXPECT_LE(test::int4_bytes(halves).loaded, test::int4_bytes(whole).loaded)
        << hw::to_toml(with_split);
    const double of_whole = cycles / static_cast<double>(before.cycles.front());
    ratio += of_whole;
    worst = std::max(worst, of_whole);
    if (machine.tlb.entries != 0 || machine.l2.kib != 0) continue;
    const auto cycles_of_whole = static_cast<double>(before.cycles.front());
    const auto missed = [&](const mapper::Mapping& mapping, double found) {
      return std::abs(static_cast<double>(test::tiling_cycles(mapping)) - found) / cycles_of_whole;
    };
    off += missed(halves, cycles);
    off_of_whole += missed(whole, cycles_of_whole);
    off_of_halves += missed(halves, cycles) * cycles_of_whole / cycles;
    ++plain;
  }
  EXPECT_LT(worst, 1.015);
  EXPECT_LT(ratio / split, 0.95);
  EXPECT_GT(plain, 5);
  // What a replay misses is mostly not of the array: as many cycles, of a shorter run.
  EXPECT_LT(off / plain, off_of_whole / plain + 0.01) << "expected cycles";
  EXPECT_LT(off_of_halves / plain, 0.12);
  RecordProperty("worst", std::to_string(worst));
  RecordProperty("mean", std::to_string(ratio / split));
  RecordProperty("expected_off", std::to_string(off_of_halves / plain));
  RecordProperty("expected_off_in_cycles_of_int8", std::to_string(off / plain));
  RecordProperty("expected_off_of_int8", std::to_string(off_of_whole / plain));
}

// With one port a row of activations takes two cycles; what a second one brings, and what needs
// none.
TEST_F(Int4WeightsTest, GainAsMuchAsThePortsOfActivationsAllow) {
  const auto array_cycles = [](std::uint32_t m, std::uint32_t ports, hw::ArraySplit split) {
    hw::Machine machine;
    machine.scratchpad.ports = ports;
    machine.scratchpad.banks = 4;
    machine.array.split = split;
    test::GraphSketch sketch("rows", 5);
    const model::View a = sketch.input("a", m, 512, hw::DType::kS8);
    const model::View sums = sketch.matmul("c", a, sketch.weight("b", 512, 64), false);
    const model::Graph graph = test::with_int4(sketch.take(sums));
    const mapper::Mapping mapping = mapper::map_graph(graph, machine);
    double cycles = 0;
    for (const hw::Command& command : mapping.program.commands) {
      const auto* const matmul = command.as<hw::cmd::Matmul>();
      if (matmul == nullptr) continue;
      const hw::ArrayReads reads = hw::matmul_reads(machine.array, *matmul);
      cycles += static_cast<double>(
          std::max(hw::matmul_cycles(machine.array, *matmul, true).interval, reads.a / ports));
    }
    return cycles;
  };
  constexpr auto kWhole = hw::ArraySplit::kNone, kSplit = hw::ArraySplit::kWeights;
  EXPECT_EQ(array_cycles(256, 1, kSplit), array_cycles(256, 1, kWhole));
  EXPECT_EQ(array_cycles(256, 2, kSplit), array_cycles(256, 2, kWhole) / 2);
  EXPECT_EQ(array_cycles(1, 1, kSplit), array_cycles(1, 1, kWhole) / 2) << "loading weights";
}

}  // namespace
}  // namespace systole::testbench

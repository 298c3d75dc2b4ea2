#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/roofline.h"
#include "base/error.h"
#include "hw/description/machine_file.h"
#include "hw/description/machine_text.h"
#include "hw/number/int4.h"
#include "hw/program/program.h"
#include "support/network/encoder_run.h"
#include "support/network/int4_mapping.h"
#include "support/network/mapped_run.h"
#include "support/network/random_convolutions.h"
#include "support/random/random_graph.h"
#include "support/random/random_machine.h"
#include "support/tlm/systemc_test.h"
#include "testbench/network/matmul_graph.h"

/// Products of int4 activations by int4 weights, on machines of any shape.
namespace systole::testbench {
namespace {

class Int4ProductsTest : public test::SystemCTest {};

/// A machine whose multipliers split for both operands.
hw::Machine int4_machine(test::Random& random) {
  for (;;) {
    hw::Machine machine = test::random_machine_without_search(random);
    if (machine.attention.lines != 0 || machine.unroller.loops != 0) continue;
    machine.array.split = hw::ArraySplit::kBoth;
    return machine;
  }
}

std::optional<mapper::Mapping> mapping_if_fits(const model::Graph& graph,
                                               const hw::Machine& machine) {
  try {
    return mapper::map_graph(graph, machine);
  } catch (const hw::InputError&) {
    return std::nullopt;  // too small
  }
}

// By an interpreter of programs that decodes halves of bytes by itself.
TEST_F(Int4ProductsTest, OfAnySizeGiveTheValuesOfPlainIntegers) {
  test::Random random(41);
  int narrow = 0;
  for (std::uint64_t seed = 0; narrow < 100; ++seed) {
    const hw::Machine machine = int4_machine(random);
    model::Graph graph = test::with_int4(
        test::random_matmul_graph(seed, test::between(random, 1, 60), test::between(random, 1, 70),
                                  test::between(random, 1, 150)));
    model::Tensor& a = graph.tensors[model::find_tensor(graph, "a")];
    a.int4 = a.type == hw::DType::kS8;
    const std::optional<mapper::Mapping> mapping = mapping_if_fits(graph, machine);
    if (!mapping || test::int4_bytes(*mapping).int4_int4_macs == 0) continue;
    ++narrow;
    hw::check_program(mapping->program, machine, mapping->dram_bytes);
    test::expect_program_computes_graph(graph, machine, *mapping, seed);
    ASSERT_FALSE(HasFailure()) << seed << "\n" << hw::to_toml(machine);
  }
}

/// Layers of products, every result of which but the last is from -8 to 7.
test::Workload int4_layers(std::uint64_t seed) {
  test::GraphSketch sketch("layers", seed);
  test::Random& random = sketch.random();
  const std::uint32_t rows = test::between(random, 1, 90);
  std::uint32_t cols = test::between(random, 8, 200);
  const std::vector<std::int32_t> values =
      test::random_values(random, std::size_t{rows} * cols, 100);
  test::Workload workload;
  workload.inputs.emplace_back();
  for (const std::int32_t value : values) {
    workload.inputs.front().push_back(static_cast<std::uint8_t>(value));
  }
  model::View x = sketch.input("x", rows, cols);
  for (int layer = 0; layer < 3; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    const std::uint32_t outs = test::between(random, 3, 200);
    x = sketch.matmul(name, x, sketch.weight(name + ".weight", cols, outs));
    x = sketch.stage(name + ".bias", x, model::bias_stage(), hw::DType::kS32);
    const auto shift = static_cast<unsigned>(layer == 0 ? 9 : 5);
    x = sketch.stage(name + ".requantise", x, test::GraphSketch::to_bits(layer == 2 ? 8 : 4, shift),
                     hw::DType::kS8);
    if (layer != 2 && random() % 2 != 0) {
      x = sketch.stage(name + ".relu", x, test::GraphSketch::relu(), hw::DType::kS8);
    }
    cols = outs;
  }
  workload.graph = test::with_int4(sketch.take(x));
  return workload;
}

TEST_F(Int4ProductsTest, OfLayersGiveTheSameValuesOnAnyMachineAndMoveAndTakeLess) {
  test::Random random(42);
  double ratio = 0, worst = 0, off = 0, loaded = 0;
  int runs = 0, plain = 0;
  for (std::uint64_t seed = 0; runs < 30; ++seed) {
    const hw::Machine machine = int4_machine(random);
    const test::Workload workload = int4_layers(seed);
    hw::Machine halves = machine;
    halves.array.split = hw::ArraySplit::kWeights;
    const std::optional<mapper::Mapping> mapping = mapping_if_fits(workload.graph, machine);
    const std::optional<mapper::Mapping> before = mapping_if_fits(workload.graph, halves);
    if (!mapping || !before) continue;
    SimulationOptions options;
    options.check = true;
    const SimulationResult result = workload.simulate(*mapping, machine, options);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first << "\n" << hw::to_toml(machine);
    EXPECT_EQ(result.check.operators, mapping->program.operators.size());
    const test::WidthBytes bytes = test::int4_bytes(*mapping);
    EXPECT_EQ(result.events.int4_macs, bytes.int4_macs);
    EXPECT_EQ(result.events.int4_int4_macs, bytes.int4_int4_macs);
    EXPECT_EQ(test::int4_bytes(*before).int4_int4_macs, 0U);
    const auto cycles = static_cast<double>(result.cycles.front());
    EXPECT_GE(cycles, result.bounds.front()) << hw::to_toml(machine);
    SimulationOptions timing;
    timing.functional = false;
    EXPECT_EQ(workload.simulate(*mapping, machine, timing).cycles, result.cycles);
    if (machine.mapper.strategy == hw::MappingStrategy::kGemmini) {
      EXPECT_EQ(bytes.int4_macs, 0U);
      continue;
    }
    ++runs;
    // All layers but the first, whose activations have eight bits; both results between them.
    const auto& nodes = workload.graph.nodes;
    std::uint64_t macs = 0, results = 0;
    for (std::size_t i = 0, layer = 0; i < nodes.size(); ++i) {
      if (nodes[i].product() == nullptr) continue;
      if (layer != 0) macs += nodes[i].macs();
      if (layer++ != 2) results += std::uint64_t{nodes[i].out.rows} * ((nodes[i].out.cols + 1) / 2);
    }
    EXPECT_EQ(bytes.int4_int4_macs, macs) << hw::to_toml(machine);
    EXPECT_EQ(bytes.int4_results, results);
    loaded +=
        static_cast<double>(bytes.loaded) / static_cast<double>(test::int4_bytes(*before).loaded);
    const double of_before =
        cycles / static_cast<double>(workload.simulate(*before, halves, timing).cycles.front());
    ratio += of_before;
    worst = std::max(worst, of_before);
    if (machine.tlb.entries != 0 || machine.l2.kib != 0) continue;
    off += std::abs(static_cast<double>(mapping->expected_cycles) / cycles - 1.0);
    ++plain;
  }
  RecordProperty("worst", std::to_string(worst));
  RecordProperty("mean", std::to_string(ratio / runs));
  RecordProperty("expected_off", std::to_string(off / plain));
  RecordProperty("loaded", std::to_string(loaded / runs));
  EXPECT_LT(loaded / runs, 0.98);
  // Small machines, where what now fits on chip takes the room of tiles.
  EXPECT_LT(worst, 1.08);
  EXPECT_LT(ratio / runs, 0.95);
  EXPECT_GT(plain, 5);
  EXPECT_LT(off / plain, 0.15);
}

// An array of one column: tiles of any width, and pairs of results in none but whole.
TEST_F(Int4ProductsTest, OfLayersAreStoredInWholePairsByAnyTiles) {
  test::Random random(44);
  int runs = 0;
  for (std::uint64_t seed = 0; runs < 16; ++seed) {
    hw::Machine machine = int4_machine(random);
    machine.array.cols = 1;
    machine.array.rows = test::power_of_two(random, 0, 3);
    machine.scratchpad.kib = machine.accumulator.kib = 4;
    machine.scratchpad.banks = machine.accumulator.banks = 1;
    if (!hw::machine_problems(machine).empty()) continue;
    const test::Workload workload = int4_layers(seed);
    const std::optional<mapper::Mapping> mapping = mapping_if_fits(workload.graph, machine);
    if (!mapping || test::int4_bytes(*mapping).int4_results == 0) continue;
    ++runs;
    SimulationOptions options;
    options.check = true;
    const SimulationResult result = workload.simulate(*mapping, machine, options);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first << "\n" << hw::to_toml(machine);
  }
}

TEST_F(Int4ProductsTest, OfConvolutionsHaveTheReferencesBitsOnAnyMachine) {
  test::Random random(43);
  int weights = 0, both = 0, residual = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const bool activations = seed % 4 != 0;
    const test::Workload workload = test::random_convolutions(seed, {activations, true});
    hw::Machine machine = int4_machine(random);
    if (seed % 4 == 0) machine.array.split = hw::ArraySplit::kWeights;
    const std::optional<mapper::Mapping> mapping = mapping_if_fits(workload.graph, machine);
    if (!mapping) continue;
    SimulationOptions options;
    options.check = true;
    const SimulationResult result = workload.simulate(*mapping, machine, options);
    EXPECT_EQ(result.check.mismatches, 0U) << seed << ": " << result.check.first << "\n"
                                           << hw::to_toml(machine);
    EXPECT_EQ(result.check.operators, mapping->program.operators.size());
    EXPECT_GE(static_cast<double>(result.cycles.front()), result.bounds.front())
        << seed << "\n"
        << hw::to_toml(machine);
    const test::WidthBytes bytes = test::int4_bytes(*mapping);
    EXPECT_EQ(result.events.int4_macs, bytes.int4_macs);
    EXPECT_EQ(result.events.int4_int4_macs, bytes.int4_int4_macs);
    weights += bytes.int4_macs != 0 ? 1 : 0;
    both += bytes.int4_int4_macs != 0 ? 1 : 0;
    // What an addition reads, too, stays as it is.
    const auto& tensors = workload.graph.tensors;
    for (const mapper::Group& group : mapping->groups) {
      for (const model::View& operand : group.tensors) {
        residual += tensors[operand.tensor].int4 ? 1 : 0;
        EXPECT_FALSE(mapping->tensors[operand.tensor].int4);
      }
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(weights, 100);
  EXPECT_GT(both, 15);
  EXPECT_GT(residual, 3);
}

// Of one product, what array and ports allow: all of it with two ports at each bank.
TEST_F(Int4ProductsTest, AreFourTimesAsManyWhereThePortsKeepUp) {
  const MatmulShape shape{256, 256, 256};
  const auto cycles = [&](hw::Int4Operands int4, std::uint32_t ports) {
    hw::Machine machine = hw::find_machine("transformer");
    machine.array.split = hw::ArraySplit::kBoth;
    machine.scratchpad.ports = ports;
    const test::Workload workload{
        make_matmul_graph(shape, machine.datapath, true, {false, true, int4}), {{}}};
    SimulationOptions timing;
    timing.functional = false;
    return static_cast<double>(
        workload.simulate(mapper::map_graph(workload.graph, machine), machine, timing)
            .cycles.front());
  };
  const double whole = cycles({}, 2);
  EXPECT_NEAR(cycles({false, true}, 2) / whole, 0.5, 0.05);
  EXPECT_NEAR(cycles({true, true}, 2) / whole, 0.25, 0.05);
  EXPECT_LT(cycles({true, true}, 1) / whole, 0.55);
  hw::Machine machine = hw::find_machine("transformer");
  machine.array.split = hw::ArraySplit::kBoth;
  const analysis::Roofline roofline = analysis::roofline_of(machine);
  EXPECT_EQ(roofline.int4_macs, 2 * roofline.macs);
  EXPECT_EQ(roofline.int4_int4_macs, 4 * roofline.macs);
}

// Inputs come to memory in pairs; where memory is slow, it is the bytes of pairs that bound a
// product.
TEST_F(Int4ProductsTest, OfInputsMoveHalfOfTheBytes) {
  test::Random random(45);
  for (int i = 0; i < 12; ++i) {
    const MatmulShape shape{test::between(random, 200, 400), test::between(random, 1, 8),
                            test::between(random, 100, 600)};
    hw::Machine machine = hw::find_machine("transformer");
    machine.array.split = hw::ArraySplit::kBoth;
    machine.bus.width_bytes = 4;
    const auto run = [&](hw::Int4Operands int4) {
      const test::Workload workload{
          make_matmul_graph(shape, machine.datapath, false, {true, true, int4}),
          {matmul_input(shape, int4.a)}};
      SimulationOptions options;
      options.check = true;
      const SimulationResult result =
          workload.simulate(mapper::map_graph(workload.graph, machine), machine, options);
      EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
      EXPECT_GE(static_cast<double>(result.cycles.front()), result.bounds.front());
      return result.bounds.front();
    };
    EXPECT_LT(run({true, true}), 0.75 * run({false, true}));
  }
}

// Two operators write a tensor, side by side: pairs of both, or bytes.
TEST_F(Int4ProductsTest, AreOfTensorsWhosePairsOneOperatorWrites) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.array.split = hw::ArraySplit::kBoth;
  for (const std::uint32_t first : {4U, 5U}) {
    test::GraphSketch sketch("parts", first);
    const model::View x = sketch.input("x", 8, 12);
    const model::TensorId whole = sketch.tensor("whole", 8, 11, hw::DType::kS8);
    const hw::Stage stage = test::GraphSketch::to_bits(4, 9);
    for (const auto& [name, col, cols] :
         {std::tuple{"left", 0U, first}, std::tuple{"right", first, 11 - first}}) {
      const model::View sums =
          sketch.matmul(name, x, sketch.weight(std::string(name) + ".w", 12, cols));
      sketch.stage_to(std::string(name) + ".q", sums, stage, {whole, 0, col, 8, cols});
    }
    const model::View out =
        sketch.matmul("out", sketch.whole(whole), sketch.weight("out.w", 11, 16));
    test::Workload workload{test::with_int4(sketch.take(out)), {}};
    workload.graph.tensors[whole].int4 = true;
    test::Random random(first);
    workload.inputs.push_back(test::random_bytes(random, 8 * 12));
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    EXPECT_EQ(mapping.tensors[whole].int4, first % 2 == 0);
    SimulationOptions options;
    options.check = true;
    EXPECT_EQ(workload.simulate(mapping, machine, options).check.mismatches, 0U) << first;
  }
}

}  // namespace
}  // namespace systole::testbench

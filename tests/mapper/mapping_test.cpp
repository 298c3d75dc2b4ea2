#include "mapper/mapping.h"

#include <gtest/gtest.h>

#include <string>

#include "hw/description/machine_file.h"
#include "hw/description/machine_text.h"
#include "hw/program/disassembly.h"
#include "hw/program/program.h"
#include "model/build/host_operators.h"
#include "model/seeded/shapes.h"
#include "support/input_error.h"
#include "support/network/mapped_run.h"
#include "support/random/draws.h"
#include "support/random/random_graph.h"
#include "support/random/random_machine.h"

namespace systole::mapper {
namespace {

using test::Random;

/// Maps, checks, executes; false if the machine is too small, which must then be said.
bool maps_and_computes(const model::Graph& graph, const hw::Machine& machine, std::uint64_t seed) {
  Mapping mapping;
  try {
    mapping = map_graph(graph, machine);
  } catch (const hw::InputError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.find("scratchpad.kib = ") == 0 || text.find("accumulator.kib = ") == 0 ||
                text.find("postop.operand_kib = ") == 0 ||
                text.find("postop.row_statistics = ") == 0 || text.find("dram.mib = ") == 0)
        << text;
    return false;
  }
  EXPECT_NO_THROW(hw::check_program(mapping.program, machine, mapping.dram_bytes));
  test::expect_program_computes_graph(graph, machine, mapping, seed);
  return true;
}

TEST(Mapping, DoesNotDependOnWeights) {
  model::EncoderShape shape = model::find_shape("bert-base");
  shape.layers = 1;
  const hw::Machine machine = hw::find_machine("transformer");
  const auto program = [&](bool shape_only) {
    model::SeededOptions options;
    options.shape_only = shape_only;
    const model::Graph graph = model::make_seeded_encoder("x", shape, 24, 1, options);
    return hw::disassemble(map_graph(graph, machine).program);
  };
  EXPECT_EQ(program(true), program(false));
}

TEST(Mapping, MatmulsOfEveryShapeComputeTheGraph) {
  // Sizes around every power of two, primes, and the ends of the range.
  const std::vector<std::uint32_t> sizes = {1,  2,  3,  4,  5,  7,  8,  13, 15, 16,  17,  23,  31,
                                            32, 33, 47, 61, 63, 64, 65, 67, 97, 127, 128, 129, 130};
  Random random(1);
  int mapped = 0;
  constexpr int kGraphs = test::draws(300);
  for (int i = 0; i < kGraphs; ++i) {
    const auto size = [&] {
      return random() % 2 == 0 ? test::one_of(random, sizes) : test::between(random, 1, 130);
    };
    const std::uint32_t m = size(), n = size(), k = size();
    const hw::Machine machine =
        i % 3 == 0 ? test::random_machine(random) : test::random_machine_without_search(random);
    SCOPED_TRACE("graph " + std::to_string(i) + ": " + std::to_string(m) + " x " +
                 std::to_string(n) + " x " + std::to_string(k) + " on\n" + hw::to_toml(machine));
    const auto seed = static_cast<std::uint64_t>(i);
    if (maps_and_computes(test::random_matmul_graph(seed, m, n, k), machine, seed)) ++mapped;
    if (HasFailure()) return;
  }
  EXPECT_GT(mapped, kGraphs * 2 / 3);
}

TEST(Mapping, EncodersOfEveryShapeComputeTheGraph) {
  Random random(2);
  int mapped = 0;
  constexpr int kGraphs = test::draws(60);
  for (int i = 0; i < kGraphs; ++i) {
    model::EncoderShape shape;
    shape.layers = test::between(random, 1, 2);
    shape.heads = test::between(random, 1, 4);
    shape.width = shape.heads * test::between(random, 1, 17);
    shape.hidden = test::between(random, 1, 80);
    shape.post_norm = random() % 2 != 0;
    shape.causal = i % 3 == 0;
    const std::uint32_t length = test::between(random, 1, 40);
    const hw::Machine machine =
        i % 3 == 0 ? test::random_machine(random) : test::random_machine_without_search(random);
    SCOPED_TRACE("graph " + std::to_string(i) + ": " + std::to_string(shape.heads) + " heads, " +
                 std::to_string(shape.width) + " wide, hidden " + std::to_string(shape.hidden) +
                 ", " + std::to_string(length) + " tokens on\n" + hw::to_toml(machine));
    const auto seed = static_cast<std::uint64_t>(i);
    const model::Graph graph = model::make_seeded_encoder("encoder", shape, length, seed);
    if (maps_and_computes(graph, machine, seed)) ++mapped;
    if (HasFailure()) return;
  }
  EXPECT_GT(mapped, kGraphs / 2);
}

// Heads narrower than a word of the scratchpad: queries, keys and values stay there all the same.
TEST(Mapping, NarrowHeadsStayOnChip) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.scratchpad.kib = 256;
  for (const std::uint32_t size : {32U, 64U}) {
    machine.array.rows = machine.array.cols = size;
    const model::Graph graph =
        model::make_seeded_encoder("encoder", {2, 64, 4, 96, false}, 40, size);
    ASSERT_TRUE(maps_and_computes(graph, machine, 3));
    const Mapping mapping = map_graph(graph, machine);
    std::size_t narrow_heads = 0;
    for (std::size_t i = 0; i < mapping.groups.size(); ++i) {
      const MatmulAnchor* const product = mapping.groups[i].matmul();
      if (product == nullptr) continue;
      const model::Tensor& b = graph.tensors[product->b.tensor];
      if (b.kind == model::Tensor::Kind::kConstant) continue;
      ++narrow_heads;
      EXPECT_EQ(mapping.tensors[product->b.tensor].place, Location::Place::kScratchpad);
      EXPECT_EQ(mapping.tilings[i].load_bytes, 0U) << mapping.groups[i].name;
    }
    EXPECT_EQ(narrow_heads, 2U * 2 * 4) << "scores and contexts of both layers, on " << size;
  }
}

TEST(Mapping, EncodersOnTheHostComputeTheGraph) {
  hw::Machine machine = hw::find_machine("tiny");
  machine.host.operators = hw::HostOperators::kFloat;
  for (const bool post_norm : {false, true}) {
    const model::Graph graph = model::with_host_operators(
        model::make_seeded_encoder("encoder", {2, 24, 3, 40, post_norm}, 17, 1));
    EXPECT_TRUE(maps_and_computes(graph, machine, 7));
    const Mapping mapping = map_graph(graph, machine);
    for (std::size_t i = 0; i < mapping.groups.size(); ++i) {
      const Group& group = mapping.groups[i];
      if (!group.host()) continue;
      // The host reaches DRAM alone, though matmuls are all that reads these.
      EXPECT_EQ(mapping.program.operators[i].place, hw::Operator::Place::kDram) << group.name;
      EXPECT_EQ(mapping.tensors[group.a.tensor].place, Location::Place::kDram) << group.name;
      EXPECT_GT(mapping.tilings[i].cycles, mapping.tilings[i].compute_cycles);
    }
  }
}

TEST(Mapping, WorkForAHostThatComputesNothingIsRefused) {
  const model::Graph graph = model::with_host_operators(
      model::make_seeded_encoder("encoder", {1, 24, 3, 40, true}, 17, 1));
  EXPECT_NE(input_error_of([&] {
              return map_graph(graph, hw::find_machine("tiny"));
            }).find("host.operators"),
            std::string::npos);
}

TEST(Mapping, ParametersAreAlignedOnTheSmallestArrays) {
  // Whose tiles may be of any number of bytes.
  Random random(3);
  std::size_t with_parameters = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    hw::Machine machine = hw::find_machine("tiny");
    machine.array.rows = test::power_of_two(random, 0, 1);
    machine.array.cols = test::power_of_two(random, 0, 1);
    if (seed % 2 == 0) machine.mapper.strategy = hw::MappingStrategy::kGemmini;
    hw::validate(machine);
    const std::uint32_t m = test::between(random, 1, 40), n = test::between(random, 1, 40);
    const model::Graph graph = test::random_matmul_graph(seed, m, n, test::between(random, 1, 40));
    ASSERT_TRUE(maps_and_computes(graph, machine, seed));
    const Mapping mapping = map_graph(graph, machine);
    for (const hw::Command& command : mapping.program.commands) {
      const auto* const result = command.as<hw::cmd::Result>();
      if (result == nullptr || result->chain.parameters == 0) continue;
      ++with_parameters;
      ASSERT_EQ(result->chain.parameters % hw::kParameterAlignment, 0U);
    }
  }
  EXPECT_GT(with_parameters, 0U);
}

TEST(Mapping, TheSmallestMachineRunsWhatFits) {
  hw::Machine machine = hw::find_machine("tiny");
  machine.scratchpad.kib = 1;
  machine.accumulator.kib = 1;
  hw::validate(machine);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    EXPECT_TRUE(maps_and_computes(test::random_matmul_graph(seed, 37, 29, 53), machine, seed));
  }
}

TEST(Mapping, ProgramsAreDeterministic) {
  const hw::Machine machine = hw::find_machine("transformer");
  const model::Graph graph = model::make_seeded_encoder("encoder", {2, 32, 2, 64, true}, 19, 1);
  const Mapping first = map_graph(graph, machine);
  const Mapping second = map_graph(graph, machine);
  ASSERT_EQ(first.image.size(), second.image.size());
  for (std::size_t i = 0; i < first.image.size(); ++i) {
    EXPECT_EQ(first.image[i].address, second.image[i].address);
    EXPECT_EQ(first.image[i].bytes, second.image[i].bytes);  // the program is the last of them
  }
  EXPECT_EQ(first.program_address, second.program_address);
  EXPECT_EQ(first.dram_bytes, second.dram_bytes);
}

TEST(Mapping, AGraphWithoutWeightsGetsTheSameProgram) {
  const hw::Machine machine = hw::find_machine("transformer");
  const model::EncoderShape shape{1, 48, 3, 80, true};
  const Mapping full = map_graph(model::make_seeded_encoder("encoder", shape, 19, 1), machine);
  const Mapping empty = map_graph(
      model::make_seeded_encoder("encoder", shape, 19, 1, {machine.datapath, true}), machine);
  EXPECT_EQ(full.image.back().bytes, empty.image.back().bytes);
  EXPECT_EQ(full.program_address, empty.program_address);
}

TEST(Mapping, TheImageDoesNotOverlapAnything) {
  const hw::Machine machine;
  const model::Graph graph = model::make_seeded_encoder("encoder", {2, 40, 2, 64, false}, 23, 1);
  const Mapping mapping = map_graph(graph, machine);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
  for (const hw::MemoryPiece& piece : mapping.image) {
    pieces.emplace_back(piece.address, piece.address + piece.bytes.size());
    EXPECT_LE(pieces.back().second, mapping.dram_bytes);
  }
  // Tensors that nothing initialises.
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const Location& location = mapping.tensors[id];
    const model::Tensor& tensor = graph.tensors[id];
    if (location.place != Location::Place::kDram || !tensor.data.empty()) continue;
    const std::uint64_t end = location.address + std::uint64_t{location.pitch} * tensor.rows;
    for (const auto& [from, to] : pieces) {
      EXPECT_TRUE(end <= from || to <= location.address) << tensor.name;
    }
  }
  std::sort(pieces.begin(), pieces.end());
  for (std::size_t i = 1; i < pieces.size(); ++i) EXPECT_LE(pieces[i - 1].second, pieces[i].first);
}

// The same bytes of a tensor, wanted in two layouts: what one product has loaded is of no use to
// the other, unless the array is square.
TEST(Mapping, OneMatrixCanBeUsedBothWaysRound) {
  for (const auto& [rows, cols] : {std::pair{4U, 64U}, {64U, 4U}, {16U, 16U}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
    hw::Machine machine;
    machine.array.rows = rows;
    machine.array.cols = cols;
    for (const bool is_weight : {true, false}) {
      test::GraphSketch g("both ways", 1);
      const model::View x = g.input("x", 20, 24);
      const model::View b = is_weight ? g.weight("b", 24, 24) : g.input("b", 24, 24);
      const model::View y = g.stage("y.small", g.matmul("y", x, b, false),
                                    test::GraphSketch::to_bits(8, 6), hw::DType::kS8);
      EXPECT_TRUE(maps_and_computes(g.take(g.matmul("z", y, b, true)), machine, 1));
    }
  }
}

TEST(Mapping, ATensorCanBeBothOperands) {
  for (const bool transposed : {false, true}) {
    test::GraphSketch g("square", 1);
    const model::View x = g.input("x", 33, 33);
    const model::Graph graph = g.take(g.matmul("y", x, x, transposed));
    for (const char* name : {"tiny", "gemmini"}) {
      EXPECT_TRUE(maps_and_computes(graph, hw::find_machine(name), 1));
    }
  }
}

TEST(Mapping, ATensorCanBeAddedToItself) {
  test::GraphSketch g("double", 1);
  const model::View x = g.input("x", 21, 37, hw::DType::kS16);
  const model::View y =
      g.stage("y", x, model::add_tensor_stage(hw::DType::kS16, {}, 16, hw::Rounding::kHalfUp),
              hw::DType::kS32, x);
  EXPECT_TRUE(maps_and_computes(g.take(y), hw::find_machine("tiny"), 1));
}

TEST(Mapping, OperatorsCarryNameTensorAndWork) {
  test::GraphSketch g("two", 1);
  const model::View x = g.input("x", 5, 7);
  const model::View y = g.stage("y.small", g.matmul("y", x, g.weight("w", 7, 9)),
                                test::GraphSketch::to_bits(8, 6), hw::DType::kS8);
  const model::View z = g.matmul("z", y, g.weight("v", 9, 3));
  const Mapping mapping = map_graph(g.take(z), hw::Machine{});
  ASSERT_EQ(mapping.program.operators.size(), 2U);
  const hw::Operator& first = mapping.program.operators[0];
  EXPECT_EQ(first.name, "y");
  EXPECT_EQ(first.tensor, "y.small");
  EXPECT_EQ(first.macs, 5U * 7 * 9);
  EXPECT_EQ(first.place, hw::Operator::Place::kScratchpad) << "only a matmul reads it";
  const hw::Operator& second = mapping.program.operators[1];
  EXPECT_EQ(second.tensor, "z");
  EXPECT_EQ(second.type, hw::DType::kS32);
  EXPECT_EQ(second.place, hw::Operator::Place::kDram);
}

TEST(Mapping, SaysWhichMemoryIsTooSmallAndForWhat) {
  const model::EncoderShape shape{1, 528, 2, 64, true};
  const model::Graph graph = model::make_seeded_encoder("encoder", shape, 40, 1);
  hw::Machine machine = hw::find_machine("tiny");
  machine.accumulator.kib = 8;
  // Two words for each of 528 columns: more than 4 KiB of parameters.
  EXPECT_EQ(input_error_of([&] { static_cast<void>(map_graph(graph, machine)); }),
            "scratchpad.kib = 4: blocks.0.norm1 (40 x 528 x 0) needs 5 KiB in its smallest tiles, "
            "4 are free; --set scratchpad.kib=16");
  machine.accumulator.kib = 1;
  EXPECT_EQ(input_error_of([&] { static_cast<void>(map_graph(graph, machine)); }),
            "accumulator.kib = 1: blocks.0.norm1 needs whole rows of 528 int32 in half the "
            "accumulator, at least 4224 bytes; --set accumulator.kib=8");
  machine = hw::Machine{};
  machine.postop.row_statistics = 39;
  EXPECT_EQ(input_error_of([&] { static_cast<void>(map_graph(graph, machine)); }),
            "postop.row_statistics = 39: blocks.0.attn.head0.row_sum needs 40 words more");
  machine = hw::Machine{};
  machine.dram.mib = 1;
  const model::Graph large =
      model::make_seeded_encoder("large", {4, 256, 2, 1024, true}, 40, 1, {machine.datapath, true});
  EXPECT_EQ(input_error_of([&] { static_cast<void>(map_graph(large, machine)); }),
            "dram.mib = 1: large needs 4 MiB; --set dram.mib=4");
  machine.dram.mib = 4;
  EXPECT_LE(map_graph(large, machine).dram_bytes, std::uint64_t{4} << 20);
}

}  // namespace
}  // namespace systole::mapper

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mapper/mapping.h"
#include "support/network/mapped_run.h"
#include "support/random/random_graph.h"
#include "tests/mapper/test_graphs.h"

namespace systole::mapper {
namespace {

using hw::Command;
using hw::Issue;
using test::GraphSketch;

hw::Machine gemmini() {
  hw::Machine machine;
  machine.mapper.strategy = hw::MappingStrategy::kGemmini;
  return machine;
}

TEST(EmitterLoop, AStepOfDepthIsALoadOfBAndAMatmulAndEveryFourthLoadsA) {
  const Mapping mapping = map_graph(product(32, 48, 96), gemmini());
  // Biases; six steps, A in chunks of 64 and 32 columns; per row block its result.
  EXPECT_EQ(opcodes(mapping.program), "allmlmlmlmllmlmsmse");
  const hw::Program& program = mapping.program;
  const auto &a = work<hw::cmd::Load>(program, 1), &b = work<hw::cmd::Load>(program, 2);
  EXPECT_EQ(std::make_pair(a.m, a.n), std::make_pair(32U, 64U)) << "A";
  EXPECT_EQ(std::make_pair(b.m, b.n), std::make_pair(16U, 48U)) << "B";
  EXPECT_EQ(b.from.pitch, 48U) << "weights stand row by row";
  EXPECT_EQ(work<hw::cmd::Load>(program, 4).from.address, b.from.address + 16 * 48);
  const auto& rest = work<hw::cmd::Load>(program, 10);
  EXPECT_EQ(std::make_pair(rest.m, rest.n), std::make_pair(32U, 32U));
  EXPECT_EQ(work<hw::cmd::Matmul>(program, 3).k, 16U);
  const auto &first = work<hw::cmd::Matmul>(program, 14),
             &second = work<hw::cmd::Matmul>(program, 16);
  EXPECT_EQ(first.m, 16U);
  EXPECT_EQ(work<hw::cmd::Store>(program, 15).from, first.c);
  EXPECT_EQ(work<hw::cmd::Store>(program, 17).from, second.c);
  EXPECT_EQ(second.c.address, first.c.address + 16 * first.c.pitch);
}

TEST(EmitterLoop, ABiasIsLoadedIntoTheAccumulatorForEachRow) {
  const Mapping mapping = map_graph(product(32, 48, 16), gemmini());
  const auto& bias = work<hw::cmd::LoadAccumulator>(mapping.program, 0);
  EXPECT_EQ(std::make_pair(bias.m, bias.n), std::make_pair(32U, 48U));
  EXPECT_EQ(bias.from.pitch, 0U) << "one row for all";
  EXPECT_TRUE(work<hw::cmd::Matmul>(mapping.program, 3).accumulate)
      << "the first product adds to it";
  EXPECT_TRUE(mapping.program.chains[0].stages.empty());
  GraphSketch g("plain", 1);
  const Mapping plain =
      map_graph(g.take(g.matmul("c", g.input("x", 32, 16), g.weight("w", 16, 48))), gemmini());
  EXPECT_EQ(opcodes(plain.program), "llmsmse");
  EXPECT_FALSE(work<hw::cmd::Matmul>(plain.program, 2).accumulate);
}

/// What follows a matmul: an addition of a word per channel.
struct Added {
  const char* name;
  hw::DType a;
  std::function<void(model::Graph& graph)> change;
  bool preloaded;  ///< the accumulator can begin with it
};

constexpr std::uint32_t kAddedDepth = 40, kAddedCols = 50;
constexpr std::int32_t kHighestBias = std::numeric_limits<std::int32_t>::max();
constexpr auto kLargestSum = static_cast<std::int32_t>(kAddedDepth * 128 * 128);
constexpr auto kLargestUnsignedSum = static_cast<std::int32_t>(kAddedDepth * 255 * 128);

std::function<void(model::Graph&)> with_bias(std::int32_t value) {
  return [value](model::Graph& graph) { graph.nodes[1].stage()->parameters.edit()[7] = value; };
}

class AddedToSums : public testing::TestWithParam<Added> {};

// After the addition: a word per row is added, and the sums are subtracted.
TEST_P(AddedToSums, LeavesTheChainWhereTheSumsDoNotChange) {
  GraphSketch g("added", 1);
  const model::View c = g.matmul("c", g.input("x", 20, kAddedDepth, GetParam().a),
                                 g.weight("w", kAddedDepth, kAddedCols));
  const model::View bias = g.stage("bias", c, model::bias_stage(), hw::DType::kS32);
  model::Graph graph = g.take(g.stage("q", bias, GraphSketch::to_bits(24, 0), hw::DType::kS32));
  for (std::uint8_t& weight : graph.tensors[graph.nodes[0].product()->b.tensor].data.edit()) {
    weight |= 0x40;
  }
  GetParam().change(graph);
  const Mapping mapping = map_graph(graph, gemmini());
  EXPECT_EQ(opcodes(mapping.program).front() == 'a', GetParam().preloaded);
  test::expect_program_computes_graph(graph, gemmini(), mapping, 1);
}

/// What the stage of node 1 leaves for each row is added to the result.
void leave_row_sums(model::Graph& graph) {
  const auto sums = static_cast<model::TensorId>(graph.tensors.size());
  graph.tensors.push_back(
      {"sums", 20, 1, hw::DType::kS32, model::Tensor::Kind::kActivation, {}, 0.0});
  const model::TensorId last = graph.nodes.back().out.tensor;
  graph.tensors.push_back(graph.tensors[last]);
  graph.tensors[last].kind = model::Tensor::Kind::kActivation;
  graph.tensors.back().name = "out";
  graph.nodes[1].stage()->stage.side = hw::Reduction::kRowSum;
  graph.nodes[1].stage()->statistics = sums;
  model::Node add;
  add.name = "add";
  add.stage()->stage.operand = hw::Operand::kRow;
  add.stage()->statistics = sums;
  add.in = add.out = graph.nodes.back().out;
  add.out.tensor = sums + 1;
  graph.nodes.push_back(add);
}

INSTANTIATE_TEST_SUITE_P(
    EmitterLoop, AddedToSums,
    testing::Values(
        Added{"Bias", hw::DType::kS8, [](model::Graph&) {}, true},
        Added{"Scaled", hw::DType::kS8,
              [](model::Graph& graph) {
                graph.nodes[1].stage()->stage.imm = {3, 2, -1000, 1000};
              },
              false},
        Added{"SideOutput", hw::DType::kS8, leave_row_sums, false},
        Added{"SumsReadAgain", hw::DType::kS8,
              [](model::Graph& graph) {
                model::Node& last = graph.nodes.back();
                last.stage()->stage = {};
                last.stage()->stage.op = hw::StageOp::kSub;
                last.stage()->stage.operand = hw::Operand::kTensor;
                last.stage()->stage.tensor = hw::DType::kS32;
                last.stage()->tensor = graph.nodes.front().out;
              },
              false},
        Added{"LargestThatFits", hw::DType::kS8, with_bias(kHighestBias - kLargestSum), true},
        Added{"TooLarge", hw::DType::kS8, with_bias(kHighestBias - kLargestSum + 1), false},
        Added{"Saturates", hw::DType::kS8, with_bias(kHighestBias), false},
        Added{"SaturatesBelow", hw::DType::kS8, with_bias(-kHighestBias - 1), false},
        Added{"LargestThatFitsUnsigned", hw::DType::kU8,
              with_bias(kHighestBias - kLargestUnsignedSum), true},
        Added{"TooLargeUnsigned", hw::DType::kU8, with_bias(kLargestUnsignedSum - kHighestBias - 1),
              false}),
    [](const testing::TestParamInfo<Added>& test) { return test.param.name; });

TEST(EmitterLoop, AGraphWithoutValuesGetsTheSameCommands) {
  model::Graph graph = product(32, 48, 96);
  const Mapping full = map_graph(graph, gemmini());
  for (model::Node& node : graph.nodes) {
    if (node.stage() != nullptr) node.stage()->parameters = {};
  }
  for (model::Tensor& tensor : graph.tensors) tensor.data = {};
  const Mapping empty = map_graph(graph, gemmini());
  EXPECT_EQ(full.image.back().bytes, empty.image.back().bytes);
}

TEST(EmitterLoop, LoopsAlternateBetweenHalvesAndReuseNothing) {
  const std::uint32_t n = 768, k = 768;
  const Mapping mapping = map_graph(product(128, n, k), gemmini());
  std::uint64_t loaded = 0;
  bool begins = false;
  std::vector<std::uint32_t> loops;  // half of the scratchpad of each loop
  for (const Command& command : mapping.program.commands) {
    begins |= command.issue != Issue::kNone;
    const auto* const load = std::get_if<hw::cmd::Load>(&command.work);
    if (load == nullptr) continue;
    const std::uint32_t half = load->to.address / (128 * 1024);
    if (begins) loops.push_back(half);
    begins = false;
    loaded += std::uint64_t{load->m} * load->n;
    EXPECT_EQ(half, loops.back());
  }
  EXPECT_EQ(loaded, 10U * 128 * k + 2U * k * n) << "what the library moves";
  ASSERT_EQ(loops.size(), 20U);
  for (std::size_t i = 0; i < loops.size(); ++i) EXPECT_EQ(loops[i], i % 2);
}

TEST(EmitterLoop, AnOperatorBeginsWithACallAndItsLoopsAreConfigured) {
  GraphSketch g("two", 1);
  const model::View x = g.input("x", 96, 16);
  const model::View q = g.stage("q", g.matmul("c", x, g.weight("w", 16, 96)),
                                GraphSketch::to_bits(8, 6), hw::DType::kS8);
  const Mapping mapping = map_graph(g.take(g.matmul("d", q, g.weight("v", 96, 16))), gemmini());
  std::map<std::pair<std::uint32_t, Issue>, int> issued;
  for (const Command& command : mapping.program.commands) ++issued[{command.op, command.issue}];
  EXPECT_EQ((issued[{0, Issue::kCall}]), 1);
  EXPECT_EQ((issued[{0, Issue::kLoop}]), 1) << "6 x 6 blocks in tiles of 5 x 6";
  EXPECT_EQ((issued[{1, Issue::kCall}]), 1);
  EXPECT_EQ(mapping.tensors[mapping.groups[0].out.tensor].place, Location::Place::kDram)
      << "results go to memory";
}

// Sizes that leave no room for parameters beside A and B, in one chunk of A and in several.
TEST(EmitterLoop, ParametersFindAPlaceInAFullScratchpad) {
  for (const std::uint32_t kib : {1U, 2U, 4U, 8U}) {
    for (const std::uint32_t k : {16U, 48U, 64U, 80U, 200U}) {
      hw::Machine machine = gemmini();
      machine.scratchpad = {kib, 1, 1};
      SCOPED_TRACE(std::to_string(kib) + " KiB, k = " + std::to_string(k));
      GraphSketch g("channels", k);
      const model::View c = g.matmul("c", g.input("x", 100, k), g.weight("w", k, 50));
      const model::Graph graph =
          g.take(g.stage("channels", c, model::channel_requantise_stage(8, hw::Rounding::kHalfEven),
                         hw::DType::kS8));
      const Mapping mapping = map_graph(graph, machine);
      hw::check_program(mapping.program, machine, mapping.dram_bytes);
      test::expect_program_computes_graph(graph, machine, mapping, k);
    }
  }
}

}  // namespace
}  // namespace systole::mapper

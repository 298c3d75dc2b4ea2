#include "model/build/host_operators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hw/function/layernorm.h"
#include "model/build/encoder_graph.h"
#include "model/graph/graph_check.h"
#include "model/integer/integer_model.h"
#include "model/quantise/quantise_layers.h"
#include "model/seeded/shapes.h"
#include "tests/model/vision.h"

namespace systole::model {
namespace {

const Node& node_named(const Graph& graph, const std::string& name) {
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const Node& node) { return node.name == name; });
  if (found == graph.nodes.end()) throw std::out_of_range(name);
  return *found;
}

class HostOperators : public testing::Test {
 protected:
  const IntegerVit vit_ = load_integer_vit(integer_model_path("vit17"));
  const Graph chip_ = make_vit_graph(vit_);
  const Graph host_ = with_host_operators(chip_);
};

TEST_F(HostOperators, LeaveMatmulsAndRequantisationsOnTheCore) {
  EXPECT_NO_THROW(check_graph(host_));
  std::size_t matmuls = 0;
  for (const Node& node : host_.nodes) {
    if (node.product() != nullptr) ++matmuls;
    if (node.stage() != nullptr) {
      EXPECT_FALSE(is_host_stage(node.stage()->stage)) << node.name;
    }
  }
  EXPECT_EQ(matmuls, static_cast<std::size_t>(std::count_if(
                         chip_.nodes.begin(), chip_.nodes.end(),
                         [](const Node& node) { return node.product() != nullptr; })));
}

TEST_F(HostOperators, TakeAClampIntoTheSum) {
  const Node& sum = node_named(host_, "blocks.0.attn.proj.add");
  ASSERT_NE(sum.host(), nullptr);
  EXPECT_EQ(host_.tensors[sum.out.tensor].name, "blocks.0.attn.residual");
  EXPECT_EQ(sum.host()->function.out, hw::DType::kS16);
  EXPECT_EQ(sum.host()->function.hi, 32767);
  EXPECT_THROW(static_cast<void>(node_named(host_, "blocks.0.attn.proj.clamp")), std::out_of_range);
}

TEST_F(HostOperators, NormaliseProbabilitiesAndDivideNoMore) {
  const Node& softmax = node_named(host_, "blocks.0.attn.head0.softmax");
  EXPECT_EQ(softmax.host()->function.out_scale, 1.0F / 256);
  EXPECT_EQ(softmax.host()->function.hi, 255);
  const Node& requantise = node_named(host_, "blocks.0.attn.head0.requantise");
  EXPECT_EQ(host_.tensors[requantise.in.tensor].name, "blocks.0.attn.head0.context");
  EXPECT_THROW(static_cast<void>(node_named(host_, "blocks.0.attn.head0.divide")),
               std::out_of_range);
}

TEST_F(HostOperators, WithoutThemTheGraphStaysAsItIs) {
  EXPECT_EQ(for_machine(chip_, hw::Machine()).nodes.size(), chip_.nodes.size());
  hw::Machine machine;
  machine.host.operators = hw::HostOperators::kFloat;
  EXPECT_EQ(for_machine(chip_, machine).nodes.size(), host_.nodes.size());
}

TEST_F(HostOperators, GeluNeedsScales) {
  Graph graph = chip_;
  for (Tensor& tensor : graph.tensors) tensor.scale = 0;
  EXPECT_THROW(static_cast<void>(with_host_operators(std::move(graph))), std::invalid_argument);
}

TEST_F(HostOperators, LayerNormGetsTheWeightsBackThatItsIntegersStandFor) {
  FloatNorm norm;
  for (int i = 0; i < 64; ++i) {
    norm.weight.push_back(0.5 + 0.02 * i);
    norm.bias.push_back(0.1 * (i % 7) - 0.3);
  }
  constexpr double kScale = 1.0 / 40;
  const IntegerLayerNorm integer =
      LayerQuantiser("test", 16, true).layer_norm("norm", norm, kScale);
  Graph graph;
  graph.tensors.resize(2);
  graph.tensors[1].scale = kScale;
  Node node;
  node.name = "norm";
  node.in = {0, 0, 0, 1, 64};
  node.out = {1, 0, 0, 1, 64};
  node.stage()->stage.op = hw::StageOp::kLayerNorm;
  node.stage()->stage.imm = {hw::kLayerNormFractionBits, integer.shift, -127, 127};
  std::vector<std::int32_t>& parameters = node.stage()->parameters.edit();
  parameters = integer.multiplier;
  parameters.insert(parameters.end(), integer.addend.begin(), integer.addend.end());
  graph.nodes = {node};
  const hw::HostFunction host = with_host_operators(graph).nodes.front().host()->function;
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_NEAR(host.gamma[i], norm.weight[i], 2e-4) << i;
    EXPECT_NEAR(host.beta[i], norm.bias[i], 2e-4) << i;
  }
}

class HostAccuracy : public testing::TestWithParam<const char*> {};

/// Float operators in between cost no accuracy: half a point is two pictures.
TEST_P(HostAccuracy, IsThatOfTheIntegerNetwork) {
  const IntegerVit vit = load_integer_vit(integer_model_path(GetParam()));
  const Dataset data = digits("test");
  const Graph graph = make_vit_graph(vit);
  const double integer =
      integer_accuracy(integer_logits(graph, vit.shape, data, data.count, kFast), data);
  const double real = integer_accuracy(
      integer_logits(with_host_operators(graph), vit.shape, data, data.count, kFast), data);
  EXPECT_NEAR(real, integer, 0.006);
}

INSTANTIATE_TEST_SUITE_P(All, HostAccuracy, testing::Values("vit17", "vit17-post"),
                         model_test_name);

TEST(HostOperatorsOfASeededEncoder, StayNearItsIntegers) {
  // One layer: a difference of a step is not multiplied by those after it.
  const EncoderShape shape{1, 64, 4, 128, true};
  const Graph chip = make_seeded_encoder("x", shape, 21, 4);
  const Graph host = with_host_operators(chip);
  const std::vector<std::int32_t> input = seeded_embedding(shape, 21, 5, {});
  std::vector<std::vector<std::int32_t>> results;
  for (const Graph* graph : {&chip, &host}) {
    Reference reference(*graph);
    reference.set_input("embedding", input);
    reference.run();
    results.push_back(reference.values("blocks.0.norm2"));
  }
  double squares = 0;
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    squares += std::pow(results[0][i] - results[1][i], 2);
  }
  // The codes deviate by 32.
  EXPECT_LT(std::sqrt(squares / static_cast<double>(results[0].size())), 1.0);
}

}  // namespace
}  // namespace systole::model

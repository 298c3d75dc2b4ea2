#include "model/build/encoder_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "model/graph/describe_model.h"
#include "model/graph/graph_builder.h"
#include "model/graph/graph_check.h"
#include "model/graph/reference.h"
#include "model/integer/integer_model.h"
#include "model/seeded/shapes.h"
#include "tests/model/vision.h"
#include "tests/support/input_error.h"

namespace systole::model {
namespace {

constexpr EncoderShape kSmallPost{2, 32, 4, 128, true};
constexpr EncoderShape kSmallPre{2, 32, 4, 128, false};

Graph vit_graph(const std::string& name) {
  return make_vit_graph(load_integer_vit(integer_model_path(name)));
}

const Node& node(const Graph& graph, const std::string& name) {
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const Node& n) { return n.name == name; });
  if (found == graph.nodes.end()) throw std::out_of_range("no node " + name);
  return *found;
}

bool has_node(const Graph& graph, const std::string& name) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& n) { return n.name == name; });
}

const Tensor& tensor(const Graph& graph, const std::string& name) {
  return graph.tensors[find_tensor(graph, name)];
}

/// A graph that the mapper and every chain of the machine accept.
void expect_sound(const Graph& graph) {
  EXPECT_NO_THROW(check_graph(graph));
  std::set<TensorId> written;
  for (const Node& n : graph.nodes) {
    if (n.stage() != nullptr) {
      EXPECT_NO_THROW(hw::check_chain({{n.stage()->stage}, graph.tensors[n.out.tensor].type}, {}))
          << n.name;
    }
    for (const View& view : {n.in, n.second()}) {
      if (view.tensor == kNoTensor) continue;
      const Tensor::Kind kind = graph.tensors[view.tensor].kind;
      const bool given = kind == Tensor::Kind::kInput || kind == Tensor::Kind::kConstant;
      EXPECT_TRUE(given || written.count(view.tensor) != 0) << n.name << " reads too early";
    }
    written.insert(n.out.tensor);
  }
}

class VitGraph : public ::testing::TestWithParam<const char*> {};

TEST_P(VitGraph, IsSound) { expect_sound(vit_graph(GetParam())); }

INSTANTIATE_TEST_SUITE_P(EmbeddedModels, VitGraph, ::testing::ValuesIn(kVisionModels),
                         model_test_name);

INSTANTIATE_TEST_SUITE_P(SparseModels, VitGraph, ::testing::ValuesIn(kSparseModels),
                         model_test_name);

TEST(EncoderGraph, PreNormVit) {
  const Graph graph = vit_graph("vit17");
  EXPECT_EQ(graph.name, "vit17");
  EXPECT_EQ(tensor(graph, "patches").kind, Tensor::Kind::kInput);
  EXPECT_EQ(tensor(graph, "patches").rows, 16U);
  EXPECT_EQ(tensor(graph, "patches").cols, 4U);
  EXPECT_EQ(tensor(graph, "logits").kind, Tensor::Kind::kOutput);
  EXPECT_EQ(tensor(graph, "logits").cols, 10U);
  EXPECT_EQ(tensor(graph, "embedding").type, hw::DType::kS16);
  // 1 patch product, 1 head, and per block 4 products and 2 per head.
  const auto products = std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                      [](const Node& n) { return n.product() != nullptr; });
  EXPECT_EQ(products, 2 + 4 * (4 + 2 * 4));
  const Node& scores = node(graph, "blocks.2.attn.head3.scores");
  EXPECT_TRUE(scores.product()->b_transposed);
  EXPECT_EQ(scores.in.tensor, scores.product()->b.tensor);
  EXPECT_EQ(scores.in.col, 48U);
  EXPECT_EQ(scores.product()->b.col, 64U + 48U);
  const Node& context = node(graph, "blocks.2.attn.head3.context");
  EXPECT_EQ(context.product()->b.col, 128U + 48U);
  EXPECT_EQ(graph.tensors[context.in.tensor].type, hw::DType::kU8);
  EXPECT_EQ(node(graph, "blocks.2.attn.head3.divide").statistics(),
            node(graph, "blocks.2.attn.head3.softmax").statistics());
  const Node& requantise = node(graph, "blocks.2.attn.head3.requantise");
  EXPECT_EQ(graph.tensors[requantise.out.tensor].name, "blocks.2.attn.context");
  EXPECT_EQ(requantise.out.col, 48U);
  // The residual addition of a pre-norm network takes the stream as it is.
  EXPECT_EQ(node(graph, "blocks.0.attn.proj.add").stage()->stage.imm[0], 0);
  EXPECT_EQ(node(graph, "blocks.0.attn.proj.add").second().tensor, find_tensor(graph, "embedding"));
  EXPECT_EQ(node(graph, "norm").in.rows, 1U);
}

TEST(EncoderGraph, PostNormVit) {
  const Graph graph = vit_graph("vit17-post");
  EXPECT_EQ(node(graph, "norm").in.tensor, find_tensor(graph, "embedding"));
  EXPECT_EQ(node(graph, "norm").in.rows, 17U);
  const Node& add = node(graph, "blocks.0.attn.proj.add");
  EXPECT_NE(add.stage()->stage.imm[0], 0);
  EXPECT_EQ(add.stage()->stage.tensor, hw::DType::kS8);
  EXPECT_EQ(add.second().tensor, find_tensor(graph, "norm"));
  EXPECT_EQ(node(graph, "blocks.0.norm1").in.tensor, find_tensor(graph, "blocks.0.attn.residual"));
  EXPECT_EQ(node(graph, "head").in.tensor, find_tensor(graph, "blocks.3.norm2"));
}

TEST(EncoderGraph, ClassTokenIsAConstantRow) {
  const IntegerVit vit = load_integer_vit(integer_model_path("vit17"));
  const Tensor embedding = tensor(make_vit_graph(vit), "embedding");
  ASSERT_EQ(embedding.data.size(), embedding.bytes());
  for (std::size_t i = 0; i < 64; ++i) {
    const auto code =
        static_cast<std::int16_t>(embedding.data[2 * i] | embedding.data[2 * i + 1] << 8);
    EXPECT_EQ(code, vit.position[i]);
  }
  EXPECT_TRUE(std::all_of(embedding.data.begin() + 128, embedding.data.end(),
                          [](std::uint8_t byte) { return byte == 0; }));
}

TEST(EncoderGraph, WeightsAreTransposedForTheArray) {
  const IntegerVit vit = load_integer_vit(integer_model_path("vit17"));
  const Tensor weight = tensor(make_vit_graph(vit), "blocks.1.mlp.fc1.weight");
  const IntegerLinear& layer = vit.encoder.blocks[1].fc1;
  ASSERT_EQ(weight.rows, 64U);
  ASSERT_EQ(weight.cols, 256U);
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::size_t o = 0; o < 256; ++o) {
      ASSERT_EQ(static_cast<std::int8_t>(weight.data[i * 256 + o]), layer.weight[o * 64 + i]);
    }
  }
}

TEST(EncoderGraph, NormalisedSoftmaxNeedsNoDivision) {
  IntegerVit vit = load_integer_vit(integer_model_path("vit17"));
  vit.encoder.datapath.softmax = hw::SoftmaxMode::kNormalisedFloor;
  const Graph graph = make_vit_graph(vit);
  expect_sound(graph);
  EXPECT_FALSE(has_node(graph, "blocks.0.attn.head0.divide"));
  EXPECT_EQ(node(graph, "blocks.0.attn.head0.softmax").statistics(), kNoTensor);
}

TEST(EncoderGraph, EqualFactorsTakeNoParameters) {
  IntegerVit vit = load_integer_vit(integer_model_path("vit17"));
  std::vector<hw::Dyadic>& factor = vit.encoder.blocks[0].fc1.factor;
  std::fill(factor.begin(), factor.end(), factor.front());
  const Graph graph = make_vit_graph(vit);
  expect_sound(graph);
  EXPECT_TRUE(node(graph, "blocks.0.mlp.fc1.requantise").stage()->parameters.empty());
  EXPECT_EQ(node(graph, "blocks.0.mlp.fc2.requantise").stage()->parameters.size(), 2U * 64U);
}

TEST(EncoderGraph, WideResidualStreamTakes32Bits) {
  SeededOptions options;
  options.datapath.residual_bits = 17;
  const Graph graph = make_seeded_encoder("wide", kSmallPre, 8, 1, options);
  expect_sound(graph);
  EXPECT_EQ(tensor(graph, "embedding").type, hw::DType::kS32);
  EXPECT_EQ(tensor(graph, "blocks.1.mlp.residual").type, hw::DType::kS32);
  EXPECT_EQ(tensor(graph, "blocks.1.mlp.residual").kind, Tensor::Kind::kOutput);
}

TEST(DescribeGraph, CountsTheWorkOfAModel) {
  const ModelInfo info = describe_graph(vit_graph("vit17"));
  // Per block: qkv, proj, fc1, fc2 on 17 tokens, scores and context of 4 heads; patches; head.
  EXPECT_EQ(info.macs,
            4U * (17 * 64 * (192 + 64 + 256 + 256) + 2 * 17 * 17 * 64) + 16 * 4 * 64 + 64 * 10);
  EXPECT_EQ(info.weight_bytes, 4U * 64 * (192 + 64 + 256 + 256) + 4 * 64 + 64 * 10);
  EXPECT_EQ(info.table_bytes, 2U * 16 * 64);
  ASSERT_EQ(info.products.size(), 2U + 4 * 6);
  EXPECT_EQ(info.products[2].name, "blocks.0.attn.head*.scores");
  EXPECT_EQ(info.products[2].count, 4U);
  EXPECT_EQ(info.products[2].macs, 4U * 17 * 17 * 16);
  EXPECT_EQ(info.products[1].parameter_bytes, 4U * 3 * 192);
  EXPECT_EQ(info.scales.front().tensor, "patches");
}

TEST(Shapes, AreFoundByName) {
  EXPECT_EQ(find_shape("bert-base"), (EncoderShape{12, 768, 12, 3072, true}));
  EXPECT_EQ(input_error_of([] { return find_shape("bert-huge"); }),
            "shape 'bert-huge': unknown, expected one of bert-base, bert-large, gpt2, gpt2-medium, "
            "gpt2-large, gpt2-xl, deit-tiny, deit-small, deit-base");
}

/// Parameters of the layers: products, biases and LayerNorms.
double mega_parameters(const NamedShape& network) {
  const double d = network.shape.width, hidden = network.shape.hidden;
  const double layer = 4 * d * d + 2 * d * hidden + 4 * d + d + hidden + 4 * d;
  return 1e-6 * (network.shape.layers * layer + (network.vocabulary + network.positions) * d);
}

TEST(Shapes, HaveThePublishedNumberOfParameters) {
  // Millions, as published; what the embeddings and heads have besides is below 2 %.
  const std::pair<const char*, double> published[] = {
      {"bert-base", 110},   {"bert-large", 335}, {"gpt2", 124},
      {"gpt2-medium", 355}, {"gpt2-large", 774}, {"gpt2-xl", 1558},
      {"deit-tiny", 5.5},   {"deit-small", 22},  {"deit-base", 86}};
  ASSERT_EQ(named_shapes().size(), std::size(published));
  for (const auto& [name, millions] : published) {
    EXPECT_NEAR(mega_parameters(find_named_shape(name)), millions, 0.03 * millions) << name;
  }
}

TEST(SeededEncoder, HasTheWorkOfItsShape) {
  SeededOptions options;
  options.shape_only = true;
  const Graph graph = make_seeded_encoder("bert-base", find_shape("bert-base"), 512, 1, options);
  const std::uint64_t tokens = 512;
  const std::uint64_t width = 768;
  EXPECT_EQ(count_macs(graph), 12 * (tokens * width * 12 * width + 2 * tokens * tokens * width));
  EXPECT_EQ(describe_graph(graph).weight_bytes, 12 * 12 * width * width);
}

TEST(SeededEncoder, ShapeAloneHasTheSameGraphWithoutData) {
  SeededOptions shape_only;
  shape_only.shape_only = true;
  const Graph full = make_seeded_encoder("x", kSmallPost, 8, 3);
  const Graph shape = make_seeded_encoder("x", kSmallPost, 8, 3, shape_only);
  expect_sound(full);
  ASSERT_EQ(full.nodes.size(), shape.nodes.size());
  for (std::size_t i = 0; i < full.nodes.size(); ++i) {
    EXPECT_EQ(full.nodes[i].name, shape.nodes[i].name);
    ASSERT_EQ(full.nodes[i].op.index(), shape.nodes[i].op.index());
    if (full.nodes[i].stage() == nullptr) continue;
    EXPECT_EQ(full.nodes[i].stage()->stage.imm, shape.nodes[i].stage()->stage.imm);
    EXPECT_EQ(full.nodes[i].stage()->parameters, shape.nodes[i].stage()->parameters);
  }
  for (const Tensor& t : shape.tensors) EXPECT_TRUE(t.data.empty()) << t.name;
  EXPECT_THROW(Reference{shape}, std::invalid_argument);
}

TEST(SeededEncoder, SameSeedSameBits) {
  const auto weights = [](std::uint64_t seed) {
    return tensor(make_seeded_encoder("x", kSmallPre, 4, seed), "blocks.1.mlp.fc2.weight").data;
  };
  EXPECT_EQ(weights(5), weights(5));
  EXPECT_NE(weights(5), weights(6));
  EXPECT_NE(weights(5), weights(5 + (std::uint64_t{1} << 32)));
}

TEST(SeededEncoder, TakesAMaskForEachLayer) {
  const std::size_t layers = kSmallPre.layers, cells = std::size_t{kSmallPre.heads} * 4 * 4;
  SeededOptions options;
  options.keep.assign(layers, std::vector<std::uint8_t>(cells, 1));
  options.keep[1][5] = 0;  // head 0, query 1, key 1
  const Graph graph = make_seeded_encoder("x", kSmallPre, 4, 1, options);
  expect_sound(graph);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const Tensor& pruned = tensor(graph, "blocks." + std::to_string(layer) + ".attn.head0.pruned");
    for (std::size_t cell = 0; cell < 16; ++cell) {
      EXPECT_EQ(pruned.data[cell] != 0, layer == 1 && cell == 5) << layer << " " << cell;
    }
  }
  const auto error = [&](std::size_t count, std::size_t size) {
    options.keep.assign(count, std::vector<std::uint8_t>(size, 1));
    return input_error_of([&] { return make_seeded_encoder("x", kSmallPre, 4, 1, options); });
  };
  EXPECT_NE(error(layers + 1, cells).find("encoder masks: expected"), std::string::npos);
  EXPECT_NE(error(layers, cells - 1).find("encoder masks: expected"), std::string::npos);
}

TEST(SeededEncoder, ACausalOneKnowsNothingOfTokensBehind) {
  EncoderShape shape = kSmallPre;
  shape.causal = true;
  const Graph graph = make_seeded_encoder("causal", shape, 9, 1);
  expect_sound(graph);
  const auto outputs = [&](std::int32_t last) {
    Reference reference(graph);
    std::vector<std::int32_t> values = seeded_embedding(shape, 9, 2, {});
    for (std::size_t i = 5 * shape.width; i < values.size(); ++i) values[i] = last;
    reference.set_input("embedding", values);
    reference.run();
    return reference.values(graph.tensors[graph.nodes.back().out.tensor].name);
  };
  const std::vector<std::int32_t> a = outputs(1), b = outputs(900);
  const auto cut = static_cast<std::ptrdiff_t>(5 * shape.width);
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + cut, b.begin()));
  EXPECT_FALSE(std::equal(a.begin() + cut, a.end(), b.begin() + cut));
}

TEST(SeededEncoder, TheFirstTokenOfACausalOneAttendsToItselfAlone) {
  EncoderShape shape = kSmallPre;
  shape.causal = true;
  const Graph long_one = make_seeded_encoder("causal", shape, 9, 1);
  Reference reference(long_one);
  reference.set_input("embedding", seeded_embedding(shape, 9, 2, {}));
  reference.run();
  const std::vector<std::int32_t> codes = reference.values("blocks.0.attn.head0.softmax");
  EXPECT_EQ(codes.front(), 255);
  for (std::size_t row = 0; row < 9; ++row) {
    for (std::size_t col = row + 1; col < 9; ++col) EXPECT_EQ(codes[row * 9 + col], 0);
    EXPECT_EQ(*std::max_element(codes.begin() + static_cast<std::ptrdiff_t>(row * 9),
                                codes.begin() + static_cast<std::ptrdiff_t>(row * 9 + 9)),
              255);
  }
}

struct SeededCase {
  const char* name;
  EncoderShape shape;
  std::uint32_t length;
  hw::Machine::Datapath datapath;
};

class SeededActivations : public ::testing::TestWithParam<SeededCase> {};

/// Every activation uses its codes: it deviates by several steps, and few values saturate.
TEST_P(SeededActivations, AreNeitherZeroNorSaturated) {
  const SeededCase& c = GetParam();
  SeededOptions options;
  options.datapath = c.datapath;
  const Graph graph = make_seeded_encoder(c.name, c.shape, c.length, 11, options);
  expect_sound(graph);
  Reference reference(graph, {true, false});
  reference.set_input("embedding", seeded_embedding(c.shape, c.length, 12, c.datapath));
  reference.run();
  const std::int32_t stream_max = (1 << (c.datapath.residual_bits - 1)) - 1;
  for (const Tensor& t : graph.tensors) {
    const bool stream = t.name.find("residual") != std::string::npos;
    if (t.kind == Tensor::Kind::kConstant || !(stream || t.type == hw::DType::kS8)) continue;
    const std::vector<std::int32_t> values = reference.values(t.name);
    const std::int32_t largest = stream ? stream_max : 127;
    double squares = 0;
    std::size_t saturated = 0;
    for (const std::int32_t x : values) {
      squares += static_cast<double>(x) * x;
      if (std::abs(x) == largest) ++saturated;
    }
    const auto count = static_cast<double>(values.size());
    EXPECT_GT(std::sqrt(squares / count), 4.0) << t.name;
    EXPECT_LT(static_cast<double>(saturated) / count, 0.05) << t.name;
  }
}

constexpr hw::Machine::Datapath kIBert{31, hw::Rounding::kHalfEven, 22,
                                       hw::SoftmaxMode::kNormalisedRound, 8};

INSTANTIATE_TEST_SUITE_P(
    Shapes, SeededActivations,
    ::testing::Values(SeededCase{"post", kSmallPost, 16, {}}, SeededCase{"pre", kSmallPre, 16, {}},
                      SeededCase{"one_token", kSmallPost, 1, {}},
                      SeededCase{"one_head", {1, 16, 1, 16, true}, 40, {}},
                      SeededCase{"deep", {12, 128, 4, 512, true}, 256, {}},
                      SeededCase{"deep_pre", {12, 128, 4, 512, false}, 256, {}},
                      SeededCase{"ibert", {4, 64, 4, 256, true}, 64, kIBert}),
    [](const auto& seeded) { return std::string(seeded.param.name); });

TEST(SeededEncoder, RefusesShapesThatAreNone) {
  const auto error = [](const EncoderShape& shape, std::uint32_t length) {
    return input_error_of([&] { return make_seeded_encoder("x", shape, length, 1); });
  };
  EXPECT_EQ(error({0, 8, 2, 8, true}, 4), "encoder shape: 0 layers, expected 1 or more");
  EXPECT_EQ(error({1, 0, 2, 8, true}, 4), "encoder shape: width 0, expected 1 to 65536");
  EXPECT_EQ(error({1, 8, 0, 8, true}, 4),
            "encoder shape: 0 heads, expected a divisor of the width 8");
  EXPECT_EQ(error({1, 8, 3, 8, true}, 4),
            "encoder shape: 3 heads, expected a divisor of the width 8");
  EXPECT_EQ(error({1, 8, 2, 70000, true}, 4), "encoder shape: hidden 70000, expected 1 to 65536");
  EXPECT_EQ(error({1, 8, 2, 8, true}, 0), "encoder shape: length 0, expected 1 to 65536");
}

}  // namespace
}  // namespace systole::model

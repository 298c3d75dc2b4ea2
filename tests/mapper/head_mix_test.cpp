#include "model/integer/head_mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "mapper/fuse/fusion.h"
#include "mapper/mapping.h"
#include "model/build/encoder_blocks.h"
#include "model/graph/graph_builder.h"
#include "support/network/mapped_run.h"
#include "support/random/draws.h"
#include "support/random/random_graph.h"
#include "support/random/random_machine.h"
#include "tests/mapper/test_graphs.h"

/// Encoders that join the stores of a projection, and decoders that join the attention.
namespace systole::mapper {
namespace {

using model::View;
using test::Random;

struct LinkShape {
  std::uint32_t rows = 9, inputs = 12, heads = 3, latent_heads = 2, features = 8;
};

model::IntegerLinear random_linear(Random& random, std::uint32_t inputs, std::uint32_t outputs) {
  model::IntegerLinear layer;
  layer.inputs = inputs;
  layer.outputs = outputs;
  for (std::uint32_t i = 0; i < inputs * outputs; ++i) {
    layer.weight.edit().push_back(static_cast<std::int8_t>(test::between(random, 0, 255) - 128));
  }
  for (std::uint32_t o = 0; o < outputs; ++o) {
    layer.bias.push_back(test::random_values(random, 1, 3000).front());
    layer.factor.push_back({static_cast<std::int32_t>(test::between(random, 1, 65535)),
                            static_cast<std::int8_t>(test::between(random, 20, 26))});
  }
  return layer;
}

View columns(View view, std::uint32_t first, std::uint32_t count) {
  view.col += first;
  view.cols = count;
  return view;
}

/// Q, K and V from one projection, Q and K encoded, and a product of all three.
model::Graph linked_graph(const LinkShape& shape, std::uint64_t seed) {
  Random random(seed);
  model::GraphBuilder builder("link");
  const model::IntegerEncoder encoder;
  model::EncoderBlocks blocks(builder, encoder);
  const std::uint32_t width = shape.heads * shape.features;
  const View x = builder.whole(builder.add_tensor(
      {"x", shape.rows, shape.inputs, hw::DType::kS8, model::Tensor::Kind::kInput, {}, 0.0}));
  const View qkv =
      blocks.linear("qkv", {x}, random_linear(random, shape.inputs, 3 * width), 8, hw::DType::kS8);
  const auto encode = [&](const std::string& name, std::uint32_t section) {
    return blocks.linear(
        name, {columns(qkv, section * width, width)},
        model::across_heads(random_linear(random, shape.heads, shape.latent_heads), shape.features),
        8, hw::DType::kS8);
  };
  const View query = encode("encoder_q", 0);
  const View key = encode("encoder_k", 1);
  const View scores = builder.stage("scores.requantise", builder.matmul("scores", query, key, true),
                                    test::GraphSketch::to_bits(8, 6), hw::DType::kS8);
  const View out = builder.matmul("out", scores, columns(qkv, 2 * width, width), false);
  builder.tensor(out.tensor).kind = model::Tensor::Kind::kOutput;
  return std::move(builder).take();
}

hw::Machine machine_with_engines() { return hw::find_machine("vitcod"); }

std::size_t encoders(const model::Graph& graph, const hw::Machine& machine) {
  std::size_t count = 0;
  for (const Group& group : fuse(graph, machine).groups) count += group.encoder() ? 1 : 0;
  return count;
}

TEST(Encoders, JoinTheStoresOfTheProjection) {
  const model::Graph graph = linked_graph({}, 1);
  const hw::Machine machine = machine_with_engines();
  const Mapping mapping = map_graph(graph, machine);
  ASSERT_EQ(mapping.groups.size(), 5U);
  EXPECT_EQ(mapping.groups[0].name, "qkv");
  EXPECT_EQ(mapping.groups[0].section_cols(), 24U);
  EXPECT_EQ(mapping.groups[1].name, "encoder_q");
  EXPECT_EQ(mapping.groups[2].name, "encoder_k");
  std::size_t encoded = 0;
  for (const hw::Command& command : mapping.program.commands) {
    EXPECT_FALSE(command.opcode() == hw::Opcode::kMatmul && (command.op == 1 || command.op == 2));
    const auto* const store = command.as<hw::cmd::Store>();
    if (store == nullptr || !store->encoder) continue;
    ++encoded;
    EXPECT_EQ(command.op, *store->encoder + 1U);
    EXPECT_EQ(store->n, 24U);
    EXPECT_EQ(hw::written_rows(*store, mapping.program).bytes, 16U);
  }
  EXPECT_EQ(encoded, 2U);
  const hw::Operator& rest = mapping.program.operators[0];
  EXPECT_EQ(rest.cols, 24U);
  EXPECT_EQ(mapping.program.operators[1].macs, 9U * 8 * 3 * 2);
  test::expect_program_computes_graph(graph, machine, mapping, 1);
}

model::Node& node(model::Graph& graph, const std::string& name) {
  return *std::find_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const model::Node& n) { return n.name == name; });
}

std::vector<std::uint8_t>& weights(model::Graph& graph, const std::string& layer) {
  return graph.tensors[node(graph, layer).product()->b.tensor].data.edit();
}

/// Inserts an operator that copies bytes before the node of that name.
void copy_before(model::Graph& graph, const std::string& before, const std::string& name,
                 const View& from, const View& to) {
  model::Node copy;
  copy.name = name;
  copy.stage()->stage = model::clamp_stage(8);
  copy.in = from;
  copy.out = to;
  const auto place = &node(graph, before) - graph.nodes.data();
  graph.nodes.insert(graph.nodes.begin() + place, copy);
}

/// The stage leaves the sum of each row, too.
void leave_row_sums(model::Graph& graph, const std::string& name) {
  model::Node& stage = node(graph, name);
  stage.stage()->stage.side = hw::Reduction::kRowSum;
  stage.stage()->statistics = static_cast<model::TensorId>(graph.tensors.size());
  graph.tensors.push_back({name + ".sums",
                           stage.in.rows,
                           1,
                           hw::DType::kS32,
                           model::Tensor::Kind::kActivation,
                           {},
                           0.0});
}

/// Part of V, as wide as it may be to fit `view`, and that part of the view.
std::pair<View, View> part_of_values(model::Graph& graph, View view) {
  View values = node(graph, "encoder_q").in;
  values.col += 2 * values.cols;
  values.cols = view.cols = std::min(values.cols, view.cols);
  return {values, view};
}

struct Spoilt {
  const char* name;
  std::function<void(model::Graph& graph)> change;
};

/// Layers of any shape that are more than a mix, or cannot run with the projection.
std::vector<Spoilt> spoilt_layers() {
  return {
      {"ScaledBias",
       [](model::Graph& g) {
         node(g, "encoder_q.bias").stage()->stage.imm = {3, 1, -127, 127};
       }},
      {"SumsOfBias", [](model::Graph& g) { leave_row_sums(g, "encoder_q.bias"); }},
      {"SumsOfResult", [](model::Graph& g) { leave_row_sums(g, "encoder_q.requantise"); }},
      {"ProductWanted",
       [](model::Graph& g) {
         g.tensors[node(g, "encoder_q").out.tensor].kind = model::Tensor::Kind::kOutput;
       }},
      {"BiasedWanted",
       [](model::Graph& g) {
         g.tensors[node(g, "encoder_q.bias").out.tensor].kind = model::Tensor::Kind::kOutput;
       }},
      {"SectionWrittenAgain",
       [](model::Graph& g) {
         const auto [values, section] = part_of_values(g, node(g, "encoder_q").in);
         copy_before(g, "encoder_q", "again", values, section);
       }},
      {"ResultWrittenBefore",
       [](model::Graph& g) {
         const auto [values, result] = part_of_values(g, node(g, "encoder_q.requantise").out);
         copy_before(g, "encoder_q", "before", values, result);
       }},
      {"ResultReadBefore",
       [](model::Graph& g) {
         const auto [values, result] = part_of_values(g, node(g, "encoder_q.requantise").out);
         const auto old = static_cast<model::TensorId>(g.tensors.size());
         g.tensors.push_back({"old",
                              result.rows,
                              result.cols,
                              hw::DType::kS8,
                              model::Tensor::Kind::kOutput,
                              {},
                              0.0});
         copy_before(g, "qkv", "first", {node(g, "qkv").in.tensor, 0, 0, result.rows, 1},
                     {result.tensor, 0, 0, result.rows, 1});
         copy_before(g, "encoder_q", "read", {result.tensor, 0, 0, result.rows, 1},
                     {old, 0, 0, result.rows, 1});
       }},
  };
}

TEST(Encoders, OfEveryShapeComputeTheGraph) {
  Random random(5);
  int joined = 0, mapped = 0;
  constexpr int kGraphs = test::draws(120);
  for (int i = 0; i < kGraphs; ++i) {
    LinkShape shape;
    shape.rows = test::between(random, 1, 40);
    shape.inputs = test::between(random, 1, 70);
    shape.heads = test::between(random, 1, 6);
    shape.latent_heads = test::between(random, 1, 6);
    shape.features = test::between(random, 2, 20);
    hw::Machine machine =
        i % 3 == 0 ? test::random_machine(random) : test::random_machine_without_search(random);
    machine.attention.macs_per_line = test::power_of_two(random, 0, 3);
    machine.attention.lines =
        machine.array.rows * machine.array.cols / machine.attention.macs_per_line;
    machine.attention.encoder_lines = test::between(random, 1, 20);
    SCOPED_TRACE("graph " + std::to_string(i));
    const auto seed = static_cast<std::uint64_t>(i);
    model::Graph graph = linked_graph(shape, seed);
    if (random() % 2 != 0) test::one_of<Spoilt>(random, spoilt_layers()).change(graph);
    Mapping mapping;
    try {
      mapping = map_graph(graph, machine);
    } catch (const hw::InputError&) {
      continue;  // too small a machine
    }
    ++mapped;
    joined += std::any_of(mapping.groups.begin(), mapping.groups.end(),
                          [](const Group& group) { return group.encoder() != nullptr; });
    test::expect_program_computes_graph(graph, machine, mapping, seed);
    if (HasFailure()) return;
  }
  EXPECT_GT(mapped, kGraphs / 2);
  EXPECT_GT(joined, kGraphs / 4);
  EXPECT_LT(joined, mapped);
}

TEST(Encoders, NeedEncoderLines) {
  const model::Graph graph = linked_graph({}, 1);
  hw::Machine machine = machine_with_engines();
  EXPECT_EQ(encoders(graph, machine), 2U);
  machine.attention.encoder_lines = 0;
  EXPECT_EQ(encoders(graph, machine), 0U);
  EXPECT_EQ(encoders(graph, hw::find_machine("transformer")), 0U);
}

TEST(Encoders, NeedWholeSectionsInTheAccumulator) {
  LinkShape shape;
  shape.features = 100;
  hw::Machine machine = machine_with_engines();
  EXPECT_EQ(encoders(linked_graph(shape, 1), machine), 2U);
  machine.accumulator.kib = 2;  // 256 columns in half of it, and a section has 300
  machine.accumulator.banks = 1;
  EXPECT_EQ(encoders(linked_graph(shape, 1), machine), 0U);
}

class NoEncoders : public testing::TestWithParam<Spoilt> {};

TEST_P(NoEncoders, WhereALayerDoesMoreThanMixHeads) {
  model::Graph graph = linked_graph({}, 1);
  GetParam().change(graph);
  const hw::Machine machine = machine_with_engines();
  EXPECT_LT(encoders(graph, machine), 2U);
  test::expect_program_computes_graph(graph, machine, map_graph(graph, machine), 1);
}

TEST(Encoders, AreNotFoundInAMereShape) {
  model::Graph graph = linked_graph({}, 1);
  weights(graph, "encoder_q").clear();
  EXPECT_EQ(encoders(graph, machine_with_engines()), 0U) << "the rest is in two pieces";
}

std::string name_of_spoilt(const testing::TestParamInfo<Spoilt>& test) { return test.param.name; }

INSTANTIATE_TEST_SUITE_P(OtherLayers, NoEncoders, testing::ValuesIn(spoilt_layers()),
                         name_of_spoilt);

INSTANTIATE_TEST_SUITE_P(
    Encoders, NoEncoders,
    testing::Values(
        Spoilt{"OffDiagonal", [](model::Graph& g) { weights(g, "encoder_q")[1] ^= 1; }},
        Spoilt{"Diagonal", [](model::Graph& g) { weights(g, "encoder_q")[17] ^= 1; }},
        Spoilt{"Bias",
               [](model::Graph& g) { ++node(g, "encoder_q.bias").stage()->parameters.edit()[3]; }},
        Spoilt{"Multiplier",
               [](model::Graph& g) {
                 ++node(g, "encoder_q.requantise").stage()->parameters.edit()[3];
               }},
        Spoilt{"Shift",
               [](model::Graph& g) {
                 ++node(g, "encoder_q.requantise").stage()->parameters.edit()[19];
               }},
        Spoilt{"Range",
               [](model::Graph& g) { node(g, "encoder_q.requantise").stage()->stage.imm[2] = -9; }},
        Spoilt{"OtherReader", [](model::Graph& g) { node(g, "out").product()->b.col -= 1; }},
        Spoilt{"Output",
               [](model::Graph& g) {
                 g.tensors[node(g, "qkv.requantise").out.tensor].kind =
                     model::Tensor::Kind::kOutput;
               }}),
    name_of_spoilt);

TEST(Decoders, JoinTheAttention) {
  const model::Graph graph = graph_of("vit65-sparse90-ae");
  const Mapping mapping = map_graph(graph, machine_with_engines());
  std::size_t layers = 0;
  for (const hw::Command& command : mapping.program.commands) {
    const auto* const attention = command.as<hw::cmd::Attention>();
    if (attention == nullptr) continue;
    ++layers;
    const Group& group = mapping.groups[command.op];
    ASSERT_EQ(group.attention()->decoders.size(), 2U);
    ASSERT_TRUE(attention->decoders);
    const hw::HeadMix& query = mapping.program.mixes.at(*attention->decoders);
    EXPECT_EQ(query.out_heads, 4U);
    EXPECT_EQ(group.attention()->query.cols, query.in_heads * 16);
    EXPECT_EQ(group.attention()->query.tensor,
              graph.nodes[group.attention()->decoders[0].first].in.tensor);
    EXPECT_EQ(attention->query.pitch, 64U) << "a latent row, padded";
  }
  EXPECT_EQ(layers, 4U);
  EXPECT_EQ(encoders(graph, machine_with_engines()), 8U);
  EXPECT_EQ(encoders(graph, hw::find_machine("transformer")), 0U);
}

class NoDecoders : public testing::TestWithParam<Spoilt> {};

TEST_P(NoDecoders, WhereALayerDoesMoreThanMixHeads) {
  model::Graph graph = graph_of("vit65-sparse90-ae");
  GetParam().change(graph);
  std::size_t decoding = 0, layers = 0;
  for (const Group& group : fuse(graph, machine_with_engines()).groups) {
    if (!group.attention()) continue;
    ++layers;
    decoding += group.attention()->decoders.empty() ? 0 : 1;
  }
  EXPECT_EQ(layers, 4U);
  EXPECT_EQ(decoding, 3U);
}

constexpr char kDecoder[] = "blocks.0.attn.decoder_q";
constexpr char kFirstHead[] = "blocks.0.attn.head0.scores";
constexpr char kFirstContext[] = "blocks.0.attn.head0.context";

INSTANTIATE_TEST_SUITE_P(
    Decoders, NoDecoders,
    testing::Values(
        Spoilt{"OtherBias",
               [](model::Graph& g) {
                 ++node(g, kDecoder + std::string(".bias")).stage()->parameters.edit()[1];
               }},
        Spoilt{"ScaledBias",
               [](model::Graph& g) {
                 node(g, kDecoder + std::string(".bias")).stage()->stage.imm = {3, 1, -127, 127};
               }},
        Spoilt{"SumsOfResult",
               [](model::Graph& g) { leave_row_sums(g, kDecoder + std::string(".requantise")); }},
        Spoilt{"LatentsWrittenAgain",
               [](model::Graph& g) {
                 View latents = node(g, kDecoder).in;
                 latents.cols = 16;
                 copy_before(g, kFirstHead, "again", node(g, kFirstContext).product()->b, latents);
               }},
        Spoilt{"ResultWrittenAgain",
               [](model::Graph& g) {
                 copy_before(g, kFirstHead, "again", node(g, kFirstContext).product()->b,
                             node(g, kFirstHead).in);
               }}),
    name_of_spoilt);

}  // namespace
}  // namespace systole::mapper

#include "model/quantise/llama_quantiser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <tuple>

#include "base/error.h"
#include "model/build/llama_graph.h"
#include "model/float/float_llama.h"
#include "model/graph/graph_builder.h"
#include "model/graph/reference.h"
#include "model/integer/integer_model.h"
#include "model/integer/integer_network.h"
#include "support/input_error.h"
#include "support/network/random_llama.h"
#include "support/network/tiny_llama.h"
#include "support/temp_directory.h"
#include "tests/model/network/spoilt_network.h"
#include "tests/model/vision.h"

namespace systole::model {
namespace {

using Text = std::vector<std::int32_t>;
using test::TinyLlama;

QuantiserOptions wide_stream() {
  QuantiserOptions options;
  options.datapath.residual_bits = 24;
  return options;
}

/// Real values of the integer logits after each token.
std::vector<double> integer_logits(const IntegerLlama& llama, const Text& text) {
  const Graph graph = make_llama_text_graph(llama, static_cast<std::uint32_t>(text.size()));
  Reference reference(graph, {true, true});
  reference.set_input("embedding", embed_tokens(llama, text));
  reference.run();
  std::vector<double> logits;
  for (const std::int32_t code : reference.values("logits")) {
    logits.push_back(code * llama.logit_scale);
  }
  return logits;
}

/// Root mean square of the difference over that of the logits about their mean, row by row; the
/// worst row.
double worst_error(const std::vector<double>& found, const std::vector<float>& real,
                   std::size_t vocabulary = TinyLlama::kVocabulary) {
  double worst = 0;
  for (std::size_t first = 0; first < real.size(); first += vocabulary) {
    double error = 0, power = 0, mean = 0;
    for (std::size_t i = first; i < first + vocabulary; ++i) mean += real[i] / double(vocabulary);
    for (std::size_t i = first; i < first + vocabulary; ++i) {
      error += std::pow(found[i] - double{real[i]}, 2);
      power += std::pow(double{real[i]} - mean, 2);
    }
    worst = std::max(worst, std::sqrt(error / power));
  }
  return worst;
}

class QuantisedLlama : public testing::TestWithParam<TinyLlama::Form> {
 protected:
  void SetUp() override {
    path_ = TinyLlama::write(directory_.path("llama.safetensors"), GetParam());
    real_ = TinyLlama::load(path_);
    llama_ = quantise(real_, TinyLlama::texts(4, 20), wide_stream());
  }

  TempDirectory directory_;
  std::string path_;
  LlamaCheckpoint real_;
  IntegerLlama llama_;
};

TEST_P(QuantisedLlama, IsCloseToTheRealOneInEveryRow) {
  Text text = TinyLlama::texts(1, 24, 9).front();
  text[5] = 7;  // the token with the outlier
  const double error = worst_error(integer_logits(llama_, text), llama_logits(real_, text));
  EXPECT_LT(error, 0.12);
  EXPECT_GT(error, 1e-4) << "8 bits cannot be that good";
}

/// Multiplies an output of a layer by `factor`.
void scale_output(LlamaLinear& layer, std::size_t output, float factor) {
  for (std::size_t i = 0; i < layer.inputs; ++i) layer.weight[output * layer.inputs + i] *= factor;
  if (!layer.bias.empty()) layer.bias[output] *= factor;
}

// A network that is the same in real numbers, whose keys, queries and values are large in a few
// channels: folding finds back what it was.
TEST_P(QuantisedLlama, MovesOutliersOfKeysAndValuesToWhatReadsThem) {
  const std::size_t width = real_.shape.head_width, group = real_.shape.group();
  LlamaCheckpoint spoilt = real_;
  for (FloatLlamaBlock& block : spoilt.blocks) {
    // The first pair of the first head: keys 30 times as large, queries as much smaller.
    for (const std::size_t channel : {std::size_t{0}, std::size_t{1}}) {
      if (real_.shape.head_norms) break;  // see BalancesTheNormsOfHeads
      scale_output(block.key, channel, 30.0F);
      for (std::size_t h = 0; h < group; ++h) {
        scale_output(block.query, h * width + channel, 1.0F / 30.0F);
      }
    }
    scale_output(block.value, 2, 30.0F);
    for (std::size_t o = 0; o < block.proj.outputs; ++o) {
      for (std::size_t h = 0; h < group; ++h) {
        block.proj.weight[o * block.proj.inputs + h * width + 2] /= 30.0F;
      }
    }
  }
  const Text text = TinyLlama::texts(1, 24, 9).front();
  const std::vector<float> expected = llama_logits(real_, text);
  const std::vector<float> same = llama_logits(spoilt, text);
  for (std::size_t i = 0; i < same.size(); ++i) ASSERT_NEAR(same[i], expected[i], 1e-3);
  const IntegerLlama found = quantise(spoilt, TinyLlama::texts(4, 20), wide_stream());
  EXPECT_LT(worst_error(integer_logits(found, text), expected),
            1.5 * worst_error(integer_logits(llama_, text), expected));
}

// The same of norms whose weights all heads share: a pair of 16 features is an exception.
TEST(LlamaQuantiser, BalancesTheNormsOfHeads) {
  test::Random random(4);
  for (int round = 0; round < 5; ++round) {
    LlamaShape shape = test::random_llama_shape(random);
    shape.head_norms = true;
    shape.head_width = 16;
    const LlamaCheckpoint real = test::random_llama_checkpoint(random, shape);
    LlamaCheckpoint spoilt = real;
    for (FloatLlamaBlock& block : spoilt.blocks) {
      for (const std::size_t channel : {std::size_t{6}, std::size_t{7}}) {
        block.key_norm[channel] *= 50.0F;
        block.query_norm[channel] /= 50.0F;
      }
    }
    std::vector<Text> texts;
    for (int i = 0; i < 4; ++i) {
      texts.push_back(test::random_tokens<std::int32_t>(random, 20, shape.vocabulary));
    }
    const std::vector<float> expected = llama_logits(real, texts[0]);
    const std::vector<float> same = llama_logits(spoilt, texts[0]);
    for (std::size_t i = 0; i < same.size(); ++i) ASSERT_NEAR(same[i], expected[i], 1e-2) << round;
    const auto error = [&](const LlamaCheckpoint& of) {
      return worst_error(integer_logits(quantise(of, texts, wide_stream()), texts[0]), expected,
                         shape.vocabulary);
    };
    EXPECT_LT(error(spoilt), 1.5 * error(real)) << round;
  }
}

TEST(QuantisedExperts, AreCloseToTheRealOnesAndHaveEveryBitInAFile) {
  const TempDirectory directory;
  for (const std::uint32_t experts : {2U, 5U}) {
    TinyLlama::Form form;
    form.experts = experts;
    form.head_norms = experts == 5;
    form.gelu = experts == 2 ? "tanh" : "";
    const LlamaCheckpoint real =
        TinyLlama::load(TinyLlama::write(directory.path("llama.safetensors"), form));
    EXPECT_EQ(real.shape.experts, experts);
    EXPECT_EQ(real.shape.active_experts, 2U);
    ASSERT_EQ(real.blocks[1].experts.size(), experts);
    const IntegerLlama llama = quantise(real, TinyLlama::texts(6, 20), wide_stream());
    const Text text = TinyLlama::texts(1, 24, 9).front();
    // A token whose second and third best experts are nearly as good may go to the other one.
    const double error = worst_error(integer_logits(llama, text), llama_logits(real, text));
    EXPECT_LT(error, experts == 2 ? 0.15 : 0.6);
    EXPECT_GT(error, 1e-4);
    for (const hw::WeightFormat format : {hw::WeightFormat::kInt8, hw::WeightFormat::kGroups}) {
      IntegerLlama one = llama;
      if (format != hw::WeightFormat::kInt8) group_weights(one, format, "test");
      const std::string a = directory.path("a.safetensors"), b = directory.path("b.safetensors");
      write_network(one, "", a);
      EXPECT_EQ(model_kind(a), ModelKind::kIntegerLlama);
      const IntegerLlama again = load_integer_llama(a);
      EXPECT_EQ(again.shape.experts, experts);
      EXPECT_EQ(again.blocks[0].product_shift, one.blocks[0].product_shift);
      write_network(again, "", b);
      EXPECT_TRUE(read_file(a) == read_file(b));
      EXPECT_EQ(integer_logits(again, text), integer_logits(one, text));
    }
  }
}

TEST(QuantisedExperts, AreRefusedIfTheyAreNoneOfABlock) {
  const TempDirectory directory;
  TinyLlama::Form form;
  form.experts = 3;
  const std::string real = TinyLlama::write(directory.path("llama.safetensors"), form);
  const std::string integer = directory.path("llama.int8.safetensors");
  write_network(quantise(TinyLlama::load(real), TinyLlama::texts(6, 20), wide_stream()), "",
                integer);
  const auto refuses = [&](const std::string& path, const std::string& change,
                           const std::string& what) {
    SpoiltNetwork network(path);
    network.change(change);
    const std::string to = directory.path("spoilt.safetensors");
    expect_contains(input_error_of([&] {
                      network.write(to);
                      if (path == real) {
                        static_cast<void>(TinyLlama::load(to));
                      } else {
                        static_cast<void>(load_integer_llama(to));
                      }
                      return 0;
                    }),
                    what);
  };
  for (const std::string& path : {real, integer}) {
    refuses(path, "nodes.blocks.1.mlp.expert1.share/attributes/expert = 0",
            "node 'blocks.1.mlp.expert1.share': expected expert 1 of the block's route");
    refuses(path, "nodes.blocks.1.mlp.expert1.share/attributes/expert = 3",
            "expected more columns than the expert 3");
    refuses(path, "nodes.blocks.0.mlp.shares/attributes/active = 4",
            "expected 4 columns at the least");
    refuses(path, "nodes.blocks.0.mlp.shares/attributes/active = 1",
            "node 'blocks.0.mlp.shares': attribute 'active' is not that of the block after it");
    refuses(path, "nodes.blocks.0.mlp.expert0.share/inputs/1 = \"blocks.1.mlp.shares\"", "a cycle");
  }
  SpoiltNetwork network(real);
  network.node("blocks.1.mlp.expert0.down")["inputs"][0] = "blocks.1.mlp.expert0.product";
  network.erase("blocks.1.mlp.expert0.share");
  const std::string to = directory.path("unweighed.safetensors");
  expect_contains(input_error_of([&] { return TinyLlama::load(network.write(to)); }),
                  "node 'blocks.1.mlp.expert0.down': expected one that reads what weigh gives");
  refuses(real,
          "nodes.blocks.1.mlp.expert1.down/inputs = [\"blocks.1.mlp.expert1.share\", "
          "\"blocks.1.mlp.expert1.down.weight\", \"norm.weight\"]",
          "node 'blocks.1.mlp.expert1.down': input 'bias': expected none of an expert");
  refuses(real, "nodes.blocks.1.mlp.expert0.residual/inputs/0 = \"blocks.1.norm2\"",
          "does not add to what the MLP's norm reads");
  refuses(integer, "nodes.blocks.1.mlp.expert2.share/attributes/shift = 3",
          "attribute 'shift': expected the bits of a share, 8, or more");
  refuses(integer, "nodes.blocks.1.mlp.expert0.activation/attributes/fraction_bits = 9",
          "node 'blocks.1.mlp.expert0.activation': is not that of the block's other experts");
}

// A file of before contexts had scales of each row.
TEST_P(QuantisedLlama, ReadsContextsWithOneScale) {
  IntegerLlama one = llama_;
  one.context_scales = false;
  const std::string path = directory_.path("one.safetensors");
  write_network(one, "", path);
  EXPECT_FALSE(load_integer_llama(path).context_scales);
  EXPECT_TRUE(llama_.context_scales);
  SpoiltNetwork network(path);
  network.document["tensors"]["blocks.1.attn.context"]["type"] = "s16";
  expect_contains(input_error_of([&] { return load_integer_llama(network.write(path)); }),
                  "input 'x' (blocks.1.attn.context): type is s16, expected s8");
}

TEST_P(QuantisedLlama, HasEveryBitInAFile) {
  const std::string a = directory_.path("a.safetensors"), b = directory_.path("b.safetensors");
  write_network(llama_, "", a);
  EXPECT_EQ(model_kind(a), ModelKind::kIntegerLlama);
  const IntegerLlama again = load_integer_llama(a);
  write_network(again, "", b);
  EXPECT_TRUE(read_file(a) == read_file(b));
  const Text text = TinyLlama::texts(1, 9, 3).front();
  EXPECT_EQ(integer_logits(again, text), integer_logits(llama_, text));
  EXPECT_EQ(again.shape.positions, TinyLlama::kPositions);
}

TEST_P(QuantisedLlama, StepsGiveWhatAllTokensAtOnceGive) {
  const Text text = TinyLlama::texts(1, 6, 4).front();
  const std::vector<double> at_once = integer_logits(llama_, text);
  Graph step = make_llama_decode_graph(llama_, 6);
  for (std::uint32_t token = 0; token < 6; ++token) {
    move_llama_to_token(step, llama_.shape, token);
    Reference one(step);
    one.set_input("embedding", embed_tokens(llama_, {text[token]}));
    one.run();
    const std::vector<std::int32_t> logits = one.values("logits");
    for (std::size_t i = 0; i < logits.size(); ++i) {
      ASSERT_EQ(logits[i] * llama_.logit_scale, at_once[token * logits.size() + i]) << token;
    }
    for (Tensor& tensor : step.tensors) {
      if (tensor.kind == Tensor::Kind::kState) tensor.data = one.bytes(tensor.name);
    }
  }
}

TEST_P(QuantisedLlama, HasWeightsOfFourBitsWhoseErrorIsThatOfTheirSteps) {
  QuantiserOptions options = wide_stream();
  options.weight_format = hw::WeightFormat::kGroups;
  options.outlier_alpha = kLlamaOutlierAlpha;  // as those of eight bits
  std::vector<LayerLoss> losses;
  const IntegerLlama four = quantise(real_, TinyLlama::texts(4, 20), options, {}, &losses);
  const IntegerLinear &up = four.blocks[1].up, &eight = llama_.blocks[1].up;
  ASSERT_EQ(up.groups.size(), up.weight.size() / hw::kGroupWeights);
  for (std::size_t i = 0; i < up.weight.size(); ++i) {
    const hw::WeightGroup group = up.groups[i / hw::kGroupWeights];
    // Half a step, what finer steps leave out at the ends, and rounding.
    ASSERT_LE(std::abs(up.weight[i] - eight.weight[i]), 3 * group.scale / 16 + 2) << i;
  }
  EXPECT_EQ(four.output.weight, llama_.output.weight);
  EXPECT_FALSE(four.output.grouped());
  // A step of 15 in place of 254 is 24.5 dB more; a group is not as wide as its row.
  for (const LayerLoss& loss : losses) {
    if (loss.name == "logits") continue;
    EXPECT_GT(loss.weights, 1e-4) << loss.name;
    EXPECT_LT(loss.weights, 2e-2) << loss.name;
  }
  const Text text = TinyLlama::texts(1, 24, 9).front();
  EXPECT_LT(worst_error(integer_logits(four, text), llama_logits(real_, text)), 0.8);

  const std::string a = directory_.path("a.safetensors"), b = directory_.path("b.safetensors");
  write_network(four, "", a);
  const IntegerLlama again = load_integer_llama(a);
  write_network(again, "", b);
  EXPECT_TRUE(read_file(a) == read_file(b));
  EXPECT_EQ(again.blocks[1].up.groups, up.groups);
  EXPECT_EQ(again.blocks[1].up.weight, up.weight);
}

/// Replaces weights by the nearest of 16 steps of their group, which has the step and the offset of
/// its extremes as Q4_1 has them.
void take_steps(LlamaLinear& layer) {
  for (auto group = layer.weight.begin(); group != layer.weight.end(); group += 32) {
    const auto [low, high] = std::minmax_element(group, group + 32);
    const float least = *low, step = (*high - least) / 15;
    std::for_each(group, group + 32,
                  [&](float& w) { w = least + step * std::nearbyint((w - least) / step); });
  }
}

// Folding would make the inputs of a group unlike.
TEST_P(QuantisedLlama, OfFourBitsKeepsStepsThatItsWeightsHave) {
  for (FloatLlamaBlock& block : real_.blocks) {
    for (LlamaLinear* const layer : {&block.query, &block.key, &block.value, &block.proj,
                                     &block.gate, &block.up, &block.down}) {
      take_steps(*layer);
    }
  }
  QuantiserOptions options = wide_stream();
  const auto mean_loss = [&] {
    std::vector<LayerLoss> losses;
    (void)quantise(real_, TinyLlama::texts(4, 20), options, {}, &losses);
    double sum = 0;
    for (const LayerLoss& loss : losses) sum += loss.name == "logits" ? 0 : loss.weights;
    return sum / static_cast<double>(losses.size());
  };
  const double eight = mean_loss();
  options.weight_format = hw::WeightFormat::kGroups;
  const double four = mean_loss();
  options.outlier_alpha = kLlamaOutlierAlpha;
  const double folded = mean_loss();
  // A scale errs by 1/32 of a code, 15 times that at its end; 15 of the largest are 239 codes, of
  // the 254 that a row has.
  EXPECT_LT(four, 20 * eight);
  EXPECT_GT(folded, 4 * four);
}

TEST_P(QuantisedLlama, OfFourBitsRefusesWeightsThatNoCodeGives) {
  IntegerLlama four = llama_;
  group_weights(four, hw::WeightFormat::kGroups, "test");
  IntegerLinear& down = four.blocks[0].down;
  const hw::WeightGroup group = down.groups[3];
  std::int8_t& weight = down.weight.edit()[3 * hw::kGroupWeights + 5];
  for (weight = -127;; ++weight) {
    bool is_one = false;
    for (int q = 0; q <= hw::kLargestGroupCode; ++q) {
      is_one = is_one || weight == hw::expanded_weight(hw::WeightFormat::kGroups, q, group);
    }
    if (!is_one) break;
  }
  const std::string path = directory_.path("spoilt.safetensors");
  write_network(four, "", path);
  expect_contains(input_error_of([&] { return load_integer_llama(path); }),
                  "node 'blocks.0.mlp.down': input 'weight': output 1, inputs from 32 on: weight " +
                      std::to_string(weight) + " is none of its group's");
}

TEST(GroupedLlama, RefusesInputsThatAreNoWholeGroups) {
  IntegerLlama llama;
  llama.blocks.resize(1);
  IntegerLlamaBlock& block = llama.blocks.front();
  for (IntegerLinear* const layer : {&block.query, &block.key, &block.value}) layer->inputs = 64;
  block.proj.inputs = 40;
  EXPECT_EQ(
      input_error_of([&] { return group_weights(llama, hw::WeightFormat::kMxFp4, "small"), 0; }),
      "small: attn.proj: 40 inputs, expected a multiple of 32 for weights in groups");
}

INSTANTIATE_TEST_SUITE_P(
    Llamas, QuantisedLlama,
    testing::Values(TinyLlama::Form{true, true, false}, TinyLlama::Form{false, true, true},
                    TinyLlama::Form{true, false, true}, TinyLlama::Form{false, true, false, true},
                    TinyLlama::Form{false, true, false, false, 4, {0.7, 0.01}},
                    TinyLlama::Form{true, false, true, true, 5, {0.3, 0.2}},
                    TinyLlama::Form{false, true, false, false, 0, {}, "tanh", 5.5},
                    TinyLlama::Form{true, false, false, true, 0, {}, "erf", 0.5}));

TEST(LlamaCheckpoint, OfPairsHalfAHeadApartIsThatOfNeighbours) {
  // The same numbers, read as one form and as the other: another network.
  const TempDirectory directory;
  const LlamaCheckpoint near = TinyLlama::load(TinyLlama::write(directory.path("a.safetensors")));
  LlamaCheckpoint far = TinyLlama::load(TinyLlama::write(directory.path("b.safetensors"), {false}));
  EXPECT_NE(near.blocks[0].query.weight, far.blocks[0].query.weight);
  EXPECT_EQ(near.blocks[0].value.weight, far.blocks[0].value.weight);
  // Heads of four features: 0, 2, 1, 3.
  const std::size_t row = TinyLlama::kWidth;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t from = i == 1 ? 2 : i == 2 ? 1 : i;
    EXPECT_EQ(0, std::memcmp(&far.blocks[0].key.weight[i * row],
                             &near.blocks[0].key.weight[from * row], row * sizeof(float)));
  }
}

TEST(LlamaLosses, AreThoseOfTheLayerThatIsRounded) {
  const TempDirectory directory;
  LlamaCheckpoint real = TinyLlama::load(TinyLlama::write(directory.path("llama.safetensors")));
  const Text text = TinyLlama::texts(1, 20, 6).front();
  const std::vector<LayerLoss> losses = llama_losses(real, text, hw::WeightFormat::kInt8);
  ASSERT_EQ(losses.size(), 2U * 7U + 1U);
  EXPECT_EQ(losses.front().name, "blocks.0.attn.query");
  EXPECT_EQ(losses.back().name, "logits");
  for (const LayerLoss& loss : losses) {
    // Uniform errors of half a step of 127 for values of a normal distribution: about -45 dB.
    EXPECT_GT(loss.weights, 1e-6) << loss.name;
    EXPECT_LT(loss.weights, 3e-4) << loss.name;
    EXPECT_GT(loss.inputs, 1e-6) << loss.name;
    EXPECT_LT(loss.inputs, 1e-2) << loss.name;
  }
  // Weights that are codes of their scale lose nothing.
  LlamaLinear& up = real.blocks[1].up;
  for (std::size_t i = 0; i < up.weight.size(); ++i) {
    up.weight[i] = i % up.inputs == 0 ? 127.0F : std::nearbyint(40 * up.weight[i]);
  }
  const std::vector<LayerLoss> after = llama_losses(real, text, hw::WeightFormat::kInt8);
  EXPECT_LT(after[12].weights, 1e-12) << after[12].name;
  EXPECT_EQ(after[12].name, "blocks.1.mlp.up");
}

TEST(LlamaQuantiser, RefusesWhatItCannotUse) {
  const TempDirectory directory;
  const std::string path = TinyLlama::write(directory.path("llama.safetensors"));
  const LlamaCheckpoint real = TinyLlama::load(path);
  EXPECT_THROW((void)quantise(real, {}, wide_stream()), hw::InputError);
  QuantiserOptions options = wide_stream();
  options.fold_encoders = true;
  EXPECT_THROW((void)quantise(real, TinyLlama::texts(1, 4), options), hw::InputError);
  LlamaCheckpoint broken = real;
  broken.word[5 * TinyLlama::kWidth] = std::numeric_limits<float>::infinity();
  EXPECT_THROW((void)quantise(broken, {{5, 6}}, wide_stream()), hw::InputError);

  const auto refuses = [&](const std::function<void(SpoiltNetwork&)>& spoil,
                           const std::string& what) {
    SpoiltNetwork network(path);
    spoil(network);
    const std::string to = directory.path("spoilt.safetensors");
    expect_contains(input_error_of([&] { return TinyLlama::load(network.write(to)); }), what);
  };
  refuses([](SpoiltNetwork& n) { n.node("blocks.1.attn.context")["attributes"]["causal"] = false; },
          "node 'blocks.1.attn.context': attribute 'causal': expected true in a Llama");
  refuses([](SpoiltNetwork& n) { n.node("blocks.0.norm2")["attributes"]["epsilon"] = 1e-3; },
          "attribute 'epsilon': is not that of the other rms_norms");
  refuses([](SpoiltNetwork& n) { n.node("blocks.1.mlp.up")["inputs"][0] = "blocks.1.norm1"; },
          "node 'blocks.1.mlp.up': input 'blocks.1.norm1': expected 'blocks.1.norm2'");
  refuses([](SpoiltNetwork& n) { n.node("blocks.1.attn.residual")["inputs"][0] = "word"; },
          "node 'blocks.1.attn.residual': does not add to what the attention's norm reads");
  refuses([](SpoiltNetwork& n) { n.node("blocks.0.attn.key_rope")["attributes"]["base"] = 10.0; },
          "node 'blocks.0.attn.key_rope': the base is not that of the block after it");
  refuses([](SpoiltNetwork& n) { n.node("blocks.0.attn.context")["attributes"]["kv_heads"] = 3; },
          "attribute 'kv_heads': 3, expected a divisor of 8");
  refuses([](SpoiltNetwork& n) { n.attributes("blocks.0.attn.context")["window"] = 5; },
          "node 'blocks.0.attn.context': attribute 'window' is not that of the block after it");
  refuses(
      [](SpoiltNetwork& n) {
        n.attributes("blocks.1.attn.key_rope")["frequencies"] = {1, .1, .2};
      },
      "attribute 'frequencies': found 3, expected 2, one for each pair of a head");
  refuses(
      [](SpoiltNetwork& n) {
        n.attributes("blocks.1.attn.key_rope")["frequencies"] = {1, 5};
      },
      "'frequencies': found [1,5], expected numbers from 0 to 4");
  refuses(
      [](SpoiltNetwork& n) {
        n.attributes("blocks.1.attn.key_rope")["frequencies"] = {1, .1};
      },
      "attribute 'frequencies' is not that of the block after it");
  refuses([](SpoiltNetwork& n) { n.attributes("blocks.1.norm1")["heads"] = 1; },
          "node 'blocks.1.norm1': attribute 'heads': expected of queries and keys alone");
  refuses([](SpoiltNetwork& n) { n.attributes("blocks.1.norm1")["heads"] = 3; },
          "columns that 3 heads divide");
  refuses(
      [](SpoiltNetwork& n) {
        n.node("blocks.0.mlp.activation")["op"] = "gelu";
        n.attributes("blocks.0.mlp.activation")["form"] = "tanh";
      },
      "node 'blocks.0.mlp.activation': the activation is not that of the block after it");
  TinyLlama::Form form;
  form.head_norms = true;
  form.gelu = "erf";
  TinyLlama::write(path, form);
  refuses([](SpoiltNetwork& n) { n.attributes("blocks.1.attn.query_norm")["heads"] = 4; },
          "input 'weight' (blocks.1.attn.query_norm.weight): shape is [4], expected [8]");
  refuses([](SpoiltNetwork& n) { n.attributes("blocks.0.mlp.activation")["form"] = "tanh"; },
          "attribute 'form': is not that of the other gates");
  refuses(
      [](SpoiltNetwork& n) {
        n.node("blocks.0.attn.key_rope")["inputs"][0] = "blocks.0.attn.key";
        n.erase("blocks.0.attn.key_norm");
      },
      "node 'blocks.0.attn.key_rope': whether a norm is before it is not that of the block");
}

}  // namespace
}  // namespace systole::model

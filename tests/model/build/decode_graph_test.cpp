#include "model/build/decode_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "model/build/encoder_graph.h"
#include "model/graph/graph_builder.h"
#include "model/graph/graph_check.h"
#include "model/graph/reference.h"
#include "model/seeded/shapes.h"

namespace systole::model {
namespace {

constexpr std::uint32_t kTokens = 9;

EncoderShape causal_shape(bool post_norm) { return {2, 24, 3, 40, post_norm, 0, true}; }

using Values = std::vector<std::int32_t>;

Values rows(const Values& values, std::size_t width, std::size_t first, std::size_t count) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(count * width)};
}

/// The same network all at once and step by step.
struct Both {
  explicit Both(const EncoderShape& causal, hw::SoftmaxMode softmax = hw::SoftmaxMode::kDeferred)
      : shape(causal) {
    SeededOptions options;
    options.datapath.softmax = softmax;
    layers = make_seeded_layers(shape, kTokens, 1, options);
    embedding = seeded_embedding(shape, kTokens, 2, options.datapath);
    const Graph prompt = make_encoder_graph(layers, kTokens, "prompt", 1.0);
    Reference reference(prompt);
    reference.set_input("embedding", embedding);
    reference.run();
    outputs = reference.values(output_of(prompt));
    steps = make_decode_graph(layers, kTokens, "steps", 1.0);
  }

  static std::string output_of(const Graph& graph) {
    return std::find_if(graph.tensors.begin(), graph.tensors.end(),
                        [](const Tensor& t) { return t.kind == Tensor::Kind::kOutput; })
        ->name;
  }

  void expect_same_outputs(std::uint32_t past) {
    Reference reference(steps);
    for (std::uint32_t token = past; token < kTokens; ++token) {
      move_to_token(steps, token);
      ASSERT_NO_THROW(check_graph(steps));
      reference.set_input("embedding", rows(embedding, shape.width, token, 1));
      reference.run();
      EXPECT_EQ(reference.values(output_of(steps)), rows(outputs, shape.width, token, 1)) << token;
    }
  }

  EncoderShape shape;
  IntegerEncoder layers;
  Values embedding, outputs;
  Graph steps;
};

TEST(DecodeGraph, GivesWhatAllTokensAtOnceGive) {
  for (const bool post_norm : {false, true}) {
    for (const hw::SoftmaxMode softmax :
         {hw::SoftmaxMode::kDeferred, hw::SoftmaxMode::kNormalisedRound}) {
      Both both(causal_shape(post_norm), softmax);
      both.expect_same_outputs(0);
    }
  }
}

TEST(DecodeGraph, GoesOnAfterAPrompt) {
  constexpr std::uint32_t kPast = 4;
  Both both(causal_shape(false));
  fill_caches(both.steps, both.layers, kPast, rows(both.embedding, both.shape.width, 0, kPast));
  both.expect_same_outputs(kPast);
}

TEST(DecodeGraph, ChangesWithItsPrompt) {
  Both both(causal_shape(false));
  fill_caches(both.steps, both.layers, 4, Values(std::size_t{4} * both.shape.width, 77));
  Reference reference(both.steps);
  move_to_token(both.steps, 4);
  reference.set_input("embedding", rows(both.embedding, both.shape.width, 4, 1));
  reference.run();
  EXPECT_NE(reference.values(Both::output_of(both.steps)),
            rows(both.outputs, both.shape.width, 4, 1));
}

TEST(DecodeGraph, MultipliesWithTheKeysSoFarAlone) {
  Both both(causal_shape(false));
  const auto macs = [&](std::uint32_t token) {
    move_to_token(both.steps, token);
    return count_macs(both.steps);
  };
  // Scores and context of one more key, in two layers.
  EXPECT_EQ(macs(5) - macs(4), 2U * 2 * 24);
  EXPECT_EQ(macs(8) - macs(0), 8U * 2 * 2 * 24);
}

TEST(DecodeGraph, RefusesLayersThatLookAhead) {
  const EncoderShape encoder{1, 8, 2, 8, true};
  EXPECT_THROW(
      static_cast<void>(make_decode_graph(make_seeded_layers(encoder, 4, 1), 4, "encoder", 1.0)),
      std::invalid_argument);
}

}  // namespace
}  // namespace systole::model

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/build/encoder_graph.h"
#include "model/integer/integer_vit.h"
#include "model/seeded/shapes.h"
#include "support/network/encoder_run.h"
#include "support/random/random_graph.h"

/// Encoders with auto-encoders of Q and K.
namespace systole::test {

/// [outputs, inputs] heads, with sums that use the range.
inline model::IntegerLinear random_mix(Random& random, std::uint32_t inputs,
                                       std::uint32_t outputs) {
  model::IntegerLinear mix;
  mix.inputs = inputs;
  mix.outputs = outputs;
  for (std::uint32_t i = 0; i < inputs * outputs; ++i) {
    mix.weight.edit().push_back(static_cast<std::int8_t>(between(random, 0, 254) - 127));
  }
  for (std::uint32_t o = 0; o < outputs; ++o) {
    mix.bias.push_back(random_values(random, 1, 2000).front());
    mix.factor.push_back({static_cast<std::int32_t>(between(random, 20000, 65535)), 23});
  }
  return mix;
}

/// Puts random auto-encoders on Q and K of every block, of so many latent heads; without encoders
/// if they are `folded` into the projection, which is the caller's.
inline void link_heads(Random& random, model::IntegerEncoder& encoder, std::uint32_t latent,
                       bool folded) {
  const std::uint32_t heads = encoder.shape.heads;
  encoder.shape.latent_heads = latent;
  encoder.folded_encoders = folded;
  for (model::IntegerBlock& block : encoder.blocks) {
    for (model::IntegerHeadMix* link : {&block.query_link, &block.key_link}) {
      if (!folded) link->encoder = random_mix(random, heads, latent);
      link->decoder = random_mix(random, latent, heads);
    }
  }
}

/// A seeded encoder of 1 to 3 blocks with auto-encoders and masks that keep 2 to 30 % of the cells
/// and the first column. The graph alone: for timing.
inline Workload random_linked_encoder(Random& random) {
  model::EncoderShape shape;
  shape.layers = between(random, 1, 2);
  shape.heads = between(random, 2, 8);
  shape.width = shape.heads * 8 * between(random, 1, 8);
  shape.hidden = 8 * between(random, 1, 16);
  const std::uint32_t tokens = between(random, 8, 160);
  model::IntegerEncoder encoder = model::make_seeded_layers(shape, tokens, random());
  link_heads(random, encoder, between(random, 1, shape.heads - 1), false);
  const std::uint32_t share = between(random, 20, 300);
  for (model::IntegerBlock& block : encoder.blocks) {
    block.keep.resize(std::size_t{shape.heads} * tokens * tokens);
    for (std::size_t cell = 0; cell < block.keep.size(); ++cell) {
      block.keep[cell] = cell % tokens == 0 || random() % 1000 < share ? 1 : 0;
    }
  }
  return {model::make_encoder_graph(encoder, tokens, "linked", 1.0), {}};
}

}  // namespace systole::test

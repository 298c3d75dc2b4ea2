#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "model/checkpoint/llama_checkpoint.h"
#include "model/integer/integer_llama.h"
#include "model/quantise/llama_quantiser.h"
#include "support/random/random_machine.h"

namespace systole::test {

/// Odd in every size; 40 positions and no window.
inline model::LlamaShape random_llama_shape(Random& random) {
  model::LlamaShape shape;
  shape.layers = between(random, 1, 2);
  shape.width = between(random, 20, 150);
  shape.kv_heads = between(random, 1, 3);
  shape.heads = shape.kv_heads * between(random, 1, 4);
  shape.head_width = 2 * between(random, 2, 36);
  shape.hidden = between(random, 20, 260);
  shape.vocabulary = between(random, 20, 90);
  shape.positions = 40;
  shape.rope_base = 100;
  shape.qkv_bias = random() % 2 == 0;
  shape.tied = random() % 2 == 0;
  shape.gelu = random() % 3 == 0;
  shape.head_norms = random() % 3 == 0;
  return shape;
}

/// Of that shape, with normal weights.
inline model::LlamaCheckpoint random_llama_checkpoint(Random& random,
                                                      const model::LlamaShape& shape) {
  const auto values = [&](std::size_t count, double deviation, double mean = 0.0) {
    std::normal_distribution<double> normal(mean, deviation);
    std::vector<float> made(count);
    for (float& value : made) value = static_cast<float>(normal(random));
    return made;
  };
  const auto linear = [&](std::uint32_t inputs, std::uint32_t outputs, double gain, bool bias) {
    model::LlamaLinear layer{inputs, outputs, {}, {}};
    layer.weight = values(std::size_t{inputs} * outputs, gain / std::sqrt(inputs));
    if (bias) layer.bias = values(outputs, 0.3);
    return layer;
  };
  model::LlamaCheckpoint llama;
  llama.path = llama.name = "random";
  llama.shape = shape;
  llama.norm_epsilon = 1e-5;
  llama.word = values(std::size_t{shape.vocabulary} * shape.width, 1.0);
  if (shape.gelu) llama.word_factor = 3.0;
  for (std::uint32_t i = 0; i < shape.layers; ++i) {
    model::FloatLlamaBlock block;
    block.norm1 = values(shape.width, 0.1, 1.0);
    block.norm2 = values(shape.width, 0.1, 1.0);
    block.query = linear(shape.width, shape.query_width(), 1.5, shape.qkv_bias);
    block.key = linear(shape.width, shape.kv_width(), 1.5, shape.qkv_bias);
    block.value = linear(shape.width, shape.kv_width(), 1.0, shape.qkv_bias);
    if (shape.head_norms) {
      block.query_norm = values(shape.head_width, 0.2, 1.2);
      block.key_norm = values(shape.head_width, 0.2, 1.2);
    }
    block.proj = linear(shape.query_width(), shape.width, 0.5, false);
    block.gate = linear(shape.width, shape.hidden, 2.0, false);
    block.up = linear(shape.width, shape.hidden, 2.0, false);
    block.down = linear(shape.hidden, shape.width, 0.3, false);
    llama.blocks.push_back(block);
  }
  llama.norm = values(shape.width, 0.1, 1.0);
  if (!shape.tied) llama.output = linear(shape.width, shape.vocabulary, 2.0, false);
  return llama;
}

/// `count` tokens.
template <typename Id>
std::vector<Id> random_tokens(Random& random, std::size_t count, std::uint32_t vocabulary) {
  std::vector<Id> ids(count);
  for (Id& id : ids) id = static_cast<Id>(random() % vocabulary);
  return ids;
}

/// The same in integers, on texts of its own.
inline model::IntegerLlama random_integer_llama(Random& random, const model::LlamaShape& shape,
                                                const hw::Machine::Datapath& datapath) {
  model::QuantiserOptions options;
  options.datapath = datapath;
  std::vector<std::vector<std::int32_t>> texts;
  for (int i = 0; i < 3; ++i) {
    texts.push_back(random_tokens<std::int32_t>(random, 16, shape.vocabulary));
  }
  return model::quantise(random_llama_checkpoint(random, shape), texts, options);
}

}  // namespace systole::test

#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "model/checkpoint/seq2seq_checkpoint.h"
#include "model/quantise/quantiser.h"
#include "support/random/random_machine.h"

/// Encoder-decoders with random weights, small enough for many of them in a test.
namespace systole::test {

class RandomSeq2Seq {
 public:
  explicit RandomSeq2Seq(Random& random) : random_(random) {
    heads_ = power_of_two(random, 0, 2);
    width_ = heads_ * power_of_two(random, 2, 3);
    checkpoint_.path = "random.safetensors";
    checkpoint_.encoder = text(false);
    checkpoint_.decoder = text(true);
    checkpoint_.output = linear(checkpoint_.decoder.shape.vocabulary, width_);
    checkpoint_.tokens = {0, 1};
  }

  [[nodiscard]] const model::Seq2SeqCheckpoint& real() const { return checkpoint_; }

  /// For a datapath; calibrated on random texts.
  [[nodiscard]] model::IntegerSeq2Seq integers(const hw::Machine& machine) {
    model::TextPairs texts;
    texts.source = ids(checkpoint_.encoder.shape);
    texts.target = ids(checkpoint_.decoder.shape);
    model::QuantiserOptions options;
    options.datapath = machine.datapath;
    options.per_channel = between(random_, 0, 1) == 0;
    return model::quantise(checkpoint_, texts, options);
  }

  /// Of that many tokens.
  [[nodiscard]] std::vector<std::int32_t> words(std::uint32_t count, std::uint32_t vocabulary) {
    std::vector<std::int32_t> result(count);
    for (std::int32_t& id : result) id = static_cast<std::int32_t>(random_() % vocabulary);
    return result;
  }

 private:
  std::vector<double> values(std::size_t count, double deviation) {
    std::normal_distribution<double> normal(0.0, deviation);
    std::vector<double> result(count);
    for (double& value : result) value = normal(random_);
    return result;
  }
  model::FloatLinear linear(std::uint32_t outputs, std::uint32_t inputs) {
    return {inputs, outputs, values(std::size_t{outputs} * inputs, 0.4), values(outputs, 0.1)};
  }
  model::FloatNorm norm() {
    model::FloatNorm norm{values(width_, 0.1), values(width_, 0.1)};
    for (double& weight : norm.weight) weight += 1.0;
    return norm;
  }

  model::TextCheckpoint text(bool decoder) {
    model::TextCheckpoint text;
    text.path = checkpoint_.path;
    model::TextShape& shape = text.shape;
    shape.encoder.layers = between(random_, 1, 2);
    shape.encoder.width = width_;
    shape.encoder.heads = heads_;
    shape.encoder.hidden = between(random_, 4, 40);
    shape.encoder.causal = decoder;
    shape.encoder.post_norm = !decoder;
    shape.vocabulary = between(random_, 8, 20);
    shape.positions = 12;
    shape.token_types = decoder ? 0 : 1;
    text.norm_epsilon = decoder ? model::kGpt2NormEpsilon : model::kBertNormEpsilon;
    text.gelu = decoder ? model::GeluForm::kTanh : model::GeluForm::kErf;
    text.word = values(std::size_t{shape.vocabulary} * width_, 1.0);
    text.position = values(std::size_t{shape.positions} * width_, 0.5);
    if (!decoder) text.token_type.assign(width_, 0.0);
    text.norm = norm();
    for (std::uint32_t i = 0; i < shape.encoder.layers; ++i) {
      model::FloatBlock block;
      block.norm1 = norm();
      block.qkv = linear(3 * width_, width_);
      block.proj = linear(width_, width_);
      block.norm2 = norm();
      block.fc1 = linear(shape.encoder.hidden, width_);
      block.fc2 = linear(width_, shape.encoder.hidden);
      if (decoder) {
        block.cross = model::FloatCross{norm(), linear(width_, width_), linear(2 * width_, width_),
                                        linear(width_, width_)};
      }
      text.blocks.push_back(block);
    }
    return text;
  }

  model::TokenIds ids(const model::TextShape& shape) {
    model::TokenIds ids;
    ids.count = 4;
    ids.length = shape.positions;
    ids.ids = words(static_cast<std::uint32_t>(ids.count * ids.length), shape.vocabulary);
    ids.valid = {5, 12, 1, 9};
    return ids;
  }

  Random& random_;
  std::uint32_t heads_ = 1, width_ = 4;
  model::Seq2SeqCheckpoint checkpoint_;
};

}  // namespace systole::test

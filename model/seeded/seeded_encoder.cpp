#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "base/error.h"
#include "hw/number/integer.h"
#include "hw/number/softmax_mode.h"
#include "model/build/encoder_graph.h"
#include "model/quantise/quantise_layers.h"
#include "model/seeded/shapes.h"

namespace systole::model {
namespace {

/// Standard deviation of an 8-bit activation: its largest code is four of them.
constexpr double kOperandDeviation = 32.0;
/// Of the bytes that weights are drawn from.
constexpr double kWeightDeviation = 73.5;
/// Of real scores before the softmax: rows neither uniform nor one-hot.
constexpr double kScoreDeviation = 1.5;
/// Root mean square of GELU on a standard normal input.
constexpr double kGeluDeviation = 0.65;
/// What a branch adds, relative to the stream: small, or all tokens become alike with depth.
constexpr double kBranchShare = 0.4;
/// Part of the variance that tokens share in the middle of a deep stack.
constexpr double kCommonShare = 0.5;
constexpr std::uint32_t kMaxTokens = 1U << 16;
constexpr std::uint32_t kMaxChannels = 1U << 16;

/// What a stream of random numbers is for: each has its own, so that leaving one out moves no
/// other.
enum class Purpose : std::uint32_t { kWeight, kConstants, kInput };

class Generator {
 public:
  Generator(std::uint64_t seed, Purpose purpose, std::uint32_t index) {
    std::seed_seq sequence{static_cast<std::uint32_t>(seed),
                           static_cast<std::uint32_t>(seed >> 32U),
                           static_cast<std::uint32_t>(purpose), index};
    engine_.seed(sequence);
  }

  /// Bytes -127 .. 127, eight from every draw.
  void fill(std::vector<std::int8_t>& bytes) {
    std::uint64_t draw = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i, draw >>= 8U) {
      if (i % 8 == 0) draw = engine_();
      const auto byte = static_cast<std::int8_t>(static_cast<std::uint8_t>(draw));
      bytes[i] = std::max<std::int8_t>(byte, -127);
    }
  }

  double uniform(double lowest, double highest) {
    return lowest + (highest - lowest) * std::ldexp(static_cast<double>(engine_() >> 11U), -53);
  }

  /// Sum of twelve uniform numbers: close to normal, and never beyond six deviations.
  double normal(double deviation) {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += uniform(0.0, 1.0);
    return sum * deviation;
  }

 private:
  std::mt19937_64 engine_;
};

double stream_deviation(const hw::Machine::Datapath& datapath) {
  return std::ldexp(1.0, static_cast<int>(datapath.residual_bits) - 5);
}

double embedding_deviation(const EncoderShape& shape, const hw::Machine::Datapath& datapath) {
  return shape.post_norm ? kOperandDeviation : stream_deviation(datapath);
}

class SeededEncoder {
 public:
  SeededEncoder(const EncoderShape& shape, std::uint32_t length, std::uint64_t seed,
                const SeededOptions& options)
      : shape_(shape),
        length_(length),
        seed_(seed),
        options_(options),
        quantiser_("seeded encoder", options.datapath.multiplier_bits, true) {}

  IntegerEncoder run() {
    IntegerEncoder encoder;
    encoder.shape = shape_;
    encoder.datapath = options_.datapath;
    encoder.exp_to_code = quantiser_.exp_to_code(options_.datapath.softmax_bits);
    for (std::uint32_t i = 0; i < shape_.layers; ++i) {
      encoder.blocks.push_back(block("blocks." + std::to_string(i) + "."));
      if (!options_.keep.empty()) encoder.blocks.back().keep = options_.keep[i];
    }
    return encoder;
  }

 private:
  /// Input codes deviate by `in`, output codes by `out`.
  IntegerLinear linear(const std::string& name, std::uint32_t inputs, std::uint32_t outputs,
                       double in, double out) {
    const std::uint32_t index = layers_++;
    const double accumulator = std::sqrt(static_cast<double>(inputs)) * kWeightDeviation * in;
    IntegerLinear layer;
    layer.inputs = inputs;
    layer.outputs = outputs;
    if (!options_.shape_only) {
      layer.weight.resize(std::size_t{inputs} * outputs);
      Generator(seed_, Purpose::kWeight, index).fill(layer.weight);
    }
    Generator constants(seed_, Purpose::kConstants, index);
    for (std::uint32_t o = 0; o < outputs; ++o) {
      layer.bias.push_back(
          static_cast<std::int32_t>(std::nearbyint(constants.normal(0.1 * accumulator))));
      layer.factor.push_back(
          quantiser_.factor(name, out / accumulator * constants.uniform(0.8, 1.25)));
    }
    return layer;
  }

  IntegerLayerNorm layer_norm(const std::string& name) {
    Generator constants(seed_, Purpose::kConstants, layers_++);
    FloatNorm norm;
    for (std::uint32_t i = 0; i < shape_.width; ++i) {
      norm.weight.push_back(constants.uniform(0.8, 1.2));
      norm.bias.push_back(constants.normal(0.1));
    }
    return quantiser_.layer_norm(name, norm, 1.0 / kOperandDeviation);
  }

  IntegerBlock block(const std::string& prefix) {
    const std::uint32_t width = shape_.width;
    const double stream = stream_deviation(options_.datapath);
    const double branch = kBranchShare * stream;
    constexpr double kReal = 1.0 / kOperandDeviation;
    IntegerBlock block;
    block.scales = {kReal, kReal, kReal, kReal, 1.0 / stream, kReal, kReal, 1.0 / stream};
    block.norm1 = layer_norm(prefix + "norm1");
    block.norm2 = layer_norm(prefix + "norm2");
    block.qkv = linear(prefix + "attn.qkv", width, 3 * width, kOperandDeviation, kOperandDeviation);
    block.score = quantiser_.factor(
        prefix + "attn.scores",
        kScoreDeviation * std::exp2(double{hw::kScoreFractionBits}) /
            (std::sqrt(shape_.head_width()) * kOperandDeviation * kOperandDeviation));
    // A mean over tokens with log-normal weights deviates like one over so many equal ones, and
    // what all tokens have in common stays.
    const double tokens = std::max(1.0, length_ / std::exp(kScoreDeviation * kScoreDeviation));
    const double mean = std::sqrt(kCommonShare + (1.0 - kCommonShare) / tokens);
    block.context = quantiser_.factor(
        prefix + "attn.context", std::ldexp(1.0 / mean, -context_fraction_bits(options_.datapath)));
    block.proj = linear(prefix + "attn.proj", width, width, kOperandDeviation, branch);
    block.fc1 =
        linear(prefix + "mlp.fc1", width, shape_.hidden, kOperandDeviation, kOperandDeviation);
    block.gelu = quantiser_.gelu(prefix + "mlp.gelu", kReal, kReal);
    block.fc2 = linear(prefix + "mlp.fc2", shape_.hidden, width, kGeluDeviation * kOperandDeviation,
                       branch);
    if (shape_.post_norm) {
      block.attention_identity =
          quantiser_.factor(prefix + "attn.residual", stream / kOperandDeviation);
      block.mlp_identity = block.attention_identity;
    }
    return block;
  }

  const EncoderShape& shape_;
  std::uint32_t length_;
  std::uint64_t seed_;
  const SeededOptions& options_;
  LayerQuantiser quantiser_;
  std::uint32_t layers_ = 0;  ///< made so far
};

void check_shape(const EncoderShape& shape, std::uint32_t length, std::uint32_t batch) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw hw::InputError("encoder shape: " + what);
  };
  require(shape.layers >= 1, "0 layers, expected 1 or more");
  require(shape.width >= 1 && shape.width <= kMaxChannels,
          "width " + std::to_string(shape.width) + ", expected 1 to 65536");
  require(shape.hidden >= 1 && shape.hidden <= kMaxChannels,
          "hidden " + std::to_string(shape.hidden) + ", expected 1 to 65536");
  require(shape.heads >= 1 && shape.width % shape.heads == 0,
          std::to_string(shape.heads) + " heads, expected a divisor of the width " +
              std::to_string(shape.width));
  require(length >= 1 && length <= kMaxTokens,
          "length " + std::to_string(length) + ", expected 1 to 65536");
  require(batch >= 1 && std::uint64_t{length} * batch <= kMaxTokens,
          "batch " + std::to_string(batch) + ", expected 1 to " +
              std::to_string(kMaxTokens / length) + " of length " + std::to_string(length));
}

void check_masks(const std::vector<std::vector<std::uint8_t>>& keep, const EncoderShape& shape,
                 std::uint32_t length) {
  const std::size_t cells = std::size_t{shape.heads} * length * length;
  const bool fits = keep.empty() || (keep.size() == shape.layers &&
                                     std::all_of(keep.begin(), keep.end(), [&](const auto& mask) {
                                       return mask.size() == cells;
                                     }));
  if (!fits) {
    throw hw::InputError("encoder masks: expected " + std::to_string(shape.layers) + " of " +
                         std::to_string(cells) + " cells");
  }
}

}  // namespace

IntegerEncoder make_seeded_layers(const EncoderShape& shape, std::uint32_t length,
                                  std::uint64_t seed, const SeededOptions& options) {
  check_shape(shape, length, options.batch);
  check_masks(options.keep, shape, length);
  return SeededEncoder(shape, length, seed, options).run();
}

double seeded_embedding_scale(const EncoderShape& shape, const hw::Machine::Datapath& datapath) {
  return 1.0 / embedding_deviation(shape, datapath);
}

Graph make_seeded_encoder(std::string name, const EncoderShape& shape, std::uint32_t length,
                          std::uint64_t seed, const SeededOptions& options) {
  return make_encoder_graph(make_seeded_layers(shape, length, seed, options), length,
                            std::move(name), seeded_embedding_scale(shape, options.datapath),
                            options.batch);
}

std::vector<std::int32_t> seeded_embedding(const EncoderShape& shape, std::uint32_t length,
                                           std::uint64_t seed,
                                           const hw::Machine::Datapath& datapath) {
  const double deviation = embedding_deviation(shape, datapath);
  const hw::IntRange range = hw::symmetric_range(shape.post_norm ? 8 : datapath.residual_bits);
  Generator generator(seed, Purpose::kInput, 0);
  std::vector<std::int32_t> values(std::size_t{length} * shape.width);
  for (std::int32_t& value : values) {
    value =
        static_cast<std::int32_t>(hw::saturate(std::llrint(generator.normal(deviation)), range));
  }
  return values;
}

}  // namespace systole::model

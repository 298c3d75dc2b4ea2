#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "hw/number/integer.h"
#include "model/build/encoder_graph.h"
#include "model/integer/row_scales.h"
#include "model/quantise/quantise_layers.h"
#include "model/seeded/seeded_constants.h"
#include "model/seeded/shapes.h"

namespace systole::model {
namespace {

constexpr std::uint32_t kMaxTokens = 1U << 16;
constexpr std::uint32_t kMaxChannels = 1U << 16;

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
    return seeded_linear(quantiser_,
                         {name, seed_, layers_++, !options_.shape_only, true, options_.int4},
                         inputs, outputs, in, out);
  }

  IntegerLayerNorm layer_norm(const std::string& name) {
    SeededNumbers constants(seed_, SeedPurpose::kConstants, layers_++);
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
    block.score =
        quantiser_.factor(prefix + "attn.scores", seeded_score_factor(shape_.head_width()));
    block.context = quantiser_.factor(
        prefix + "attn.context",
        std::ldexp(1.0 / mean_deviation(length_), -context_fraction_bits(options_.datapath)));
    block.proj = linear(prefix + "attn.proj", width, width, kOperandDeviation, branch);
    block.fc1 =
        linear(prefix + "mlp.fc1", width, shape_.hidden, kOperandDeviation, kOperandDeviation);
    block.gelu = quantiser_.gelu(prefix + "mlp.gelu", kReal, kReal, value_bits(false));
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
  SeededNumbers generator(seed, SeedPurpose::kInput, 0);
  std::vector<std::int32_t> values(std::size_t{length} * shape.width);
  for (std::int32_t& value : values) {
    value =
        static_cast<std::int32_t>(hw::saturate(std::llrint(generator.normal(deviation)), range));
  }
  return values;
}

}  // namespace systole::model

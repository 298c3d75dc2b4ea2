#include "model/seeded/gpt_layer_graph.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hw/number/integer.h"
#include "hw/number/softmax_mode.h"
#include "model/build/encoder_blocks.h"
#include "model/graph/graph_builder.h"
#include "model/graph/stages.h"
#include "model/seeded/shapes.h"

namespace systole::model {
namespace {

constexpr unsigned kCodeBits = 8;
/// Factor of the scores, 0.75, in the place of the root of the head's width: what is left of that
/// rounds the sums of Q K^T to int8.
constexpr std::int64_t kScaleValue = 96, kScaleShift = 7;
/// Step of a score before the softmax: int8 codes deviate by 24, real scores by 1.5.
constexpr double kScoreStep = 1.0 / 16;
/// Standard deviation of int8 activations in seeded networks, and so of Q, K and their products.
constexpr double kCodeDeviation = 32.0;
/// Below every score.
constexpr std::int64_t kMaskedScore = -128;

hw::Machine::Datapath int8_datapath(hw::Machine::Datapath datapath) {
  datapath.residual_bits = kCodeBits;
  datapath.softmax = hw::SoftmaxMode::kNormalisedFloor;
  return datapath;
}

hw::Stage scale_stage(hw::Rounding rounding) {
  const hw::IntRange range = hw::symmetric_range(kCodeBits);
  hw::Stage stage = hw::default_stage(hw::StageOp::kMul);
  stage.operand = hw::Operand::kImmediate;
  stage.rounding = rounding;
  stage.imm = {kScaleShift, range.lo, range.hi, kScaleValue};
  return stage;
}

hw::Stage causal_mask_stage() {
  hw::Stage stage = hw::default_stage(hw::StageOp::kMask);
  stage.operand = hw::Operand::kImmediate;
  stage.imm = {kMaskedScore};
  return stage;
}

/// A layer's factor for sums as they are, and its bias for sums that are rounded to int8 already.
std::vector<std::int32_t> factor_words(const IntegerLinear& layer) {
  std::vector<std::int32_t> words;
  for (const hw::Dyadic& factor : layer.factor) words.push_back(factor.multiplier);
  for (const hw::Dyadic& factor : layer.factor) words.push_back(factor.shift);
  return words;
}
std::vector<std::int32_t> rounded_bias(const IntegerLinear& layer) {
  std::vector<std::int32_t> words;
  for (std::size_t i = 0; i < layer.bias.size(); ++i) {
    const double factor = std::ldexp(layer.factor[i].multiplier, -layer.factor[i].shift);
    words.push_back(static_cast<std::int32_t>(std::nearbyint(layer.bias[i] * factor)));
  }
  return words;
}

class SeparateLayer {
 public:
  SeparateLayer(const GptLayerShape& shape, const IntegerEncoder& encoder, std::string name)
      : shape_(shape),
        encoder_(encoder),
        builder_(std::move(name)),
        blocks_(builder_, encoder),
        layer_(encoder.blocks.front()) {}

  Graph run() {
    const View x = input();
    const View norm1 = blocks_.layer_norm("norm1", x, layer_.norm1);
    const View qkv = projections(norm1);
    const View context = attention(qkv);
    const View projected = linear("attn.proj", context, layer_.proj);
    const View stream = residual("attn.residual", projected, x);
    const View norm2 = blocks_.layer_norm("norm2", stream, layer_.norm2);
    const View hidden = linear("mlp.fc1", norm2, layer_.fc1);
    const View activated =
        builder_.stage("mlp.gelu", hidden, gelu_stage(layer_.gelu, kCodeBits), hw::DType::kS8);
    const View branch = linear("mlp.fc2", activated, layer_.fc2);
    const View out = residual("mlp.residual", branch, stream);
    builder_.tensor(out.tensor).kind = Tensor::Kind::kOutput;
    return std::move(builder_).take();
  }

 private:
  View input() {
    const View tokens = blocks_.input("tokens", shape_.tokens, hw::DType::kS8, 0.0);
    if (!shape_.embedding) return tokens;
    Tensor positions;
    positions.name = "positions";
    positions.rows = shape_.tokens;
    positions.cols = shape_.width;
    positions.kind = Tensor::Kind::kConstant;
    if (!layer_.fc1.weight.empty()) {  // any seeded bytes do
      std::vector<std::uint8_t>& codes = positions.data.edit();
      codes.resize(positions.bytes());
      for (std::size_t i = 0; i < codes.size(); ++i) {
        codes[i] = static_cast<std::uint8_t>(layer_.fc1.weight[i % layer_.fc1.weight.size()] / 4);
      }
    }
    const View table = builder_.whole(builder_.add_tensor(std::move(positions)));
    return residual("embedding", tokens, table);
  }

  /// a + b, as an int8 of that name.
  View residual(const std::string& name, View a, View b) {
    const View sum = builder_.stage(name + ".add", a,
                                    add_tensor_stage(hw::DType::kS8, {}, kBranchBits, rounding()),
                                    hw::DType::kS32, {{}, b});
    return builder_.stage(name, sum, clamp_stage(kCodeBits), hw::DType::kS8);
  }

  /// A product of the tokens with weights, rounded to int8, and its bias.
  View biased_product(const std::string& name, View in, const IntegerLinear& layer) {
    Tensor weight;
    weight.name = name + ".weight";
    weight.rows = layer.inputs;
    weight.cols = layer.outputs;
    weight.kind = Tensor::Kind::kConstant;
    weight.data = transposed_weight(layer);
    const View b = builder_.whole(builder_.add_tensor(std::move(weight)));
    const View sums = builder_.matmul(name, in, b, false);
    const View codes =
        builder_.stage(name + ".requantise", sums, channel_requantise_stage(kCodeBits, rounding()),
                       hw::DType::kS8, {factor_words(layer), {}});
    return builder_.stage(name + ".bias", codes, bias_stage(), hw::DType::kS32,
                          {rounded_bias(layer), {}});
  }
  View linear(const std::string& name, View in, const IntegerLinear& layer) {
    return builder_.stage(name + ".clamp", biased_product(name, in, layer), clamp_stage(kCodeBits),
                          hw::DType::kS8);
  }

  /// Q, K and V side by side, of all tokens of the context.
  View projections(View in) {
    const std::string name = "attn.qkv";
    const View sum = biased_product(name, in, layer_.qkv);
    Tensor tensor;
    tensor.name = name + ".clamp";
    tensor.rows = shape_.context;
    tensor.cols = 3 * shape_.width;
    const bool cached = shape_.context != shape_.tokens;
    if (cached) tensor.kind = Tensor::Kind::kState;
    const View all = builder_.whole(builder_.add_tensor(std::move(tensor)));
    builder_.stage_to(name + ".clamp", sum, clamp_stage(kCodeBits), last_rows(all));
    return all;
  }

  [[nodiscard]] View last_rows(View view) const {
    view.row += view.rows - shape_.tokens;
    view.rows = shape_.tokens;
    return view;
  }

  View attention(View qkv) {
    Tensor tensor;
    tensor.name = "attn.context";
    tensor.rows = shape_.tokens;
    tensor.cols = shape_.width;
    const View context = builder_.whole(builder_.add_tensor(std::move(tensor)));
    const std::uint32_t head_width = shape_.width / shape_.heads;
    const auto of_head = [&](View view, std::uint32_t first, std::uint32_t head) {
      view.col += first + head * head_width;
      view.cols = head_width;
      return view;
    };
    for (std::uint32_t h = 0; h < shape_.heads; ++h) {
      head("attn.head" + std::to_string(h) + ".", of_head(last_rows(qkv), 0, h),
           of_head(qkv, shape_.width, h), of_head(qkv, 2 * shape_.width, h),
           of_head(context, 0, h));
    }
    return context;
  }

  void head(const std::string& prefix, View query, View key, View value, View context) {
    const unsigned bits = encoder_.datapath.multiplier_bits;
    const std::uint32_t kept = shape_.context - shape_.tokens + 1;
    const double sums = std::sqrt(shape_.width / shape_.heads) * kCodeDeviation * kCodeDeviation;
    const View products = builder_.stage(
        prefix + "scores.requantise", builder_.matmul(prefix + "scores", query, key, true),
        requantise_stage(hw::make_dyadic(kCodeDeviation / sums, bits), kCodeBits, rounding()),
        hw::DType::kS8);
    const View scaled =
        builder_.stage(prefix + "scale", products, scale_stage(rounding()), hw::DType::kS8);
    const View scores = builder_.stage(prefix + "mask", scaled, causal_mask_stage(), hw::DType::kS8,
                                       {{}, {}, kNoTensor, kept});
    if (shape_.keeps_scores) builder_.tensor(scores.tensor).kind = Tensor::Kind::kState;
    const hw::Dyadic step = hw::make_dyadic(std::ldexp(kScoreStep, hw::kScoreFractionBits), bits);
    const View probabilities = builder_.stage(
        prefix + "softmax", scores,
        softmax_stage(encoder_.datapath, step, hw::kScoreFractionBits, encoder_.exp_to_code),
        hw::DType::kU8, {{}, {}, kNoTensor, kept});
    builder_.stage_to(prefix + "context.requantise",
                      builder_.matmul(prefix + "context", probabilities, value, false),
                      requantise_stage(layer_.context, kCodeBits, rounding()), context);
  }

  [[nodiscard]] hw::Rounding rounding() const { return encoder_.datapath.rounding; }

  const GptLayerShape& shape_;
  const IntegerEncoder& encoder_;
  GraphBuilder builder_;
  EncoderBlocks blocks_;
  const IntegerBlock& layer_;
};

}  // namespace

Graph make_gpt_layer_graph(const GptLayerShape& shape, const hw::Machine::Datapath& datapath,
                           std::uint64_t seed, bool shape_only) {
  if (shape.tokens == 0 || shape.context < shape.tokens) {
    throw hw::InputError("GPT-2 layer: " + std::to_string(shape.tokens) + " tokens of " +
                         std::to_string(shape.context) + ", expected 1 or more, and no more");
  }
  EncoderShape layers;
  layers.layers = 1;
  layers.width = shape.width;
  layers.heads = shape.heads;
  layers.hidden = 4 * shape.width;
  layers.causal = true;
  const IntegerEncoder encoder =
      make_seeded_layers(layers, shape.context, seed, {int8_datapath(datapath), shape_only});
  return SeparateLayer(shape, encoder, "GPT-2 layer").run();
}

}  // namespace systole::model

#include "model/integer/integer_vit_check.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "hw/function/layernorm.h"
#include "hw/number/integer.h"
#include "model/checkpoint/keep_mask.h"

namespace systole::model {
namespace {

constexpr std::int64_t kLargestWeight = 127;
constexpr std::int64_t kLargestGeluInput = 127;
/// Pictures of bytes use all codes (model/data/image.h).
constexpr std::int64_t kLargestMagnitude = 128;
constexpr std::int64_t kAccumulatorMax = std::numeric_limits<std::int32_t>::max();
/// One less than for a requantisation: the sum before the shift needs the room.
constexpr std::int64_t kMaxNormShift = hw::kMaxDyadicShift - 1;
constexpr std::int64_t kMaxNormMultiplier = std::int64_t{1} << hw::kLayerNormMultiplierBits;
constexpr std::int64_t kMaxGeluClip = std::int64_t{1} << 16;
constexpr std::int64_t kMaxGeluConstant = std::int64_t{1} << 40;

class Check {
 public:
  Check(const std::string& place, const hw::Machine::Datapath& datapath)
      : place_(place),
        multiplier_bits_(datapath.multiplier_bits),
        multiplier_max_((std::int64_t{1} << datapath.multiplier_bits) - 1) {}

  void in_range(const std::string& name, std::int64_t value, std::int64_t lowest,
                std::int64_t highest) const {
    if (value >= lowest && value <= highest) return;
    throw hw::InputError(place_ + ": " + name + ": " + std::to_string(value) + ", expected " +
                         std::to_string(lowest) + " to " + std::to_string(highest));
  }

  template <typename Value>
  void all_in_range(const std::string& name, const std::vector<Value>& values, std::int64_t lowest,
                    std::int64_t highest) const {
    for (const Value value : values) {
      if (value < lowest || value > highest) in_range(name, value, lowest, highest);
    }
  }

  void scale(const std::string& name, double value) const {
    if (std::isfinite(value) && value > 0) return;
    throw hw::InputError(place_ + ": " + name + ".scale: expected a positive number");
  }

  void factor(const std::string& name, hw::Dyadic factor, std::int64_t lowest_multiplier) const {
    in_range(name + ".multiplier", factor.multiplier, lowest_multiplier, multiplier_max_);
    in_range(name + ".shift", factor.shift, 0, hw::kMaxDyadicShift);
  }

  void linear(const std::string& name, const IntegerLinear& layer) const {
    all_in_range(name + ".weight", layer.weight, -kLargestWeight, kLargestWeight);
    const std::int64_t limit =
        kAccumulatorMax - std::int64_t{layer.inputs} * kLargestWeight * kLargestMagnitude;
    all_in_range(name + ".bias", layer.bias, -limit, limit);
    for (const hw::Dyadic& channel : layer.factor) factor(name, channel, 0);
  }

  void norm(const std::string& name, const IntegerLayerNorm& norm) const {
    all_in_range(name + ".multiplier", norm.multiplier, -kMaxNormMultiplier, kMaxNormMultiplier);
    in_range(name + ".shift", norm.shift, 0, kMaxNormShift);
    scale(name, norm.scale);
  }

  void gelu(const std::string& name, const hw::GeluConstants& gelu) const {
    in_range(name + ".b", gelu.b, -kMaxGeluClip, 0);
    in_range(name + ".c", gelu.c, -kMaxGeluConstant, 0);
    in_range(name + ".one", gelu.one, -kMaxGeluConstant, 0);
    factor(name, gelu.output, -multiplier_max_);
    bool fits = fits_gelu_product(gelu);
    for (std::int32_t q = -kLargestGeluInput; q <= kLargestGeluInput; ++q) {
      fits = fits && hw::signed_bits(hw::gelu_product(q, gelu)) <= hw::gelu_product_bits(8);
    }
    if (!fits) throw hw::InputError(place_ + ": " + name + ": the product exceeds its register");
  }

  void head(const IntegerTextHead& head) const {
    linear("head.dense", head.dense);
    if (head.function == HeadFunction::kTanh) {
      factor("head.tanh.argument", head.argument, 0);
      factor("head.tanh.output", head.output, 0);
      in_range("head.tanh.fraction_bits", head.fraction_bits, hw::kMinExpFractionBits,
               hw::kMaxSiluFractionBits);
    }
    scale("head.pooled", head.pooled_scale);
    linear("head.classes", head.classes);
    scale("logits", head.logit_scale);
  }

  void link(const std::string& prefix, const std::string& operand,
            const IntegerHeadMix& link) const {
    linear(prefix + "encoder_" + operand, link.encoder);
    linear(prefix + "decoder_" + operand, link.decoder);
    scale(prefix + "encoder_" + operand, link.latent_scale);
    scale(prefix + "decoder_" + operand, link.scale);
  }

  /// That the scores leave room for pruned ones.
  void mask(const std::string& name, hw::Dyadic score, std::uint32_t head_width) const {
    try {
      static_cast<void>(prune_factor(score, head_width, multiplier_bits_));
    } catch (const hw::InputError& error) {
      throw hw::InputError(place_ + ": " + name + ": " + error.what());
    }
  }

  void block(const std::string& prefix, const IntegerBlock& block,
             const EncoderShape& shape) const {
    norm(prefix + "norm1", block.norm1);
    norm(prefix + "norm2", block.norm2);
    linear(prefix + "attn.qkv", block.qkv);
    factor(prefix + "attn.score", block.score, 0);
    factor(prefix + "attn.context", block.context, 0);
    linear(prefix + "attn.proj", block.proj);
    linear(prefix + "mlp.fc1", block.fc1);
    gelu(prefix + "mlp.gelu", block.gelu);
    linear(prefix + "mlp.fc2", block.fc2);
    if (shape.latent_heads != 0) {
      link(prefix + "attn.", "q", block.query_link);
      link(prefix + "attn.", "k", block.key_link);
    }
    if (!block.keep.empty()) mask(prefix + "attn.keep_mask", block.score, shape.head_width());
    if (shape.post_norm) {
      factor(prefix + "attn.identity", block.attention_identity, 1);
      factor(prefix + "mlp.identity", block.mlp_identity, 1);
    }
  }

  void scales(const std::string& prefix, const IntegerBlock::Scales& scales) const {
    scale(prefix + "attn.query", scales.query);
    scale(prefix + "attn.key", scales.key);
    scale(prefix + "attn.value", scales.value);
    scale(prefix + "attn.context", scales.context);
    scale(prefix + "attn.residual", scales.attention_residual);
    scale(prefix + "mlp.fc1", scales.gelu_in);
    scale(prefix + "mlp.gelu", scales.gelu_out);
    scale(prefix + "mlp.residual", scales.mlp_residual);
  }

 private:
  const std::string& place_;
  unsigned multiplier_bits_;
  std::int64_t multiplier_max_;
};

}  // namespace

bool fits_gelu_product(const hw::GeluConstants& gelu) {
  const hw::Int128 clip = gelu.b;
  const hw::Int128 polynomial = clip * clip - gelu.c - gelu.one;
  const hw::Int128 multiplier = std::abs(std::int64_t{gelu.output.multiplier});
  return polynomial * multiplier < hw::Int128{1} << (62U - 15U);
}

namespace {

void check_encoder(const Check& check, const IntegerEncoder& encoder) {
  check.factor("softmax", encoder.exp_to_code, 0);
  for (std::size_t i = 0; i < encoder.blocks.size(); ++i) {
    const std::string prefix = "blocks." + std::to_string(i) + ".";
    check.block(prefix, encoder.blocks[i], encoder.shape);
    check.scales(prefix, encoder.blocks[i].scales);
  }
}

}  // namespace

void check_integer_vit(const IntegerVit& vit, const std::string& place) {
  const Check check(place, vit.encoder.datapath);
  const hw::IntRange stream = hw::symmetric_range(vit.encoder.datapath.residual_bits);
  check.linear("patch_embed", vit.patch_embed);
  check.all_in_range("position", vit.position, stream.lo, stream.hi);
  check.scale("embedding", vit.embedding_scale);
  check.norm("norm", vit.norm);
  check_encoder(check, vit.encoder);
  check.linear("head", vit.head);
  check.scale("logits", vit.logit_scale);
}

void check_integer_text(const IntegerText& text, const std::string& place) {
  const Check check(place, text.encoder.datapath);
  const hw::IntRange stream = hw::symmetric_range(text.encoder.datapath.residual_bits);
  check.all_in_range("word", text.word, stream.lo, stream.hi);
  check.all_in_range("position", text.position, stream.lo, stream.hi);
  check.all_in_range("token_type", text.token_type, stream.lo, stream.hi);
  check.scale("embedding", text.embedding_scale);
  check.norm("norm", text.norm);
  check_encoder(check, text.encoder);
  if (text.head) check.head(*text.head);
}

void check_integer_layers(const IntegerLayers& layers, const std::string& place) {
  const Check check(place, layers.encoder.datapath);
  check.scale("embedding", layers.embedding_scale);
  check_encoder(check, layers.encoder);
}

}  // namespace systole::model

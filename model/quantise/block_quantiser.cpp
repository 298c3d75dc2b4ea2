#include "model/quantise/block_quantiser.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "hw/number/integer.h"
#include "hw/number/softmax_mode.h"
#include "model/metadata/datapath_metadata.h"

namespace systole::model {
namespace {

void require_range(const char* name, double value, double lowest, double highest) {
  if (value >= lowest && value <= highest) return;
  throw hw::InputError("quantiser: " + std::string(name) + ": " + std::to_string(value) +
                       ", expected " + std::to_string(lowest) + " to " + std::to_string(highest));
}

}  // namespace

void check_options(const QuantiserOptions& options) {
  check_datapath(options.datapath);
  require_range("headroom", options.headroom, 1, 1024);
  if (options.outlier_alpha) require_range("outlier alpha", *options.outlier_alpha, 0, 1);
}

IntegerEncoder BlockQuantiser::empty_encoder() const {
  IntegerEncoder encoder;
  encoder.shape = shape_;
  encoder.datapath = options_.datapath;
  // An encoder without outputs is folded.
  encoder.folded_encoders =
      shape_.latent_heads != 0 && blocks_.front().query_link.encoder.outputs == 0;
  encoder.row_scales = options_.row_scales;
  encoder.exp_to_code = layers_.exp_to_code(options_.datapath.softmax_bits);
  return encoder;
}

double BlockQuantiser::residual_scale(Site site, std::size_t layer) const {
  double largest = calibration_.largest(site, layer);
  if (!shape_.post_norm) {
    largest = calibration_.largest(Site::kEmbedding);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      largest = std::max({largest, calibration_.largest(Site::kAttentionResidual, i),
                          calibration_.largest(Site::kMlpResidual, i)});
      if (blocks_[i].cross) {
        largest = std::max(largest, calibration_.largest(Site::kCrossResidual, i));
      }
    }
  }
  const auto codes = static_cast<double>(hw::symmetric_range(options_.datapath.residual_bits).hi);
  return (largest > 0 ? largest : 1.0) * options_.headroom / codes;
}

double BlockQuantiser::embedding_scale(
    const std::vector<const std::vector<double>*>& tables) const {
  double largest = 0;
  for (const std::vector<double>* table : tables) {
    for (const double x : *table) largest = std::max(largest, std::fabs(x));
  }
  const hw::IntRange range = hw::symmetric_range(options_.datapath.residual_bits);
  return std::max(residual_scale(Site::kEmbedding, 0), largest / static_cast<double>(range.hi));
}

std::vector<std::int32_t> BlockQuantiser::stream_codes(const std::vector<double>& values,
                                                       double scale) const {
  const hw::IntRange range = hw::symmetric_range(options_.datapath.residual_bits);
  std::vector<std::int32_t> codes;
  codes.reserve(values.size());
  for (const double value : values) {
    codes.push_back(static_cast<std::int32_t>(std::clamp(std::nearbyint(value / scale),
                                                         static_cast<double>(range.lo),
                                                         static_cast<double>(range.hi))));
  }
  return codes;
}

double BlockQuantiser::append_blocks(IntegerEncoder& encoder, double scale) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    encoder.blocks.push_back(block(i, scale));
    if (shape_.post_norm) scale = encoder.blocks.back().norm2.scale;
  }
  return scale;
}

double BlockQuantiser::gelu_scale(std::size_t layer) const {
  const double scale = wide_scale(Site::kGeluIn, layer);
  if (!options_.row_scales) return scale;
  return std::max(scale, code_scale(kLeastGeluRange, kWideBits));
}

IntegerLinear BlockQuantiser::linear(const std::string& name, const FloatLinear& layer,
                                     double input_scale,
                                     const std::vector<OutputGroup>& groups) const {
  return layers_.linear(name, layer, input_scale, groups, options_.weight_bits);
}

/// The auto-encoder on Q or K (`operand` is "q" or "k"), on a tensor of `in_scale`.
IntegerHeadMix BlockQuantiser::link(const std::string& prefix, const std::string& operand,
                                    const FloatLink& from, double in_scale, double latent_scale,
                                    double scale) const {
  IntegerHeadMix link;
  link.latent_scale = latent_scale;
  link.scale = scale;
  if (from.encoder.outputs != 0) {
    link.encoder = layers_.linear(prefix + "encoder_" + operand, from.encoder, in_scale,
                                  {{from.encoder.outputs, latent_scale}});
  }
  link.decoder = layers_.linear(prefix + "decoder_" + operand, from.decoder, latent_scale,
                                {{from.decoder.outputs, scale}});
  return link;
}

hw::Dyadic BlockQuantiser::score_factor(const std::string& name, double query, double key) const {
  const double scale = query * key * std::pow(static_cast<double>(shape_.head_width()), -0.5);
  return layers_.factor(name, scale * std::exp2(double{hw::kScoreFractionBits}));
}

hw::Dyadic BlockQuantiser::context_factor(const std::string& name, double value,
                                          double context) const {
  return layers_.factor(name,
                        std::ldexp(value, -context_fraction_bits(options_.datapath)) / context);
}

IntegerCross BlockQuantiser::cross(std::size_t i, double in_scale) const {
  const FloatCross& from = *blocks_[i].cross;
  const std::string prefix = "blocks." + std::to_string(i) + ".cross.";
  const std::uint32_t width = shape_.width;
  IntegerCross cross;
  IntegerCross::Scales& scales = cross.scales;
  const double norm_scale = operand_scale(Site::kCrossNorm, i);
  cross.norm = layers_.layer_norm(prefix + "norm", from.norm, norm_scale);
  scales.query = operand_scale(Site::kCrossQuery, i);
  scales.key = code_scale(calibration_.largest(Site::kCrossKeyValue, i, 0, width));
  scales.value = code_scale(calibration_.largest(Site::kCrossKeyValue, i, width, width));
  cross.query = linear(prefix + "query", from.query, norm_scale, {{width, scales.query}});
  cross.key_value = linear(prefix + "kv", from.key_value, memory_scale_,
                           {{width, scales.key}, {width, scales.value}});
  cross.score = score_factor(prefix + "scores", scales.query, scales.key);
  scales.context = operand_scale(Site::kCrossContext, i);
  cross.context = context_factor(prefix + "context", scales.value, scales.context);
  scales.residual = in_scale;
  cross.proj = linear(prefix + "proj", from.proj, scales.context, {{width, in_scale}});
  return cross;
}

IntegerBlock BlockQuantiser::block(std::size_t i, double in_scale) const {
  const FloatBlock& from = blocks_[i];
  const std::string prefix = "blocks." + std::to_string(i) + ".";
  const std::uint32_t width = shape_.width;
  const bool post = shape_.post_norm;
  const double norm1_scale = wide_scale(Site::kNorm1, i);
  const double norm2_scale = wide_scale(Site::kNorm2, i);

  IntegerBlock block;
  IntegerBlock::Scales& scales = block.scales;
  block.norm1 = layers_.layer_norm(prefix + "norm1", from.norm1, norm1_scale);
  block.norm2 = layers_.layer_norm(prefix + "norm2", from.norm2, norm2_scale);

  const std::uint32_t query_width = (from.qkv.outputs - width) / 2;
  scales.query = code_scale(calibration_.largest(Site::kQkv, i, 0, query_width));
  scales.key = code_scale(calibration_.largest(Site::kQkv, i, query_width, query_width));
  scales.value = code_scale(calibration_.largest(Site::kQkv, i, 2 * query_width, width));
  block.qkv =
      linear(prefix + "attn.qkv", from.qkv, product_scale(post ? in_scale : norm1_scale, width),
             {{query_width, scales.query}, {query_width, scales.key}, {width, scales.value}});
  double query_scale = scales.query;
  double key_scale = scales.key;
  if (shape_.latent_heads != 0) {
    query_scale = operand_scale(Site::kDecodedQuery, i);
    key_scale = operand_scale(Site::kDecodedKey, i);
    block.query_link = link(prefix + "attn.", "q", from.query_link, scales.query,
                            operand_scale(Site::kLatentQuery, i), query_scale);
    block.key_link = link(prefix + "attn.", "k", from.key_link, scales.key,
                          operand_scale(Site::kLatentKey, i), key_scale);
  }
  block.keep = from.keep;
  block.score = score_factor(prefix + "attn.scores", query_scale, key_scale);
  scales.context = operand_scale(Site::kContext, i);
  block.context = context_factor(prefix + "attn.context", scales.value, scales.context);

  scales.attention_residual = post ? residual_scale(Site::kAttentionResidual, i) : in_scale;
  block.proj =
      linear(prefix + "attn.proj", from.proj, scales.context, {{width, scales.attention_residual}});
  if (from.cross) block.cross = cross(i, in_scale);
  const double mlp_in = product_scale(post ? norm1_scale : norm2_scale, width);
  scales.gelu_in = gelu_scale(i);
  scales.gelu_out = wide_scale(Site::kGeluOut, i);
  block.fc1 = linear(prefix + "mlp.fc1", from.fc1, mlp_in, {{shape_.hidden, scales.gelu_in}});
  block.gelu = layers_.gelu(prefix + "mlp.gelu", scales.gelu_in, scales.gelu_out,
                            value_bits(options_.row_scales));
  scales.mlp_residual = post ? residual_scale(Site::kMlpResidual, i) : in_scale;
  block.fc2 = linear(prefix + "mlp.fc2", from.fc2, product_scale(scales.gelu_out, shape_.hidden),
                     {{width, scales.mlp_residual}});
  if (post) {
    block.attention_identity =
        layers_.factor(prefix + "attn.residual: identity", in_scale / scales.attention_residual);
    block.mlp_identity =
        layers_.factor(prefix + "mlp.residual: identity", norm1_scale / scales.mlp_residual);
  }
  return block;
}

}  // namespace systole::model

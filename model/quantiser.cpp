#include "model/quantiser.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "hw/error.h"
#include "hw/integer.h"
#include "model/calibration.h"
#include "model/datapath_metadata.h"
#include "model/float_vit.h"
#include "model/head_link.h"
#include "model/integer_vit_check.h"
#include "model/outlier_folding.h"
#include "model/quantise_layers.h"

namespace systole::model {
namespace {

constexpr double kInputScale = 1.0 / kLargestCode;
/// Logits get 2^15 codes for their calibrated maximum, and two bits more.
constexpr int kLogitMagnitudeBits = 15;
constexpr double kLogitRefinement = 4.0;

void require_range(const char* name, double value, double lowest, double highest) {
  if (value >= lowest && value <= highest) return;
  throw hw::InputError("quantiser: " + std::string(name) + ": " + std::to_string(value) +
                       ", expected " + std::to_string(lowest) + " to " + std::to_string(highest));
}

void check_options(const QuantiserOptions& options) {
  check_datapath(options.datapath);
  require_range("headroom", options.headroom, 1, 1024);
  if (options.outlier_alpha) require_range("outlier alpha", *options.outlier_alpha, 0, 1);
}

class VitQuantiser {
 public:
  VitQuantiser(const VitCheckpoint& checkpoint, const Calibration& calibration,
               const QuantiserOptions& options)
      : checkpoint_(checkpoint),
        calibration_(calibration),
        options_(options),
        layers_(checkpoint.path, options.datapath.multiplier_bits, options.per_channel) {}

  IntegerVit run() const {
    IntegerVit vit;
    vit.shape = checkpoint_.shape;
    vit.encoder.shape = vit.shape.encoder;
    vit.encoder.datapath = options_.datapath;
    // An encoder without outputs is folded.
    vit.encoder.folded_encoders = vit.shape.encoder.latent_heads != 0 &&
                                  checkpoint_.blocks.front().query_link.encoder.outputs == 0;
    vit.encoder.exp_to_code = layers_.exp_to_code(options_.datapath.softmax_bits);
    blocks(vit, embedding(vit));
    return vit;
  }

 private:
  /// Scale of an 8-bit tensor. Any scale serves a site that is always zero.
  static double operand_scale(double largest) {
    return (largest > 0 ? largest : 1.0) / kLargestCode;
  }

  double operand_scale(Site site, std::size_t layer) const {
    return operand_scale(calibration_.largest(site, layer));
  }

  /// Scale of the residual stream at one site, or everywhere if pre-norm.
  double residual_scale(Site site, std::size_t layer) const {
    double largest = calibration_.largest(site, layer);
    if (!checkpoint_.shape.encoder.post_norm) {
      largest = calibration_.largest(Site::kEmbedding);
      for (std::size_t i = 0; i < checkpoint_.blocks.size(); ++i) {
        largest = std::max({largest, calibration_.largest(Site::kAttentionResidual, i),
                            calibration_.largest(Site::kMlpResidual, i)});
      }
    }
    const auto codes = static_cast<double>(hw::symmetric_range(options_.datapath.residual_bits).hi);
    return (largest > 0 ? largest : 1.0) * options_.headroom / codes;
  }

  /// The embedding; returns the scale of the next layer's input if that is an 8-bit tensor.
  double embedding(IntegerVit& vit) const {
    const std::size_t width = vit.shape.encoder.width;
    const hw::IntRange range = hw::symmetric_range(options_.datapath.residual_bits);
    // The position table is a tensor of the stream's type on its own.
    double largest_position = 0;
    for (const double x : checkpoint_.position) {
      largest_position = std::max(largest_position, std::fabs(x));
    }
    const double scale = std::max(residual_scale(Site::kEmbedding, 0),
                                  largest_position / static_cast<double>(range.hi));
    vit.embedding_scale = scale;
    vit.patch_embed = layers_.linear("patch_embed", checkpoint_.patch_embed, kInputScale,
                                     {{vit.shape.encoder.width, scale}});
    for (std::size_t i = 0; i < checkpoint_.position.size(); ++i) {
      const double cls = i < width ? checkpoint_.cls_token[i] : 0.0;
      const double code = std::nearbyint((cls + checkpoint_.position[i]) / scale);
      vit.position.push_back(static_cast<std::int32_t>(
          std::clamp(code, static_cast<double>(range.lo), static_cast<double>(range.hi))));
    }
    if (!vit.shape.encoder.post_norm) return 0.0;
    const double norm_scale = operand_scale(Site::kEmbeddingNorm, 0);
    vit.norm = layers_.layer_norm("norm", checkpoint_.norm, norm_scale);
    return norm_scale;
  }

  /// Everything after the embedding.
  void blocks(IntegerVit& vit, double stream_scale) const {
    const bool post = vit.shape.encoder.post_norm;
    if (!post) stream_scale = vit.embedding_scale;
    for (std::size_t i = 0; i < checkpoint_.blocks.size(); ++i) {
      vit.encoder.blocks.push_back(block(i, stream_scale));
      if (post) stream_scale = vit.encoder.blocks.back().norm2.scale;
    }
    if (!post) {
      stream_scale = operand_scale(Site::kFinalNorm, 0);
      vit.norm = layers_.layer_norm("norm", checkpoint_.norm, stream_scale);
    }
    const double largest = calibration_.largest(Site::kLogits);
    const double step = std::ldexp(largest > 0 ? largest : 1.0, -kLogitMagnitudeBits);
    vit.logit_scale = std::exp2(std::ceil(std::log2(step))) / kLogitRefinement;
    vit.head = layers_.linear("head", checkpoint_.head, stream_scale,
                              {{vit.shape.classes, vit.logit_scale}});
  }

  /// The auto-encoder on Q or K (`operand` is "q" or "k"), on a tensor of `in_scale`.
  IntegerLink link(const std::string& prefix, const std::string& operand, const FloatLink& from,
                   double in_scale, double latent_scale, double scale) const {
    IntegerLink link;
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

  /// Block `i` on a stream of `in_scale`.
  IntegerBlock block(std::size_t i, double in_scale) const;

  const VitCheckpoint& checkpoint_;
  const Calibration& calibration_;
  const QuantiserOptions& options_;
  LayerQuantiser layers_;
};

IntegerBlock VitQuantiser::block(std::size_t i, double in_scale) const {
  const FloatBlock& from = checkpoint_.blocks[i];
  const std::string prefix = "blocks." + std::to_string(i) + ".";
  const EncoderShape& shape = checkpoint_.shape.encoder;
  const std::uint32_t width = shape.width;
  const bool post = shape.post_norm;
  const double norm1_scale = operand_scale(Site::kNorm1, i);
  const double norm2_scale = operand_scale(Site::kNorm2, i);

  IntegerBlock block;
  IntegerBlock::Scales& scales = block.scales;
  block.norm1 = layers_.layer_norm(prefix + "norm1", from.norm1, norm1_scale);
  block.norm2 = layers_.layer_norm(prefix + "norm2", from.norm2, norm2_scale);

  const std::uint32_t query_width = (from.qkv.outputs - width) / 2;
  scales.query = operand_scale(calibration_.largest(Site::kQkv, i, 0, query_width));
  scales.key = operand_scale(calibration_.largest(Site::kQkv, i, query_width, query_width));
  scales.value = operand_scale(calibration_.largest(Site::kQkv, i, 2 * query_width, width));
  block.qkv = layers_.linear(
      prefix + "attn.qkv", from.qkv, post ? in_scale : norm1_scale,
      {{query_width, scales.query}, {query_width, scales.key}, {width, scales.value}});
  double query_scale = scales.query;
  double key_scale = scales.key;
  if (shape.latent_heads != 0) {
    query_scale = operand_scale(Site::kDecodedQuery, i);
    key_scale = operand_scale(Site::kDecodedKey, i);
    block.query_link = link(prefix + "attn.", "q", from.query_link, scales.query,
                            operand_scale(Site::kLatentQuery, i), query_scale);
    block.key_link = link(prefix + "attn.", "k", from.key_link, scales.key,
                          operand_scale(Site::kLatentKey, i), key_scale);
  }
  block.keep = from.keep;
  const double score_scale =
      query_scale * key_scale * std::pow(static_cast<double>(shape.head_width()), -0.5);
  block.score =
      layers_.factor(prefix + "attn.scores", score_scale * std::exp2(double{kScoreFractionBits}));
  scales.context = operand_scale(Site::kContext, i);
  block.context = layers_.factor(
      prefix + "attn.context",
      std::ldexp(scales.value, -context_fraction_bits(options_.datapath)) / scales.context);

  scales.attention_residual = post ? residual_scale(Site::kAttentionResidual, i) : in_scale;
  block.proj = layers_.linear(prefix + "attn.proj", from.proj, scales.context,
                              {{width, scales.attention_residual}});
  const double mlp_in = post ? norm1_scale : norm2_scale;
  scales.gelu_in = operand_scale(Site::kGeluIn, i);
  scales.gelu_out = operand_scale(Site::kGeluOut, i);
  block.fc1 =
      layers_.linear(prefix + "mlp.fc1", from.fc1, mlp_in, {{shape.hidden, scales.gelu_in}});
  block.gelu = layers_.gelu(prefix + "mlp.gelu", scales.gelu_in, scales.gelu_out);
  scales.mlp_residual = post ? residual_scale(Site::kMlpResidual, i) : in_scale;
  block.fc2 =
      layers_.linear(prefix + "mlp.fc2", from.fc2, scales.gelu_out, {{width, scales.mlp_residual}});
  if (post) {
    block.attention_identity =
        layers_.factor(prefix + "attn.residual: identity", in_scale / scales.attention_residual);
    block.mlp_identity =
        layers_.factor(prefix + "mlp.residual: identity", norm1_scale / scales.mlp_residual);
  }
  return block;
}

}  // namespace

IntegerVit quantise(const VitCheckpoint& checkpoint, const Dataset& calibration,
                    const QuantiserOptions& options) {
  check_options(options);
  if (calibration.count == 0) throw hw::InputError("quantiser: no calibration pictures");
  VitCheckpoint folded = options.fold_encoders ? fold_encoders(checkpoint) : checkpoint;
  Calibration maxima = calibrate(FloatVit(folded), calibration);
  if (options.outlier_alpha) {
    folded = fold_outliers(folded, maxima, *options.outlier_alpha);
    maxima = calibrate(FloatVit(folded), calibration);
  }
  IntegerVit vit = VitQuantiser(folded, maxima, options).run();
  vit.name = std::filesystem::path(checkpoint.path).stem().string();
  vit.source = "quantised from " + vit.name + ", " + std::to_string(calibration.count) +
               " calibration pictures";
  check_integer_vit(vit, checkpoint.path);
  return vit;
}

}  // namespace systole::model

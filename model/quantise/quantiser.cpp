#include "model/quantise/quantiser.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "model/float/float_seq2seq.h"
#include "model/float/float_text.h"
#include "model/float/float_vit.h"
#include "model/integer/head_mix.h"
#include "model/integer/integer_vit_check.h"
#include "model/quantise/block_quantiser.h"

namespace systole::model {
namespace {

/// Logits get 2^15 codes for their calibrated maximum, and two bits more.
constexpr int kLogitMagnitudeBits = 15;
constexpr double kLogitRefinement = 4.0;

double logit_scale(const Calibration& calibration) {
  const double largest = calibration.largest(Site::kLogits);
  const double step = std::ldexp(largest > 0 ? largest : 1.0, -kLogitMagnitudeBits);
  return std::exp2(std::ceil(std::log2(step))) / kLogitRefinement;
}

/// The head of a text network whose states have steps of `scale`.
IntegerTextHead head_constants(const FloatTextHead& real, const BlockQuantiser& quantiser,
                               const Calibration& calibration, double scale,
                               unsigned multiplier_bits) {
  const LayerQuantiser& layers = quantiser.layers();
  IntegerTextHead head;
  head.function = real.function;
  head.pooled_scale = 1.0 / kLargestCode;
  double dense_scale = kTanhInputScale;
  if (real.function == HeadFunction::kTanh) {
    const hw::TanhConstants tanh = hw::make_tanh_constants(kTanhInputScale, head.pooled_scale,
                                                           multiplier_bits, kTanhFractionBits);
    head.argument = tanh.argument;
    head.output = tanh.output;
    head.fraction_bits = kTanhFractionBits;
  } else {
    head.pooled_scale = dense_scale = quantiser.operand_scale(Site::kPooled, 0);
  }
  head.dense =
      layers.linear("pooler", real.dense, quantiser.product_scale(scale, real.dense.inputs),
                    {{real.dense.outputs, dense_scale}});
  head.logit_scale = logit_scale(calibration);
  head.classes = layers.linear("head", real.classes, head.pooled_scale,
                               {{real.classes.outputs, head.logit_scale}});
  return head;
}

IntegerVit vit_constants(const VitCheckpoint& checkpoint, const Calibration& calibration,
                         const QuantiserOptions& options) {
  const EncoderShape& shape = checkpoint.shape.encoder;
  const BlockQuantiser quantiser(checkpoint.path, shape, checkpoint.blocks, calibration, options);
  const LayerQuantiser& layers = quantiser.layers();
  IntegerVit vit;
  vit.shape = checkpoint.shape;
  vit.encoder = quantiser.empty_encoder();
  vit.embedding_scale = quantiser.embedding_scale({&checkpoint.position});
  vit.patch_embed = layers.linear("patch_embed", checkpoint.patch_embed, 1.0 / kInputSteps,
                                  {{shape.width, vit.embedding_scale}});
  std::vector<double> position = checkpoint.position;
  for (std::size_t i = 0; i < shape.width; ++i) {
    position[i] = checkpoint.cls_token[i] + checkpoint.position[i];
  }
  vit.position = quantiser.stream_codes(position, vit.embedding_scale);

  double scale = vit.embedding_scale;
  if (shape.post_norm) {
    scale = quantiser.operand_scale(Site::kEmbeddingNorm, 0);
    vit.norm = layers.layer_norm("norm", checkpoint.norm, scale);
  }
  scale = quantiser.append_blocks(vit.encoder, scale);
  if (!shape.post_norm) {
    scale = quantiser.operand_scale(Site::kFinalNorm, 0);
    vit.norm = layers.layer_norm("norm", checkpoint.norm, scale);
  }
  vit.logit_scale = logit_scale(calibration);
  vit.head =
      layers.linear("head", checkpoint.head, scale, {{checkpoint.shape.classes, vit.logit_scale}});
  return vit;
}

IntegerText text_constants(const TextCheckpoint& checkpoint, const Calibration& calibration,
                           const QuantiserOptions& options, double memory_scale = 0.0) {
  const EncoderShape& shape = checkpoint.shape.encoder;
  const BlockQuantiser quantiser(checkpoint.path, shape, checkpoint.blocks, calibration, options,
                                 memory_scale);
  IntegerText text;
  text.shape = checkpoint.shape;
  text.encoder = quantiser.empty_encoder();
  text.embedding_scale =
      quantiser.embedding_scale({&checkpoint.word, &checkpoint.position, &checkpoint.token_type});
  text.word = quantiser.stream_codes(checkpoint.word, text.embedding_scale);
  text.position = quantiser.stream_codes(checkpoint.position, text.embedding_scale);
  if (text.shape.token_types > 1) {
    text.token_type = quantiser.stream_codes(checkpoint.token_type, text.embedding_scale);
  }
  const double norm_scale =
      quantiser.wide_scale(shape.post_norm ? Site::kEmbeddingNorm : Site::kFinalNorm, 0);
  text.norm = quantiser.layers().layer_norm("norm", checkpoint.norm, norm_scale);
  const double scale =
      quantiser.append_blocks(text.encoder, shape.post_norm ? norm_scale : text.embedding_scale);
  if (checkpoint.head) {
    text.head =
        head_constants(*checkpoint.head, quantiser, calibration,
                       shape.post_norm ? scale : norm_scale, options.datapath.multiplier_bits);
  }
  return text;
}

void require_no_folding(const std::string& path, const QuantiserOptions& options) {
  if (!options.outlier_alpha && !options.fold_encoders) return;
  throw hw::InputError(path + ": folding of outliers and encoders: of vision models alone");
}

void require_no_row_scales(const std::string& path, const QuantiserOptions& options) {
  if (!options.row_scales) return;
  throw hw::InputError(path + ": scales of each row: of BERT and GPT-2 alone");
}

void fold_outlier_channels(FloatNorm& norm, FloatLinear& reader,
                           const std::vector<double>& activations, double alpha) {
  for (std::size_t j = 0; j < reader.inputs; ++j) {
    double largest_weight = 0;
    for (std::size_t o = 0; o < reader.outputs; ++o) {
      largest_weight = std::max(largest_weight, std::fabs(reader.weight[o * reader.inputs + j]));
    }
    if (activations[j] == 0 || largest_weight == 0) continue;
    const double factor = std::pow(activations[j], alpha) / std::pow(largest_weight, 1.0 - alpha);
    norm.weight[j] /= factor;
    norm.bias[j] /= factor;
    for (std::size_t o = 0; o < reader.outputs; ++o) {
      reader.weight[o * reader.inputs + j] *= factor;
    }
  }
}

}  // namespace

VitCheckpoint fold_outliers(const VitCheckpoint& checkpoint, const Calibration& calibration,
                            double alpha) {
  if (checkpoint.shape.encoder.post_norm) {
    throw hw::InputError(checkpoint.path +
                         ": outlier folding: the network is post-norm, expected pre-norm (the "
                         "residual path reads the norms with one scale for all channels)");
  }
  VitCheckpoint folded = checkpoint;
  for (std::size_t i = 0; i < folded.blocks.size(); ++i) {
    FloatBlock& block = folded.blocks[i];
    fold_outlier_channels(block.norm1, block.qkv, calibration.channels(Site::kNorm1, i), alpha);
    fold_outlier_channels(block.norm2, block.fc1, calibration.channels(Site::kNorm2, i), alpha);
  }
  fold_outlier_channels(folded.norm, folded.head, calibration.channels(Site::kFinalNorm, 0), alpha);
  return folded;
}

IntegerVit quantise(const VitCheckpoint& checkpoint, const Dataset& calibration,
                    const QuantiserOptions& options) {
  check_options(options);
  if (calibration.count == 0) throw hw::InputError("quantiser: no calibration pictures");
  require_no_row_scales(checkpoint.path, options);
  // Networks are large: a copy only where one is changed.
  std::optional<VitCheckpoint> folded;
  const auto current = [&]() -> const VitCheckpoint& { return folded ? *folded : checkpoint; };
  if (options.fold_encoders) folded = fold_encoders(checkpoint);
  Calibration maxima = calibrate(FloatVit(current()), calibration);
  if (options.outlier_alpha) {
    folded = fold_outliers(current(), maxima, *options.outlier_alpha);
    maxima = calibrate(FloatVit(current()), calibration);
  }
  IntegerVit vit = vit_constants(current(), maxima, options);
  vit.name = std::filesystem::path(checkpoint.path).stem().string();
  vit.source = "quantised from " + vit.name + ", " + std::to_string(calibration.count) +
               " calibration pictures";
  check_integer_vit(vit, checkpoint.path);
  return vit;
}

IntegerText quantise(const TextCheckpoint& checkpoint, const TokenIds& calibration,
                     const QuantiserOptions& options) {
  check_options(options);
  require_no_folding(checkpoint.path, options);
  Calibration maxima;
  const FloatText real(checkpoint);
  for (std::size_t i = 0; i < calibration.count; ++i) {
    // Nothing reads what padding gives: it must not widen the scales.
    const TokenText text = calibration.text(i).trimmed();
    if (checkpoint.head) {
      static_cast<void>(real.logits(text.ids, &maxima, text.types));
    } else {
      static_cast<void>(real.hidden(text.ids, &maxima, text.types));
    }
  }
  IntegerText text = text_constants(checkpoint, maxima, options);
  text.name = std::filesystem::path(checkpoint.path).stem().string();
  text.source = "quantised from " + text.name + ", " + std::to_string(calibration.count) +
                " calibration texts";
  check_integer_text(text, checkpoint.path);
  return text;
}

IntegerSeq2Seq quantise(const Seq2SeqCheckpoint& checkpoint, const TextPairs& calibration,
                        const QuantiserOptions& options) {
  check_options(options);
  require_no_folding(checkpoint.path, options);
  require_no_row_scales(checkpoint.path, options);
  Calibration encoder, decoder;
  const FloatSeq2Seq real(checkpoint);
  for (std::size_t i = 0; i < calibration.source.count; ++i) {
    static_cast<void>(real.logits(calibration.source.text(i).trimmed().ids,
                                  calibration.target.text(i).trimmed().ids, {&encoder, &decoder}));
  }
  IntegerSeq2Seq network;
  network.encoder = text_constants(checkpoint.encoder, encoder, options);
  network.decoder = text_constants(checkpoint.decoder, decoder, options,
                                   network.encoder.encoder.blocks.back().norm2.scale);
  network.logit_scale = logit_scale(decoder);
  const LayerQuantiser layers(checkpoint.path, options.datapath.multiplier_bits,
                              options.per_channel);
  network.output = layers.linear("output", checkpoint.output, network.decoder.norm.scale,
                                 {{checkpoint.output.outputs, network.logit_scale}});
  network.tokens = checkpoint.tokens;
  network.name = std::filesystem::path(checkpoint.path).stem().string();
  network.source = "quantised from " + network.name + ", " +
                   std::to_string(calibration.source.count) + " calibration texts";
  check_integer_seq2seq(network, checkpoint.path);
  return network;
}

}  // namespace systole::model

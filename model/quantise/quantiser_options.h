#pragma once

#include <optional>

#include "hw/machine/machine.h"
#include "hw/number/weight_groups.h"

namespace systole::model {

/// Of weights that are neither of these.
inline constexpr unsigned kWeightBits = 8;
/// Of int4 weights, one scale for all inputs of an output (hw/number/int4.h).
inline constexpr unsigned kInt4WeightBits = 4;

struct QuantiserOptions {
  /// In the ranges of a machine file.
  hw::Machine::Datapath datapath;
  /// A weight scale per output channel; otherwise one per matrix (query, key and value count as
  /// three).
  bool per_channel = true;
  /// Fold outliers of the LayerNorm outputs into the weights first (fold_outliers()): 0 to 1,
  /// usually 0.5. Pre-norm networks only.
  std::optional<double> outlier_alpha;
  /// Fold the encoders of an auto-encoder into the projections before them
  /// (model/integer/head_mix.h).
  bool fold_encoders = false;
  /// Room of the residual stream above its calibrated maximum: 1 to 1024.
  double headroom = 1.25;
  /// Of a network of texts: inputs of products have a scale of each row, as those of Llamas always
  /// have (IntegerEncoder::row_scales).
  bool row_scales = false;
  /// Of the blocks, or of all layers but the first and the last of a convolutional network: 8 or 4.
  /// int4 with the scales of weights of 8. Llamas have `weight_format` instead.
  unsigned weight_bits = kWeightBits;
  /// Of the blocks of a Llama.
  hw::WeightFormat weight_format = hw::WeightFormat::kInt8;
  /// Of a convolutional network with int4 weights: 8, or 4 for what layers by these alone read.
  unsigned activation_bits = kWeightBits;
};

}  // namespace systole::model

#pragma once

#include <optional>
#include <string>

#include "hw/machine.h"
#include "model/dataset.h"
#include "model/integer_vit.h"
#include "model/vit_checkpoint.h"

namespace systole::model {

struct QuantiserOptions {
  /// In the ranges of a machine file.
  hw::Machine::Datapath datapath;
  /// A weight scale per output channel; otherwise one per matrix (query, key and value count as
  /// three).
  bool per_channel = true;
  /// Fold outliers of the LayerNorm outputs into the weights first (model/outlier_folding.h): 0 to
  /// 1, usually 0.5. Pre-norm networks only.
  std::optional<double> outlier_alpha;
  /// Fold the encoders of an auto-encoder into the projections in front of them
  /// (model/head_link.h).
  bool fold_encoders = false;
  /// Room of the residual stream above its calibrated maximum: 1 to 1024.
  double headroom = 1.25;
};

/// Integer constants for every layer, by post-training quantisation:
/// - scale of an 8-bit tensor: calibrated maximum / 127; of the residual stream: maximum times
///   headroom over the largest code, one scale for the whole of a pre-norm network and one per
///   addition in a post-norm one;
/// - weights: largest magnitude / 127; bias: bias / (weight scale * input scale), all rounded half
///   to even. A weight scale is coarsened where the bias would leave the int32 accumulator;
/// - logits: a power of two, so that codes of different inputs compare, about 18 bits.
///
/// The result depends on the arguments alone: all sums run in a fixed order. Throws InputError,
/// with layer and quantity, for what the datapath cannot represent, options out of range or of
/// which the network has nothing, pictures of another size, and an empty calibration set.
[[nodiscard]] IntegerVit quantise(const VitCheckpoint& checkpoint, const Dataset& calibration,
                                  const QuantiserOptions& options = {});

}  // namespace systole::model

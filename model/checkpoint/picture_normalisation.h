#pragma once

#include <cstdint>
#include <vector>

#include "model/checkpoint/float_layers.h"

namespace systole::model {

/// A network reads the bytes x of channel c as (x * rescale - mean[c]) / deviation[c].
struct PictureNormalisation {
  double rescale = 1.0 / 255.0;
  std::vector<double> mean, deviation;  ///< per channel
};

/// Folds it into the patch embedding, which then reads the codes of bytes (model/data/image.h) in
/// steps of 1 / kInputSteps. Its inputs are channels of patch x patch samples.
void fold_normalisation(const PictureNormalisation& normalisation, FloatLinear& patch_embed,
                        std::uint32_t patch);

}  // namespace systole::model

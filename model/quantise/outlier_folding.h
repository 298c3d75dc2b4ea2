#pragma once

#include "model/checkpoint/vit_checkpoint.h"
#include "model/quantise/calibration.h"

namespace systole::model {

/// Moves outliers from the channels of the LayerNorm outputs into the weights of the layer that
/// reads them (qkv, fc1, head): channel j of the norm is divided by, and column j of the weights
/// multiplied with, s_j = max|x_j|^alpha / max|w_j|^(1 - alpha) (SmoothQuant, arXiv 2211.10438).
/// The network computes the same function; 8 bits then represent its activations better. `alpha`
/// is 0 to 1; a channel that is never active or never read stays as it is.
///
/// Throws InputError for a post-norm network: its norms also feed the residual path, which has one
/// scale for all channels.
[[nodiscard]] VitCheckpoint fold_outliers(const VitCheckpoint& checkpoint,
                                          const Calibration& calibration, double alpha);

}  // namespace systole::model

#include "model/quantise/outlier_folding.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace systole::model {
namespace {

void fold(FloatNorm& norm, FloatLinear& reader, const std::vector<double>& activations,
          double alpha) {
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
    fold(block.norm1, block.qkv, calibration.channels(Site::kNorm1, i), alpha);
    fold(block.norm2, block.fc1, calibration.channels(Site::kNorm2, i), alpha);
  }
  fold(folded.norm, folded.head, calibration.channels(Site::kFinalNorm, 0), alpha);
  return folded;
}

}  // namespace systole::model

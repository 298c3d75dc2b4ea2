#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/number/weight_groups.h"
#include "model/checkpoint/llama_checkpoint.h"

namespace systole::model {

/// What rounding costs one layer: power of the error of its outputs over that of the outputs, if
/// nothing but that layer's weights, or its inputs, were rounded.
struct LayerLoss {
  std::string name;      ///< "blocks.3.mlp.down"
  double weights = 0.0;  ///< rounded to s8, a scale per output, or to groups
  double inputs = 0.0;   ///< s8, a scale of each row; of `proj` one scale throughout

  [[nodiscard]] double total() const { return weights + inputs; }
};

/// Of every linear layer on a text, in the order of the network. `llama` is what is rounded: with
/// outliers folded. `format`: of all but the logits, which have int8. Throws
/// std::invalid_argument for an id outside the vocabulary.
[[nodiscard]] std::vector<LayerLoss> llama_losses(const LlamaCheckpoint& llama,
                                                  const std::vector<std::int32_t>& text,
                                                  hw::WeightFormat format);

}  // namespace systole::model

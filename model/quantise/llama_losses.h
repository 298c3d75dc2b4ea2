#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/checkpoint/llama_checkpoint.h"

namespace systole::model {

/// What rounding costs one layer: power of the error of its outputs over that of the outputs, if
/// nothing but that layer's weights, or its inputs, were rounded.
struct LayerLoss {
  std::string name;      ///< "blocks.3.mlp.down"
  double weights = 0.0;  ///< s8, a scale per output, or of these the nearest of four bits
  double inputs = 0.0;   ///< s8, a scale of each row; of `proj` one scale throughout

  [[nodiscard]] double total() const { return weights + inputs; }
};

/// Of every linear layer on a text, in the order of the network. `llama` is what is rounded: with
/// outliers folded. `weight_bits`: 8, or 4 in groups, of which the logits have none. Throws
/// std::invalid_argument for an id outside the vocabulary.
[[nodiscard]] std::vector<LayerLoss> llama_losses(const LlamaCheckpoint& llama,
                                                  const std::vector<std::int32_t>& text,
                                                  unsigned weight_bits);

}  // namespace systole::model

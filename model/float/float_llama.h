#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/checkpoint/llama_checkpoint.h"

namespace systole::model {

/// Places of a Llama where values become integers. `layer` is that of the block, 0 for the others.
enum class LlamaSite {
  kStream,  ///< residual stream, wherever it is written
  kNorm1,
  kNorm2,
  kFinalNorm,
  kQueryIn,  ///< before a norm of each head
  kKeyIn,
  kQuery,  ///< before and after the rotation
  kKey,    ///< likewise
  kValue,
  kContext,
  kGate,
  kSilu,  ///< or GELU
  kUp,
  kProduct,  ///< input of `down`; of an expert before its share
  kRouter,
  kLogits,
};

/// Is given rows x cols values at a site.
using LlamaObserver = std::function<void(LlamaSite site, std::size_t layer, const float* values,
                                         std::size_t rows, std::size_t cols)>;

/// Logits [tokens, vocabulary] after each token of a text, in float32. Throws std::invalid_argument
/// for an id outside the vocabulary. `progress` is given the layers done after each.
[[nodiscard]] std::vector<float> llama_logits(
    const LlamaCheckpoint& llama, const std::vector<std::int32_t>& ids,
    const LlamaObserver& observe = {}, const std::function<void(std::size_t)>& progress = {});

}  // namespace systole::model

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/checkpoint/float_layers.h"
#include "model/metadata/llama_shape.h"
#include "model/network/network_document.h"

namespace systole::model {

/// y = W x + bias.
struct LlamaLinear {
  std::uint32_t inputs = 0, outputs = 0;
  std::vector<float> weight;  ///< [outputs, inputs]
  std::vector<float> bias;    ///< [outputs], or empty
};

/// One of the MLPs of a block.
struct FloatExpert {
  LlamaLinear gate, up, down;
};

struct FloatLlamaBlock {
  std::vector<float> norm1, norm2;  ///< [width]
  /// Head after head; neighbouring features of queries and keys make a pair that RoPE turns.
  LlamaLinear query, key, value;
  std::vector<float> query_norm,
      key_norm;  ///< [head width], or empty; of neighbouring features too
  LlamaLinear proj, gate, up, down;
  /// Where the shape has experts, in place of `gate`, `up` and `down`.
  LlamaLinear router;
  std::vector<FloatExpert> experts;
};

/// Real-valued weights of a Llama, in float32: it has twice the precision of any published file.
struct LlamaCheckpoint {
  std::string path, name;
  LlamaShape shape;
  double norm_epsilon = 0.0;        ///< added to the mean of squares by every RMSNorm
  GeluForm gelu = GeluForm::kTanh;  ///< of the gates, if the shape has it
  std::vector<float> word;          ///< [vocabulary, width]
  double word_factor = 1.0;         ///< of rows of `word` on their way into the first block
  std::vector<FloatLlamaBlock> blocks;
  std::vector<float> norm;  ///< [width]
  LlamaLinear output;       ///< without weights if tied: it is `word`

  [[nodiscard]] const std::vector<float>& output_weight() const {
    return shape.tied ? word : output.weight;
  }
};

/// Whether the network has an operator that Llamas alone have.
[[nodiscard]] bool is_llama(const NetworkDocument& document);

/// Throws InputError for a network of integers, and that names the node where the graph is not that
/// of a Llama (docs/network-format.md).
[[nodiscard]] LlamaCheckpoint read_llama_checkpoint(const NetworkFile& file);

}  // namespace systole::model

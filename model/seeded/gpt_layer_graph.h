#pragma once

#include <cstdint>

#include "hw/machine/machine.h"
#include "model/graph/graph.h"

namespace systole::model {

/// Sizes of a GPT-2 layer that computes the last `tokens` of `context` tokens.
struct GptLayerShape {
  std::uint32_t width = 0;  ///< d; the feed-forward network has 4 d
  std::uint32_t heads = 0;
  std::uint32_t context = 0;  ///< at least `tokens`; those before are in caches of zeros
  std::uint32_t tokens = 0;
  /// Before the layer the positions are added to its input: what leaves the sums of the rows
  /// for the first LayerNorm, as the layer before would.
  bool embedding = false;
  /// The scores of the softmax are to be seen afterwards: they have to be in memory.
  bool keeps_scores = false;
};

/// The layer with every operator by itself, as a library without fused operators runs it: each
/// reads int8 and writes int8, and rounding to it is a part of the operator. There are 18: norm1,
/// attn.qkv, attn.qkv.bias, of each head attn.headH.scores, attn.headH.scale, attn.headH.mask,
/// attn.headH.softmax and attn.headH.context; attn.proj, attn.proj.bias, attn.residual, norm2,
/// mlp.fc1, mlp.fc1.bias, mlp.gelu, mlp.fc2, mlp.fc2.bias, mlp.residual. What rounds an operator's
/// result has a suffix more (".requantise", ".clamp"). Input "tokens", s8 [tokens x width]; output
/// "mlp.residual". Softmax normalises its rows; the mask is causal.
///
/// Weights are seeded and mean nothing; `shape_only` leaves them out, for runs without values.
/// Throws InputError for sizes that do not go together.
[[nodiscard]] Graph make_gpt_layer_graph(const GptLayerShape& shape,
                                         const hw::Machine::Datapath& datapath, std::uint64_t seed,
                                         bool shape_only);

}  // namespace systole::model

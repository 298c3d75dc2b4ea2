#pragma once

#include <cstdint>
#include <vector>

#include "hw/function/rope.h"

namespace systole::model {

/// Of a network that does not say how many it has.
inline constexpr std::uint32_t kMostLlamaPositions = 1U << 17;

/// A decoder as Llama has it (Touvron et al., arXiv 2302.13971): RMSNorm, rotary positions, SwiGLU,
/// and heads that share keys and values (Ainslie et al., arXiv 2305.13245). All counts are positive
/// unless said otherwise; `kv_heads` divides `heads`, and `head_width` is even.
struct LlamaShape {
  std::uint32_t layers = 0;
  std::uint32_t width = 0;  ///< of the residual stream
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;  ///< heads of keys and values; query head h reads h / group()
  std::uint32_t head_width = 0;
  std::uint32_t hidden = 0;  ///< of the MLP
  std::uint32_t vocabulary = 0;
  std::uint32_t positions = 0;
  /// A token attends to itself and to so many less one before it; 0: to all before it.
  std::uint32_t window = 0;
  double rope_base = 10000;
  bool qkv_bias = false;  ///< queries, keys and values have a bias (Qwen2)
  bool tied = true;       ///< the table of words is also the output matrix
  /// MLPs of a block, of which a token goes to `active_experts`; 0: one MLP for all.
  std::uint32_t experts = 0, active_experts = 0;
  bool gelu = false;  ///< gates pass GELU in place of SiLU (Gemma)
  /// Queries and keys pass an RMSNorm, head by head, before they are turned (Qwen3).
  bool head_norms = false;
  /// Radians by which each pair of a head turns from a position to the next; empty: those of
  /// `rope_base`.
  std::vector<double> rope_frequencies = {};

  [[nodiscard]] std::uint32_t query_width() const { return heads * head_width; }
  [[nodiscard]] std::uint32_t kv_width() const { return kv_heads * head_width; }
  /// Those of RoPE, [head_width / 2].
  [[nodiscard]] std::vector<double> frequencies() const {
    return rope_frequencies.empty() ? hw::rope_frequencies(head_width, rope_base)
                                    : rope_frequencies;
  }
  /// Query heads that share a head of keys and values.
  [[nodiscard]] std::uint32_t group() const { return heads / kv_heads; }
};

}  // namespace systole::model

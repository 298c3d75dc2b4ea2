#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/mask/attention_mask.h"

namespace systole::testbench {

/// Seconds that core attention takes on this computer: Q K^T, softmax and the product with V of
/// every layer and head, in float32, on one thread; the fastest of several runs. Operands are
/// random; K and V are packed as the product reads them, which is part of the time.
struct HostAttention {
  double dense = 0.0;  ///< all cells
  double kept = 0.0;   ///< a loop over the cells that the mask keeps
};
/// `dim`: features of Q, K and V in a head.
[[nodiscard]] HostAttention measure_host_attention(const model::AttentionMask& mask,
                                                   std::size_t dim);

/// The same head by both ways, for tests: outputs [queries, dim] of `mask`'s head for seeded
/// operands.
struct HostOutputs {
  std::vector<float> dense, kept;
};
[[nodiscard]] HostOutputs host_outputs(const model::AttentionMask& mask, std::size_t layer,
                                       std::size_t head, std::size_t dim);

/// What the operating system calls this computer's processor; "unknown CPU" if it does not say.
[[nodiscard]] std::string cpu_name();

}  // namespace systole::testbench

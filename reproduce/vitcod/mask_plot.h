#pragma once

#include <string>

#include "model/mask/attention_mask.h"
#include "testbench/attention/head_split.h"
#include "testbench/report/plot.h"

namespace systole::testbench {

/// Draws every head, layers from left to right and heads from top to bottom: above in the order of
/// the tokens, below with the global columns in front. At most kMaxDrawnHeads by kMaxDrawnLayers,
/// and of long heads every so manieth row and column.
[[nodiscard]] Plot mask_plot(std::string file, const std::string& title,
                             const model::AttentionMask& mask, const SplitLayers& layers);

inline constexpr std::size_t kMaxDrawnLayers = 12, kMaxDrawnHeads = 6;

}  // namespace systole::testbench

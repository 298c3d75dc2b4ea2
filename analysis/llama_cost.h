#pragma once

#include <cstdint>
#include <vector>

#include "analysis/operator_cost.h"
#include "model/metadata/llama_shape.h"

namespace systole::analysis {

/// FLOPs and memory operations of a Llama on a prompt of `length` tokens at once, counted as
/// analysis/transformer_cost.h does: elements of one byte, no fusion, each operand moved once. Keys
/// and values are moved once for all heads that share them; all scores are computed, with a window
/// too, which only masks them. The product with the table of words is that of the last token.
[[nodiscard]] std::vector<OperatorCost> llama_costs(const model::LlamaShape& shape,
                                                    std::uint32_t length);

}  // namespace systole::analysis

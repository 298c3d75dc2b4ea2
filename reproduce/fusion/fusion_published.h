#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "reproduce/fusion/fusion_runs.h"
#include "reproduce/result_row.h"

/// What is known of fusion, and what follows from the operators themselves.
namespace systole::testbench {

/// Activation elements of a GPT-2 layer per token: d of the width, hc of heads times context.
struct GptLayerForm {
  std::uint64_t passes, d, hc;
  [[nodiscard]] std::uint64_t elements(std::uint64_t width, std::uint64_t heads,
                                       std::uint64_t context) const {
    return d * width + hc * heads * context;
  }
};
/// In the order of kFusionStepNames, with a softmax of its own.
inline constexpr std::array<GptLayerForm, kFusionSteps> kGptLayerForms = {
    {{18, 54, 8}, {9, 24, 4}, {7, 20, 4}}};
/// With a softmax behind the scores as well: probabilities are written and read.
inline constexpr GptLayerForm kFusedSoftmaxForm = {6, 20, 2};
/// With all of a head's attention in one pass: scores stay on chip.
inline constexpr GptLayerForm kFusedAttentionForm = {5, 20, 0};

/// A single figure by key. Throws std::invalid_argument if there is none.
[[nodiscard]] const Published& fusion_published(std::string_view key);

/// A number that follows from the operators: to be met exactly.
[[nodiscard]] Published follows(double value, std::string_view unit);

}  // namespace systole::testbench

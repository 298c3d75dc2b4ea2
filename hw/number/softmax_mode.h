#pragma once

namespace systole::hw {

/// How a softmax row is normalised (hw/function/softmax.h).
enum class SoftmaxMode {
  kDeferred,  ///< unnormalised codes; the product with V is divided by the row sum afterwards
  kNormalisedFloor,  ///< I-BERT: code = floor(exp * floor(2^f / sum) / 2^(f - bits))
  kNormalisedRound   ///< the same, the last shift rounded half up
};

/// Fraction bits of a softmax argument (a score minus its row's maximum).
inline constexpr unsigned kScoreFractionBits = 8;

}  // namespace systole::hw

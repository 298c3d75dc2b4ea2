#pragma once

#include <cmath>
#include <cstdint>

#include "hw/number/integer.h"

/// Products whose rows have their own scales: s8 codes of a row (hw/function/row_scale.h), whose
/// results are multiplied with the row's peak.
namespace systole::model {

/// Width of values that become codes of their rows, and of what functions of s16 read.
inline constexpr unsigned kWideBits = 16;
/// Width of what LayerNorms and GELUs give, and GELUs read, where rows have scales or not.
[[nodiscard]] constexpr unsigned value_bits(bool row_scales) { return row_scales ? kWideBits : 8; }
/// Largest magnitude of a code.
inline constexpr unsigned kLargestRowCode = 127;

/// A product of `inputs` codes of a row with its own scale is multiplied with the peak of the row,
/// a magnitude of less than 2^(bits - 1), and divided by two to the power of this: the least one
/// that keeps every result within s32.
[[nodiscard]] constexpr unsigned row_scale_shift(std::uint32_t inputs, unsigned bits) {
  constexpr std::uint64_t kLargestProduct = kLargestRowCode * kLargestRowCode;
  constexpr unsigned kResultBits = 31;
  const unsigned needed = hw::bit_length(kLargestProduct * inputs) + bits - 1;
  return needed > kResultBits ? needed - kResultBits : 0;
}

/// Real value of a step of such a product, after that shift and for weights in steps of 1. The
/// codes are those of values of `bits` bits in steps of `wide`.
[[nodiscard]] inline double row_product_scale(double wide, std::uint32_t inputs, unsigned bits) {
  return std::ldexp(wide / double{kLargestRowCode},
                    static_cast<int>(row_scale_shift(inputs, bits)));
}

}  // namespace systole::model

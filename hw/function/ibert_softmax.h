#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hw/function/softmax.h"
#include "hw/number/dyadic.h"
#include "hw/number/int_exp.h"
#include "hw/number/integer.h"

/// Softmax of the released I-BERT code: the exponential is requantised to 16 bits before the sum.
/// Masks and rows without a kept cell are treated as in hw/function/softmax.h.
namespace systole::hw {

struct IBertSoftmaxConstants {
  IBertExpConstants exp;
  Dyadic exp_to_code;  ///< 31-bit multiplier; the shift refers to polynomial * 2^30
};

/// Exponential of score minus maximum (<= 0) as a 16-bit code, round half to even. The shift left
/// by 30 of the definition is folded into the right shift, so no 66-bit value is ever formed.
constexpr std::uint32_t ibert_softmax_exponential(std::int64_t difference,
                                                  const IBertSoftmaxConstants& constants) {
  constexpr Int128 kHighest = 32767;
  const IBertExp exp = ibert_exp(difference, constants.exp);
  const Int128 product = Int128{exp.polynomial} * constants.exp_to_code.multiplier;
  const int shift = constants.exp_to_code.shift - kIBertExpHalvings + exp.halvings;
  if (shift <= 0) {
    // Here a step of the polynomial is a whole code or more; 15 shifts saturate any product.
    return static_cast<std::uint32_t>(std::min(product << std::min(-shift, 15), kHighest));
  }
  const int bounded = std::min(shift, 126);
  const Int128 floor = product >> bounded;
  const Int128 rest = product - (floor << bounded);
  const Int128 half = Int128{1} << (bounded - 1);
  const bool up = rest > half || (rest == half && (floor & 1) != 0);
  return static_cast<std::uint32_t>(std::min(floor + (up ? 1 : 0), kHighest));
}

/// floor(e16 * floor(2^32 / sum) / 2^24). Fits 8 bits, except that a one-hot row whose only
/// exponential is a power of two gives 256.
constexpr std::uint32_t ibert_softmax_code(std::uint32_t exponential, std::uint64_t sum) {
  const std::uint64_t factor = (std::uint64_t{1} << 32) / sum;
  return static_cast<std::uint32_t>((exponential * factor) >> 24);
}

/// One row: n exponentials to `exponentials`, n codes of scale 1/256 to `codes`.
inline void ibert_softmax_row(const std::int32_t* scores, const std::uint8_t* keep, std::size_t n,
                              const IBertSoftmaxConstants& constants, std::uint16_t* exponentials,
                              std::uint16_t* codes) {
  const std::int64_t maximum = softmax_maximum(scores, keep, n);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool kept = keep == nullptr || keep[i] != 0;
    exponentials[i] = static_cast<std::uint16_t>(
        kept ? ibert_softmax_exponential(scores[i] - maximum, constants) : 0);
    sum += exponentials[i];
  }
  for (std::size_t i = 0; i < n; ++i) {
    codes[i] = static_cast<std::uint16_t>(sum == 0 ? 0 : ibert_softmax_code(exponentials[i], sum));
  }
}

}  // namespace systole::hw

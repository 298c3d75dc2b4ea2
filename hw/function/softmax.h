#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "hw/number/dyadic.h"
#include "hw/number/int_exp.h"
#include "hw/number/integer.h"
#include "hw/number/softmax_mode.h"

/// Integer softmax of one row of scores.
///
/// A cell takes part if `keep` is null or its byte is not zero. A masked cell enters neither the
/// maximum nor the sum, and its output is 0. A row without any kept cell is all zeros with sum 1,
/// so that a later division by the sum is defined and attention yields 0.
namespace systole::hw {

struct SoftmaxConstants {
  SoftmaxMode mode;
  Dyadic score;  ///< score minus row maximum -> argument of scale 2^-F; not negative
  IntExpConstants exp;
  Dyadic exp_to_code;  ///< deferred mode: (2^bits - 1) / value at zero
  unsigned output_bits;
  unsigned factor_bits;  ///< normalised modes: numerator 2^f of the reciprocal
};

struct SoftmaxOptions {
  SoftmaxMode mode = SoftmaxMode::kDeferred;
  unsigned output_bits = 8;
  unsigned fraction_bits = kDefaultExpFractionBits;
  unsigned multiplier_bits = kDefaultMultiplierBits;
  unsigned factor_bits = 32;
};

/// `score_scale` is the real value of one score step (S_q S_k / sqrt d_head), finite and positive.
/// Throws InputError for a scale that fits no requantisation, std::invalid_argument for an option
/// out of range (1 to 16 output bits, 16 to 48 factor bits).
inline SoftmaxConstants make_softmax_constants(double score_scale, SoftmaxOptions options = {}) {
  if (options.output_bits < 1 || options.output_bits > 16) {
    throw std::invalid_argument("softmax: expected 1 to 16 output bits");
  }
  if (options.factor_bits < 16 || options.factor_bits > 48) {
    throw std::invalid_argument("softmax: expected 16 to 48 factor bits");
  }
  if (!(score_scale > 0)) throw InputError("softmax score scale: expected a positive number");
  const IntExpConstants exp = make_int_exp_constants(options.fraction_bits);
  const double steps = static_cast<double>(1 << options.fraction_bits);
  const auto highest_code = static_cast<double>(unsigned_range(options.output_bits).hi);
  return {options.mode,
          make_dyadic(score_scale * steps, options.multiplier_bits),
          exp,
          make_dyadic(highest_code / exp.value_at_zero(), options.multiplier_bits),
          options.output_bits,
          options.factor_bits};
}

/// Maximum over the kept cells; the lowest int32 if there is none.
inline std::int32_t softmax_maximum(const std::int32_t* scores, const std::uint8_t* keep,
                                    std::size_t n) {
  std::int32_t maximum = std::numeric_limits<std::int32_t>::min();
  for (std::size_t i = 0; i < n; ++i) {
    if (keep == nullptr || keep[i] != 0) maximum = std::max(maximum, scores[i]);
  }
  return maximum;
}

/// exp(score - maximum) of one kept cell (18 bits unsigned with 8 fraction bits).
constexpr std::uint32_t softmax_exponential(std::int32_t score, std::int32_t maximum,
                                            const SoftmaxConstants& constants) {
  const std::int64_t difference = std::int64_t{score} - maximum;
  return int_exp(scale(difference, constants.score, Rounding::kHalfUp), constants.exp);
}

/// Deferred code of one exponential: the row maximum maps to 2^bits - 1.
constexpr std::uint32_t softmax_deferred_code(std::uint32_t exponential,
                                              const SoftmaxConstants& constants) {
  return static_cast<std::uint32_t>(requantise(exponential, constants.exp_to_code,
                                               Rounding::kHalfUp,
                                               unsigned_range(constants.output_bits)));
}

/// Normalised code of one exponential; `sum` is the row's sum of exponentials, 1 or more. As no
/// exponential exceeds the sum, the product never exceeds 2^factor_bits.
constexpr std::uint32_t softmax_normalised_code(std::uint32_t exponential, std::uint64_t sum,
                                                const SoftmaxConstants& constants) {
  const std::uint64_t factor = (std::uint64_t{1} << constants.factor_bits) / sum;
  const Rounding rounding =
      constants.mode == SoftmaxMode::kNormalisedRound ? Rounding::kHalfUp : Rounding::kFloor;
  const std::int64_t code = shift_right(static_cast<std::int64_t>(exponential * factor),
                                        constants.factor_bits - constants.output_bits, rounding);
  return static_cast<std::uint32_t>(saturate(code, unsigned_range(constants.output_bits)));
}

/// Softmax of one row of n scores. Writes n codes of `constants.output_bits` bits to `codes` (an
/// unsigned integer type wide enough) and returns the divisor of the deferred mode: the sum of the
/// codes, or 1 if no cell is kept. In the normalised modes there is nothing left to divide: 1.
template <typename Code>
std::uint32_t softmax_row(const std::int32_t* scores, const std::uint8_t* keep, std::size_t n,
                          const SoftmaxConstants& constants, Code* codes) {
  if (constants.output_bits > static_cast<unsigned>(std::numeric_limits<Code>::digits)) {
    throw std::invalid_argument("softmax_row: the code type is narrower than the output");
  }
  const auto kept = [keep](std::size_t i) { return keep == nullptr || keep[i] != 0; };
  const std::int32_t maximum = softmax_maximum(scores, keep, n);
  if (constants.mode == SoftmaxMode::kDeferred) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t code =
          kept(i)
              ? softmax_deferred_code(softmax_exponential(scores[i], maximum, constants), constants)
              : 0;
      codes[i] = static_cast<Code>(code);
      sum += code;
    }
    return std::max(sum, 1U);
  }
  // The exponentials are formed twice, as a unit without a row buffer does.
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (kept(i)) sum += softmax_exponential(scores[i], maximum, constants);
  }
  for (std::size_t i = 0; i < n; ++i) {
    codes[i] = static_cast<Code>(
        kept(i) ? softmax_normalised_code(softmax_exponential(scores[i], maximum, constants), sum,
                                          constants)
                : 0);
  }
  return 1;
}

inline constexpr unsigned kDeferredReciprocalBits = 24;
/// Fraction bits deferred_divide() adds to the scale of V.
inline constexpr unsigned kDeferredFractionBits = 8;

/// Division of a product sum p V by the row sum of p: acc * floor(2^24 / sum), rounded half up by
/// 16 bits, so 8 fraction bits remain. `sum` 0 counts as 1. The reciprocal keeps 24 - log2(sum)
/// significant bits: 8 for a uniform row of 257 keys, 4 for one of 4112.
constexpr std::int64_t deferred_divide(std::int32_t acc, std::uint32_t sum) {
  const std::int64_t reciprocal =
      (std::int64_t{1} << kDeferredReciprocalBits) / std::max(sum, std::uint32_t{1});
  return shift_right(acc * reciprocal, kDeferredReciprocalBits - kDeferredFractionBits,
                     Rounding::kHalfUp);
}

}  // namespace systole::hw

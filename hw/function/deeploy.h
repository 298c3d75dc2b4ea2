#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/number/integer.h"
#include "hw/number/isqrt.h"

/// The integer operators of Deeploy's networks (pulp-platform/Deeploy @ bf64cfa, kernels in
/// TargetLibraries/Generic). Their constants are powers of two where a shift stands here. Values
/// are 64 bits wide: nothing saturates or wraps around but where it is said.
namespace systole::hw::deeploy {

/// Codes of a quantiser: 0 .. n - 1, or -n/2 .. n/2 - 1.
constexpr IntRange range_of_levels(std::int64_t levels, bool is_signed) {
  return is_signed ? IntRange{-levels / 2, levels / 2 - 1} : IntRange{0, levels - 1};
}

/// x * multiplier + addend, divided by 2^shift, half up, and clamped. The addend comes before the
/// shift.
constexpr std::int64_t requantise(std::int64_t x, std::int64_t multiplier, std::int64_t addend,
                                  unsigned shift, IntRange range) {
  const std::int64_t half = shift == 0 ? 0 : std::int64_t{1} << (shift - 1);
  return saturate((x * multiplier + addend + half) >> shift, range);
}

/// Root of the mean of squares, its fraction cut off; never 0.
inline std::int64_t root_of_mean(const std::int64_t* x, std::size_t n, std::int64_t mean) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += (x[i] - mean) * (x[i] - mean);
  return int_sqrt(static_cast<std::uint64_t>(sum / static_cast<std::int64_t>(n) + 1)).root;
}

/// RMSNorm to s8: x w / root, cut off towards zero, then floor of the division by 2^shift.
inline void rms_norm_row(std::int64_t* x, std::size_t n, const std::int64_t* weight,
                         unsigned shift) {
  const std::int64_t root = root_of_mean(x, n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = saturate(x[i] * weight[i] / root >> shift, full_range(8));
  }
}

/// LayerNorm: the mean and the quotient are cut off towards zero, the shift rounds down. Not
/// clamped: results beyond s8 are not defined by the networks that are known.
inline void layer_norm_row(std::int64_t* x, std::size_t n, const std::int64_t* weight,
                           const std::int64_t* bias, unsigned shift) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i];
  const std::int64_t mean = sum / static_cast<std::int64_t>(n);
  const std::int64_t root = root_of_mean(x, n, mean);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = ((x[i] - mean) * weight[i] / root + bias[i]) >> shift;
  }
}

struct SoftmaxPolynomial {
  std::int64_t a, b, c;
  std::int64_t log2;  ///< codes of ln 2, from 1
};

/// I-BERT's exponential without its scaling by 2^30: a (p + b)^2 + c, halved for each ln 2. Codes
/// from 0 to levels - 1.
inline void softmax_row(std::int64_t* x, std::size_t n, const SoftmaxPolynomial& exp,
                        std::int64_t levels) {
  constexpr std::int64_t kMostHalvings = 31;
  const std::int64_t highest = *std::max_element(x, x + n);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t difference = x[i] - highest;
    const std::int64_t halvings = std::min(-difference / exp.log2, kMostHalvings);
    const std::int64_t p = difference + halvings * exp.log2 + exp.b;
    x[i] = (exp.a * p * p + exp.c) >> halvings;
    sum += x[i];
  }
  for (std::size_t i = 0; i < n; ++i) x[i] = sum == 0 ? 0 : x[i] * (levels - 1) / sum;
}

/// Halvings of ITAMax: 32 codes each, rounded half up.
constexpr unsigned ita_halvings(std::int64_t difference) {
  return static_cast<unsigned>(std::min<std::int64_t>((difference + 16) >> 5, 62));
}

/// Powers of two for exponentials: 256 shifted by the halvings, over the sum of these.
inline void ita_max_row(std::int64_t* x, std::size_t n, std::int64_t levels) {
  const std::int64_t highest = *std::max_element(x, x + n);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += 256 >> ita_halvings(highest - x[i]);
  const std::int64_t reciprocal = 256 * (levels - 1) / sum;
  for (std::size_t i = 0; i < n; ++i) x[i] = reciprocal >> ita_halvings(highest - x[i]);
}

/// The same in one pass over groups of `width` values: the sum so far is shifted whenever the
/// maximum rises. Half of the levels are used.
inline void ita_partial_max_row(std::int64_t* x, std::size_t n, std::size_t width,
                                std::int64_t levels) {
  std::int64_t highest = -128, sum = 0;
  for (std::size_t first = 0; first < n; first += width) {
    const std::size_t end = std::min(first + width, n);
    const std::int64_t risen = std::max(highest, *std::max_element(x + first, x + end));
    if (risen != highest) sum >>= ita_halvings(risen - highest);
    highest = risen;
    for (std::size_t i = first; i < end; ++i) sum += 256 >> ita_halvings(highest - x[i]);
  }
  const std::int64_t reciprocal = sum == 0 ? 0 : 256 * (levels / 2 - 1) / sum;
  for (std::size_t i = 0; i < n; ++i) x[i] = reciprocal >> ita_halvings(highest - x[i]);
}

/// I-BERT's polynomial for the error function; b is negative.
constexpr std::int64_t gelu(std::int64_t x, std::int64_t b, std::int64_t one) {
  const std::int64_t clipped = std::min(x < 0 ? -x : x, -b) + b;
  const std::int64_t error = one - clipped * clipped;
  return x * ((one + (x < 0 ? -error : x == 0 ? 0 : error)) >> 1);
}

constexpr std::int64_t hardswish(std::int64_t x, std::int64_t one_over_six, std::int64_t three,
                                 std::int64_t six) {
  return x * one_over_six * std::clamp<std::int64_t>(x + three, 0, six);
}

/// Floor of the mean plus a half.
constexpr std::int64_t mean(std::int64_t sum, std::int64_t n) {
  const std::int64_t twice = 2 * sum + n;
  const std::int64_t quotient = twice / (2 * n);
  return twice % (2 * n) < 0 ? quotient - 1 : quotient;
}

}  // namespace systole::hw::deeploy

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "hw/number/integer.h"
#include "hw/number/isqrt.h"

/// LayerNorm of the released I-BERT code: 32-bit output of scale weight * sqrt(n) / 2^30, without
/// 1/n and without epsilon.
namespace systole::hw {

/// Intermediates of one row. A row without variance has deviation 0 and factor 0; its output is the
/// bias alone, as if the deviation were 1 (the definition divides by zero there).
struct IBertLayerNormStatistics {
  std::int64_t mean;          ///< rounded half to even
  std::uint64_t sum_squares;  ///< of (x - mean) >> shift
  std::int64_t deviation;     ///< floor(sqrt(sum_squares)) << shift
  std::int64_t factor;        ///< floor(2^31 / deviation)
};

/// sum / n rounded half to even, n >= 1.
constexpr std::int64_t mean_half_even(std::int64_t sum, std::int64_t n) {
  const std::int64_t floor = floor_divide(sum, n);
  const std::int64_t twice_rest = 2 * (sum - floor * n);
  return floor + (twice_rest > n || (twice_rest == n && (floor & 1) != 0) ? 1 : 0);
}

inline std::int64_t ibert_layernorm_mean(const std::int32_t* x, std::size_t n) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i];
  return mean_half_even(sum, static_cast<std::int64_t>(n));
}

/// Overflow shift a row asks for: the smallest s with sum (x - mean)^2 <= 2^(32 + 2 s). The code
/// keeps the largest over all rows seen and applies it to each.
inline unsigned ibert_layernorm_shift(const std::int32_t* x, std::size_t n) {
  const std::int64_t mean = ibert_layernorm_mean(x, n);
  Int128 sum_squares = 0;
  for (std::size_t i = 0; i < n; ++i) sum_squares += Int128{x[i] - mean} * (x[i] - mean);
  unsigned shift = 0;
  while (sum_squares > Int128{1} << (32 + 2 * shift)) ++shift;
  return shift;
}

/// Row of n >= 1 inputs; the shift (0 to 31) must hold the sum of squares below 2^64.
inline IBertLayerNormStatistics ibert_layernorm_statistics(const std::int32_t* x, std::size_t n,
                                                           unsigned shift) {
  const std::int64_t mean = ibert_layernorm_mean(x, n);
  std::uint64_t sum_squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto y = static_cast<std::uint64_t>((x[i] - mean) >> shift);
    sum_squares += y * y;
  }
  const std::int64_t deviation = std::int64_t{int_sqrt(sum_squares).root} << shift;
  const std::int64_t factor = deviation == 0 ? 0 : (std::int64_t{1} << 31) / deviation;
  return {mean, sum_squares, deviation, factor};
}

/// floor((x - mean) * factor / 2) + bias.
constexpr std::int64_t ibert_layernorm_output(std::int32_t x,
                                              const IBertLayerNormStatistics& statistics,
                                              std::int64_t bias) {
  return (((x - statistics.mean) * statistics.factor) >> 1) + bias;
}

/// Output scale of a channel of weight 1: sqrt(n), rounded to float32, over 2^30.
inline double ibert_layernorm_output_scale(std::size_t n) {
  return std::ldexp(static_cast<double>(std::sqrt(static_cast<float>(n))), -30);
}

/// floor((bias / weight) / output scale): the integer bias of one channel, for weight != 0.
inline double ibert_layernorm_bias(double weight, double bias, std::size_t n) {
  return std::floor(bias / weight / ibert_layernorm_output_scale(n));
}

}  // namespace systole::hw

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hw/number/dyadic.h"
#include "hw/number/integer.h"
#include "hw/number/isqrt.h"

/// Integer LayerNorm of one row: integer mean, sum of squares, Newton square root, one division per
/// row, one multiplication per element.
namespace systole::hw {

/// Widest input of the default form and longest row: the sum of squares then fits 64 bits.
inline constexpr unsigned kLayerNormMaxInputBits = 24;
inline constexpr std::size_t kLayerNormMaxLength = 1U << 16;
/// The per-row reciprocal is 2^31 / std.
inline constexpr unsigned kLayerNormFactorBits = 31;
inline constexpr unsigned kLayerNormFractionBits = 15;
/// No deviation exceeds the root of the sum of squares, so a normalised value then fits s32.
inline constexpr unsigned kLayerNormMaxFractionBits = kLayerNormFactorBits - 1;
inline constexpr unsigned kLayerNormMultiplierBits = 15;
/// Signed width of the channel bias on the accumulator's grid.
inline constexpr unsigned kLayerNormBiasBits = 48;

/// Per-channel affine part of the default form: out = (norm * multiplier + bias) >> shift.
struct LayerNormConstants {
  std::vector<std::int32_t> multiplier;  ///< |multiplier| <= 2^multiplier_bits
  std::vector<std::int64_t> bias;        ///< at most kLayerNormBiasBits signed
  unsigned shift;                        ///< common to all channels
  unsigned fraction_bits;                ///< of the normalised value y / sqrt(sum y^2)
};

/// The part of the constants that the weights alone decide: out = norm * multiplier >> shift.
struct NormWeights {
  std::vector<std::int32_t> multiplier;  ///< |multiplier| <= 2^multiplier_bits
  unsigned shift;                        ///< common to all channels
  unsigned fraction_bits;                ///< of the normalised value
};

/// gamma per channel, output scale S_out: multiplier = gamma sqrt(n) 2^-fraction_bits / S_out times
/// 2^shift, rounded half to even; the shift gives the largest multiplier all its bits. Throws
/// InputError, which begins with `name`, for no weight, one that is not finite, only zeros, or a
/// shift outside its register.
inline NormWeights make_norm_weights(const std::string& name, const std::vector<double>& gamma,
                                     double output_scale, unsigned fraction_bits,
                                     unsigned multiplier_bits) {
  if (gamma.empty()) throw InputError(name + ": no weights, expected at least one");
  if (!(std::isfinite(output_scale) && output_scale > 0)) {
    throw InputError(name + " output scale: expected a positive number");
  }
  if (fraction_bits < 1 || fraction_bits > kLayerNormMaxFractionBits || multiplier_bits < 2 ||
      multiplier_bits > 30) {
    throw std::invalid_argument(name + ": expected 1 to 30 fraction and 2 to 30 multiplier bits");
  }
  const double root_n = std::sqrt(static_cast<double>(gamma.size()));
  const double step = std::ldexp(1.0, -static_cast<int>(fraction_bits));
  const auto factor = [&](double weight) { return weight * root_n * step / output_scale; };
  double largest = 0;
  for (std::size_t i = 0; i < gamma.size(); ++i) {
    if (!std::isfinite(factor(gamma[i]))) {
      throw InputError(name + " channel " + std::to_string(i) + ": weight not finite");
    }
    largest = std::max(largest, std::fabs(factor(gamma[i])));
  }
  const double shift = static_cast<double>(multiplier_bits) - std::floor(std::log2(largest)) - 1.0;
  // All weights zero make the logarithm and thus the shift infinite.
  if (!(shift >= 0 && shift <= kMaxDyadicShift)) {
    throw InputError(name + ": largest weight / output scale needs a shift of " +
                     std::to_string(shift) + ", expected 0 to 63");
  }
  NormWeights weights{{}, static_cast<unsigned>(shift), fraction_bits};
  const double grid = std::exp2(shift);
  for (const double weight : gamma) {
    weights.multiplier.push_back(static_cast<std::int32_t>(std::nearbyint(factor(weight) * grid)));
  }
  return weights;
}

/// gamma and beta per channel: the weights of make_norm_weights() and bias = beta / S_out 2^shift,
/// rounded half to even. Throws InputError as there, and for lengths that differ or a bias that is
/// not finite or outside its register.
inline LayerNormConstants make_layernorm_constants(
    const std::vector<double>& gamma, const std::vector<double>& beta, double output_scale,
    unsigned fraction_bits = kLayerNormFractionBits,
    unsigned multiplier_bits = kLayerNormMultiplierBits) {
  if (gamma.size() != beta.size()) {
    throw InputError("LayerNorm: " + std::to_string(gamma.size()) + " weights and " +
                     std::to_string(beta.size()) + " biases, expected as many");
  }
  NormWeights weights =
      make_norm_weights("LayerNorm", gamma, output_scale, fraction_bits, multiplier_bits);
  LayerNormConstants constants{std::move(weights.multiplier), {}, weights.shift, fraction_bits};
  const double grid = std::exp2(weights.shift);
  const auto bias_limit = static_cast<double>(symmetric_range(kLayerNormBiasBits).hi);
  for (std::size_t i = 0; i < beta.size(); ++i) {
    const double bias = std::nearbyint(beta[i] / output_scale * grid);
    // The comparison is written so that NaN fails too.
    if (!(std::fabs(bias) <= bias_limit)) {
      throw InputError("LayerNorm channel " + std::to_string(i) +
                       ": bias not finite or more than 48 bits on the grid of the weights");
    }
    constants.bias.push_back(static_cast<std::int64_t>(bias));
  }
  return constants;
}

/// Result of the statistics passes for one row.
struct LayerNormStatistics {
  std::int64_t mean;          ///< rounded half up
  std::uint64_t sum_squares;  ///< of x - mean
  std::uint32_t deviation;    ///< floor(sqrt(sum_squares)), at least 1: a constant row gives beta
  std::uint32_t factor;       ///< floor(2^31 / deviation)
  unsigned sqrt_passes;
};

/// What follows from the two sums and the root of the second.
constexpr LayerNormStatistics layernorm_statistics(std::int64_t mean, std::uint64_t sum_squares,
                                                   IntSqrt root) {
  const std::uint32_t deviation = std::max(root.root, std::uint32_t{1});
  return {mean, sum_squares, deviation, (std::uint32_t{1} << kLayerNormFactorBits) / deviation,
          root.passes};
}

/// sum / n, rounded half up, for n > 0 and a sum of at most 62 bits.
constexpr std::int64_t layernorm_mean(std::int64_t sum, std::int64_t n) {
  return floor_divide(2 * sum + n, 2 * n);
}

/// Row of n >= 1 inputs within kLayerNormMaxInputBits, n <= kLayerNormMaxLength.
inline LayerNormStatistics layernorm_statistics(const std::int32_t* x, std::size_t n) {
  const auto length = static_cast<std::int64_t>(n);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < n; ++i) total += x[i];
  const std::int64_t mean = layernorm_mean(total, length);
  std::uint64_t sum_squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto y = static_cast<std::uint64_t>(x[i] - mean);
    sum_squares += y * y;
  }
  return layernorm_statistics(mean, sum_squares, int_sqrt(sum_squares));
}

/// The same from a row's sum and its sum of squares, exactly:
/// sum (x - mean)^2 = sum x^2 - 2 mean sum x + n mean^2, for 1 <= n <= kLayerNormMaxLength.
///
/// Words that belong to no row are legal: the sum saturates to the 40 bits and the mean to the 24
/// that a row can reach, the terms add modulo 2^64, and a negative result counts as zero.
constexpr LayerNormStatistics layernorm_statistics_from_sums(std::int64_t sum,
                                                             std::uint64_t sum_squares,
                                                             std::size_t n) {
  constexpr unsigned kSumBits = kLayerNormMaxInputBits + bit_length(kLayerNormMaxLength - 1);
  const std::int64_t total = saturate(sum, full_range(kSumBits));
  const std::int64_t mean = saturate(layernorm_mean(total, static_cast<std::int64_t>(n)),
                                     full_range(kLayerNormMaxInputBits));
  const auto wrapped_mean = static_cast<std::uint64_t>(mean);
  const std::uint64_t correction =
      wrapped_mean * (n * wrapped_mean - 2 * static_cast<std::uint64_t>(total));
  const auto centred = static_cast<std::int64_t>(sum_squares + correction);
  const auto deviations = static_cast<std::uint64_t>(std::max<std::int64_t>(centred, 0));
  return layernorm_statistics(mean, deviations, int_sqrt(deviations));
}

/// (x - mean) / sqrt(sum of squares) with at most kLayerNormMaxFractionBits fraction bits, floored,
/// for x within kLayerNormMaxInputBits. Its register has 32 bits, enough for the statistics of the
/// row itself; statistics of another row may leave it, and then it keeps the low ones.
constexpr std::int32_t layernorm_normalise(std::int32_t x, const LayerNormStatistics& statistics,
                                           unsigned fraction_bits) {
  return static_cast<std::int32_t>(
      shift_right((x - statistics.mean) * std::int64_t{statistics.factor},
                  kLayerNormFactorBits - fraction_bits, Rounding::kFloor));
}

/// (norm * multiplier + bias) / 2^shift, for a bias of at most kLayerNormBiasBits, rounded half up
/// and clamped to `limits`, which lie within s32.
constexpr std::int32_t norm_output(std::int32_t norm, std::int32_t multiplier, std::int64_t bias,
                                   unsigned shift, IntRange limits) {
  const std::int64_t sum = std::int64_t{norm} * multiplier + bias;
  return static_cast<std::int32_t>(saturate(shift_right(sum, shift, Rounding::kHalfUp), limits));
}

/// Output of channel i, rounded half up and clamped to a symmetric range.
inline std::int32_t layernorm_output(std::int32_t x, std::size_t i,
                                     const LayerNormStatistics& statistics,
                                     const LayerNormConstants& constants, unsigned output_bits) {
  return norm_output(layernorm_normalise(x, statistics, constants.fraction_bits),
                     constants.multiplier[i], constants.bias[i], constants.shift,
                     symmetric_range(output_bits));
}

/// One row of n = constants.multiplier.size() inputs; `out` may be any signed integer type that
/// holds `output_bits` bits.
template <typename Out>
void layernorm_row(const std::int32_t* x, const LayerNormConstants& constants, Out* out,
                   unsigned output_bits = 8) {
  if (output_bits < 2 ||
      output_bits > static_cast<unsigned>(std::numeric_limits<Out>::digits) + 1) {
    throw std::invalid_argument("layernorm_row: the output type is narrower than the output");
  }
  const std::size_t n = constants.multiplier.size();
  const LayerNormStatistics statistics = layernorm_statistics(x, n);
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = static_cast<Out>(layernorm_output(x[i], i, statistics, constants, output_bits));
  }
}

}  // namespace systole::hw

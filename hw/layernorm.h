#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "hw/dyadic.h"
#include "hw/error.h"
#include "hw/integer.h"
#include "hw/isqrt.h"

/// Integer LayerNorm of one row: integer mean, sum of squares, Newton square root, one division per
/// row, one multiplication per element.
namespace systole::hw {

/// Widest input of the default form and longest row: the sum of squares then fits 64 bits.
inline constexpr unsigned kLayerNormMaxInputBits = 24;
inline constexpr std::size_t kLayerNormMaxLength = 1U << 16;
/// The per-row reciprocal is 2^31 / std.
inline constexpr unsigned kLayerNormFactorBits = 31;
inline constexpr unsigned kLayerNormFractionBits = 15;
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

/// gamma and beta per channel, output scale S_out: multiplier = gamma sqrt(n) 2^-fraction_bits /
/// S_out and bias = beta / S_out, both times 2^shift, rounded half to even; the shift gives the
/// largest multiplier all its bits. Throws InputError for lengths that differ, values that are not
/// finite, only zeros in gamma, or a shift or bias outside its register.
inline LayerNormConstants make_layernorm_constants(
    const std::vector<double>& gamma, const std::vector<double>& beta, double output_scale,
    unsigned fraction_bits = kLayerNormFractionBits,
    unsigned multiplier_bits = kLayerNormMultiplierBits) {
  if (gamma.empty() || gamma.size() != beta.size()) {
    throw InputError("LayerNorm: " + std::to_string(gamma.size()) + " weights and " +
                     std::to_string(beta.size()) + " biases, expected as many, at least one");
  }
  if (!(std::isfinite(output_scale) && output_scale > 0)) {
    throw InputError("LayerNorm output scale: expected a positive number");
  }
  if (fraction_bits < 1 || fraction_bits > kLayerNormFactorBits || multiplier_bits < 2 ||
      multiplier_bits > 30) {
    throw std::invalid_argument("layernorm: expected 1 to 31 fraction and 2 to 30 multiplier bits");
  }
  const double root_n = std::sqrt(static_cast<double>(gamma.size()));
  const double step = std::ldexp(1.0, -static_cast<int>(fraction_bits));
  const auto factor = [&](double weight) { return weight * root_n * step / output_scale; };
  double largest = 0;
  for (std::size_t i = 0; i < gamma.size(); ++i) {
    if (!std::isfinite(factor(gamma[i])) || !std::isfinite(beta[i] / output_scale)) {
      throw InputError("LayerNorm channel " + std::to_string(i) + ": weight or bias not finite");
    }
    largest = std::max(largest, std::fabs(factor(gamma[i])));
  }
  const double shift = static_cast<double>(multiplier_bits) - std::floor(std::log2(largest)) - 1.0;
  // All weights zero make the logarithm and thus the shift infinite.
  if (!(shift >= 0 && shift <= kMaxDyadicShift)) {
    throw InputError("LayerNorm: largest weight / output scale needs a shift of " +
                     std::to_string(shift) + ", expected 0 to 63");
  }
  LayerNormConstants constants{{}, {}, static_cast<unsigned>(shift), fraction_bits};
  const double grid = std::exp2(shift);
  const auto bias_limit = static_cast<double>(symmetric_range(kLayerNormBiasBits).hi);
  for (std::size_t i = 0; i < gamma.size(); ++i) {
    const double bias = std::nearbyint(beta[i] / output_scale * grid);
    if (std::fabs(bias) > bias_limit) {
      throw InputError("LayerNorm channel " + std::to_string(i) +
                       ": bias exceeds 48 bits on the grid of the weights");
    }
    constants.multiplier.push_back(
        static_cast<std::int32_t>(std::nearbyint(factor(gamma[i]) * grid)));
    constants.bias.push_back(static_cast<std::int64_t>(bias));
  }
  return constants;
}

/// What the statistics passes leave behind for one row.
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

/// Row of n >= 1 inputs within kLayerNormMaxInputBits, n <= kLayerNormMaxLength.
inline LayerNormStatistics layernorm_statistics(const std::int32_t* x, std::size_t n) {
  const auto length = static_cast<std::int64_t>(n);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < n; ++i) total += x[i];
  const std::int64_t mean = floor_divide(2 * total + length, 2 * length);
  std::uint64_t sum_squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto y = static_cast<std::uint64_t>(x[i] - mean);
    sum_squares += y * y;
  }
  return layernorm_statistics(mean, sum_squares, int_sqrt(sum_squares));
}

/// (x - mean) / sqrt(sum of squares) with `fraction_bits` fraction bits, floored.
constexpr std::int64_t layernorm_normalise(std::int32_t x, const LayerNormStatistics& statistics,
                                           unsigned fraction_bits) {
  return shift_right((x - statistics.mean) * std::int64_t{statistics.factor},
                     kLayerNormFactorBits - fraction_bits, Rounding::kFloor);
}

/// Output of channel i, rounded half up and clamped to a symmetric range.
inline std::int32_t layernorm_output(std::int32_t x, std::size_t i,
                                     const LayerNormStatistics& statistics,
                                     const LayerNormConstants& constants, unsigned output_bits) {
  const std::int64_t norm = layernorm_normalise(x, statistics, constants.fraction_bits);
  const std::int64_t sum = norm * constants.multiplier[i] + constants.bias[i];
  return static_cast<std::int32_t>(
      saturate(shift_right(sum, constants.shift, Rounding::kHalfUp), symmetric_range(output_bits)));
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

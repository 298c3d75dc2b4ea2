#pragma once

#include <cstdint>
#include <vector>

#include "hw/function/layernorm.h"
#include "hw/number/isqrt.h"

/// Integer RMSNorm of one row, x / sqrt(mean of squares) times the channel's weight: LayerNorm
/// (hw/function/layernorm.h) about the mean 0 and without a bias. As there, nothing is added to the
/// mean of squares; a row of zeros gives zeros.
namespace systole::hw {

using RmsNormConstants = NormWeights;

/// gamma per channel, output scale S_out, as make_norm_weights(), which says what it throws.
inline RmsNormConstants make_rms_norm_constants(
    const std::vector<double>& gamma, double output_scale,
    unsigned fraction_bits = kLayerNormFractionBits,
    unsigned multiplier_bits = kLayerNormMultiplierBits) {
  return make_norm_weights("RMSNorm", gamma, output_scale, fraction_bits, multiplier_bits);
}

/// From the sum of squares of a row of s24 inputs, at most kLayerNormMaxLength long. Any word is
/// legal; layernorm_normalise() says what becomes of one from another row.
constexpr LayerNormStatistics rms_norm_statistics(std::uint64_t sum_squares) {
  return layernorm_statistics(0, sum_squares, int_sqrt(sum_squares));
}

/// Output of channel i from an input within s24, rounded half up and clamped to `limits`.
inline std::int32_t rms_norm_output(std::int32_t x, std::size_t i,
                                    const LayerNormStatistics& statistics,
                                    const RmsNormConstants& constants, IntRange limits) {
  return norm_output(layernorm_normalise(x, statistics, constants.fraction_bits),
                     constants.multiplier[i], 0, constants.shift, limits);
}

}  // namespace systole::hw

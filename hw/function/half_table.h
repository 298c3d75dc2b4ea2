#pragma once

#include <array>
#include <cstddef>

#include "hw/number/half.h"

/// Functions as a unit with a table computes them: samples and linear interpolation, every step of
/// it in half precision. Beyond the samples a function is 0 on the left and x on the right.
namespace systole::hw {

inline constexpr std::size_t kHalfSamples = 2048;
/// GELU's table covers [-8, 8), SiLU's, whose tail is longer, [-16, 16).
inline constexpr double kHalfGeluLimit = 8, kHalfSiluLimit = 16;

/// Entry i belongs to x = -limit + i * 2 * limit / kHalfSamples. The same on every host: no entry
/// is within 2^-30, relative, of a point where its rounding steps.
struct HalfTable {
  double limit = 0;
  std::array<Half, kHalfSamples> samples;
  std::array<Half, kHalfSamples> slopes;  ///< of the line to the next sample
};

/// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
[[nodiscard]] const HalfTable& half_gelu_table();
/// x / (1 + e^-x).
[[nodiscard]] const HalfTable& half_silu_table();

/// 0 below -limit, x from the limit on, the NaN for a NaN. Between them the sample next to x on the
/// side of 0, plus slope times distance; sample and distance are exact, product and sum are
/// rounded.
[[nodiscard]] Half half_lookup(const HalfTable& table, Half x);

[[nodiscard]] inline Half half_gelu(Half x) { return half_lookup(half_gelu_table(), x); }
[[nodiscard]] inline Half half_silu(Half x) { return half_lookup(half_silu_table(), x); }

}  // namespace systole::hw

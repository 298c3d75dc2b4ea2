#pragma once

#include <array>
#include <cstddef>

#include "hw/number/half.h"

/// GELU, x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as a unit with a table computes it:
/// samples on [-8, 8] and linear interpolation, every step of it in half precision.
namespace systole::hw {

inline constexpr std::size_t kHalfGeluSamples = 2048;
inline constexpr double kHalfGeluLimit = 8;  ///< the table covers [-8, 8)

/// Entry i belongs to x = -8 + i / 128. The same on every host: no entry is within 2^-30, relative,
/// of a point where its rounding steps.
struct HalfGeluTable {
  std::array<Half, kHalfGeluSamples> samples;
  std::array<Half, kHalfGeluSamples> slopes;  ///< of the line to the next sample
};

[[nodiscard]] const HalfGeluTable& half_gelu_table();

/// 0 below -8, x from 8 on, the NaN for a NaN. Between them the sample next to x on the side of 0,
/// plus slope times distance; sample and distance are exact, product and sum are rounded.
[[nodiscard]] Half half_gelu(Half x);

}  // namespace systole::hw

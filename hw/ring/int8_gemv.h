#pragma once

#include <cstddef>
#include <cstdint>

#include "hw/number/half.h"

/// Products of 8-bit integers with FP16 scales: integer sums are exact, so they depend neither on
/// their order nor on who adds them.
namespace systole::hw {

inline constexpr int kInt8Limit = 127;

/// round(x * inverse), to nearest even, within +-127; 0 for what is no number.
[[nodiscard]] std::int8_t quantise(Half x, Half inverse);

/// y[slices * lanes] = bias + scale x column_scale x sum. Tiles as of HalfGemv, of integers.
struct Int8Gemv {
  const std::int8_t* x = nullptr;  ///< [k_tiles * depth]
  const std::int8_t* tiles = nullptr;
  std::size_t k_tiles = 0, slices = 0;
  std::size_t depth = 64, lanes = 32;
  Half scale{0};                        ///< of x
  const Half* column_scales = nullptr;  ///< [slices * lanes]
  const Half* bias = nullptr;           ///< [slices * lanes], or null
  Half* y = nullptr;
};

/// The sum times the product of both scales in float32, rounded to FP16 once; then the bias. The
/// tiles of a block: the slices of one K tile, then those of the next.
void int8_gemv(const Int8Gemv& args);

}  // namespace systole::hw

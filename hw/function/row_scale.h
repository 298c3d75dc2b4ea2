#pragma once

#include <algorithm>
#include <cstdint>

#include "hw/number/dyadic.h"
#include "hw/number/integer.h"
#include "hw/number/serial_unit.h"
#include "hw/number/unit_depths.h"

/// Codes of a row with its own scale: its largest magnitude, the peak, becomes the largest
/// code. A later stage multiplies what was made of the codes with the peak again, and the scale of
/// the row is gone.
namespace systole::hw {

/// Most bits of the largest code without its sign.
inline constexpr unsigned kRowCodeBits = 15;
/// Of the reciprocal of a peak that is shifted to have its highest one at one place.
inline constexpr unsigned kRowReciprocalBits = 16;

/// The factor that takes values up to `peak` to codes up to `top`, 1 to 2^kRowCodeBits - 1: floor(
/// top 2^shift / peak) with shift = bits of the peak + 15. The multiplier has 16 bits more than
/// `top`, or as many, whatever the peak; with it a code errs by at most 2^-15, besides its
/// rounding. A peak of 0 counts as 1.
constexpr Dyadic row_code_factor(std::uint32_t peak, std::int32_t top) {
  const std::uint32_t divisor = std::max(peak, std::uint32_t{1});
  const unsigned shift = bit_length(divisor) + kRowReciprocalBits - 1;
  return {static_cast<std::int32_t>((static_cast<std::uint64_t>(top) << shift) / divisor),
          static_cast<std::int8_t>(shift)};
}

/// The code of x, rounded half up and clamped to -top to top: any peak is legal.
constexpr std::int32_t row_code(std::int32_t x, std::uint32_t peak, std::int32_t top) {
  return static_cast<std::int32_t>(
      requantise(x, row_code_factor(peak, top), Rounding::kHalfUp, {-top, top}));
}

/// Largest magnitude of an element, as the side output of a row keeps it: up to 2^31.
constexpr std::uint32_t magnitude(std::int32_t x) {
  return x < 0 ? 0U - static_cast<std::uint32_t>(x) : static_cast<std::uint32_t>(x);
}

/// Cycles of the serial division.
inline constexpr std::uint32_t kRowReciprocalSerial =
    serial_cycles(kRowReciprocalBits + kRowCodeBits);
/// From a peak to the factor: its highest one, found and shifted to its place; the division.
inline constexpr std::uint32_t kRowFactorCycles = unit_depth::kShift + kRowReciprocalSerial;

}  // namespace systole::hw

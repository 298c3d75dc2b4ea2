#pragma once

#include <cstdint>

#include "hw/number/dyadic.h"
#include "hw/number/integer.h"
#include "hw/number/serial_unit.h"
#include "hw/number/unit_depths.h"

/// Division of two integers, elementwise.
namespace systole::hw {

/// Most fraction bits of a quotient: with 31 the shifted dividend has 63 bits.
inline constexpr unsigned kMaxDivideShift = 31;

/// x * 2^shift / y, rounded once from the exact quotient and clamped to `limits`, which lie within
/// s32. A division by zero gives the bound of `limits` with the sign of x; 0 / 0 is 0. Shifts: 0 to
/// kMaxDivideShift.
constexpr std::int32_t divide(std::int32_t x, std::int32_t y, unsigned shift, Rounding rounding,
                              IntRange limits) {
  if (y == 0) {
    const std::int64_t bound = x == 0 ? 0 : x < 0 ? limits.lo : limits.hi;
    return static_cast<std::int32_t>(saturate(bound, limits));
  }
  const std::int64_t dividend =
      (y < 0 ? -std::int64_t{x} : std::int64_t{x}) * (std::int64_t{1} << shift);
  const std::int64_t divisor = y < 0 ? -std::int64_t{y} : std::int64_t{y};
  std::int64_t quotient = dividend / divisor;
  std::int64_t remainder = dividend % divisor;
  if (remainder < 0) {  // the floor
    --quotient;
    remainder += divisor;
  }
  const bool above = 2 * remainder > divisor, tie = 2 * remainder == divisor;
  if (rounding == Rounding::kHalfUp) quotient += above || tie ? 1 : 0;
  if (rounding == Rounding::kHalfEven) quotient += above || (tie && quotient % 2 != 0) ? 1 : 0;
  return static_cast<std::int32_t>(saturate(quotient, limits));
}

/// Pipelined divider: shift of the dividend; 32 bits of the quotient, two in each stage, as a
/// serial divider that is unrolled; rounding from the remainder; sign and clamp.
inline constexpr std::uint32_t kDivideLatency =
    unit_depth::kShift + serial_cycles(32) + unit_depth::kAdd + unit_depth::kClamp;

}  // namespace systole::hw

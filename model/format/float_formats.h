#pragma once

#include <cstdint>
#include <cstring>

#include "hw/number/half.h"

namespace systole::model {

/// The float with the bit pattern `bits`.
inline float float_from_bits(std::uint32_t bits) {
  float value = 0.0F;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// bfloat16 to float; exact: bfloat16 is the upper half of an IEEE 754 binary32.
inline float bf16_to_float(std::uint16_t code) {
  return float_from_bits(static_cast<std::uint32_t>(code) << 16U);
}

/// IEEE 754 binary16 to float; exact for every code: subnormals, infinities, and NaN with its
/// payload in the upper bits of the fraction.
inline float f16_to_float(std::uint16_t code) { return hw::to_float(hw::Half{code}); }

}  // namespace systole::model

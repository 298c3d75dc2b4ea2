#pragma once

#include <cstdint>
#include <cstring>

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
inline float f16_to_float(std::uint16_t code) {
  constexpr std::uint32_t kExponentRebias = 127 - 15;
  constexpr std::uint32_t kFractionShift = 23 - 10;
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x8000U) << 16U;
  const std::uint32_t exponent = (code >> 10U) & 0x1FU;
  const std::uint32_t fraction = code & 0x3FFU;
  if (exponent == 0) {
    // A subnormal counts units of 2^-24; so small an integer times a power of two is exact.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide_exponent = exponent == 0x1FU ? 0xFFU : exponent + kExponentRebias;
  return float_from_bits(sign | (wide_exponent << 23U) | (fraction << kFractionShift));
}

}  // namespace systole::model

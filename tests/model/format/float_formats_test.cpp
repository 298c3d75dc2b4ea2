#include "model/format/float_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace systole::model {
namespace {

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// The value of a binary floating-point code by the definition of the format, in double: exact for
/// every 16-bit format.
double value_by_definition(unsigned code, int exponent_bits, int fraction_bits) {
  const int exponent_mask = (1 << exponent_bits) - 1;
  const int bias = exponent_mask / 2;
  const int exponent = static_cast<int>(code >> fraction_bits) & exponent_mask;
  const int fraction = static_cast<int>(code) & ((1 << fraction_bits) - 1);
  const double sign = (code & 0x8000U) != 0 ? -1.0 : 1.0;
  if (exponent == exponent_mask) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  const int integer = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
  const int power = (exponent == 0 ? 1 : exponent) - bias - fraction_bits;
  return sign * std::ldexp(integer, power);
}

template <typename Convert>
void check_all_codes(Convert convert, int exponent_bits, int fraction_bits) {
  int mismatches = 0;
  for (unsigned code = 0; code <= 0xFFFFU; ++code) {
    const float found = convert(static_cast<std::uint16_t>(code));
    const double expected = value_by_definition(code, exponent_bits, fraction_bits);
    const bool same = std::isnan(expected) ? std::isnan(found)
                                           : static_cast<double>(found) == expected &&
                                                 std::signbit(found) == std::signbit(expected);
    if (!same && mismatches++ < 5) ADD_FAILURE() << "code " << code << ": " << found;
  }
  EXPECT_EQ(mismatches, 0);
}

TEST(FloatFormats, EveryF16CodeIsExact) { check_all_codes(f16_to_float, 5, 10); }

TEST(FloatFormats, EveryBf16CodeIsExact) { check_all_codes(bf16_to_float, 8, 7); }

TEST(FloatFormats, KnownCodes) {
  EXPECT_EQ(f16_to_float(0x3C00), 1.0F);
  EXPECT_EQ(f16_to_float(0xC000), -2.0F);
  EXPECT_EQ(f16_to_float(0x7BFF), 65504.0F);
  EXPECT_EQ(f16_to_float(0x0001), 0x1p-24F);
  EXPECT_EQ(f16_to_float(0x3555), 0.333251953125F);
  EXPECT_EQ(bf16_to_float(0x3F80), 1.0F);
  EXPECT_EQ(bf16_to_float(0x4049), 3.140625F);
}

TEST(FloatFormats, NanKeepsSignAndPayload) {
  EXPECT_EQ(bits_of(f16_to_float(0xFE01)), 0xFFC02000U);
  EXPECT_EQ(bits_of(bf16_to_float(0xFFC1)), 0xFFC10000U);
}

}  // namespace
}  // namespace systole::model

#include "model/format/pnm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "model/format/float_formats.h"
#include "tests/support/input_error.h"

namespace systole::model {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Pnm, ReadsSamplesRowByRow) {
  const Pnm picture = parse_pnm(std::string("P5\n3 2\n255\n\0\1\2\3\4\xFF", 17), "p.pgm");
  EXPECT_EQ(picture.channels, 1U);
  EXPECT_EQ(picture.height, 2U);
  EXPECT_EQ(picture.width, 3U);
  EXPECT_EQ(picture.max_value, 255U);
  EXPECT_THAT(picture.samples, ElementsAre(0, 1, 2, 3, 4, 255));
}

TEST(Pnm, ReadsColourPlaneByPlane) {
  const Pnm picture = parse_pnm("P6 2 1 126 RGBrgb", "p.ppm");
  EXPECT_EQ(picture.channels, 3U);
  EXPECT_EQ(picture.height, 1U);
  EXPECT_EQ(picture.width, 2U);
  EXPECT_THAT(picture.samples, ElementsAre('R', 'r', 'G', 'g', 'B', 'b'));
}

TEST(Pnm, AcceptsCommentsAndAnyBlanks) {
  const Pnm picture = parse_pnm("P5# made by hand\n#\r\n 2\t#w\n\v1\f\r\n 32\n\n ", "p.pgm");
  EXPECT_EQ(picture.width, 2U);
  EXPECT_EQ(picture.height, 1U);
  EXPECT_THAT(picture.samples, ElementsAre('\n', ' '))
      << "one blank ends the header; the next byte is a sample even if it looks like a blank";
}

TEST(Pnm, FirstSampleMayLookLikeAComment) {
  EXPECT_THAT(parse_pnm("P5 1 1 255 #", "p.pgm").samples, ElementsAre('#'));
}

TEST(Pnm, RecognisesItsMagic) {
  EXPECT_TRUE(looks_like_pnm("P5"));
  EXPECT_TRUE(looks_like_pnm("P6"));
  EXPECT_FALSE(looks_like_pnm("P2 1 1"));
  EXPECT_FALSE(looks_like_pnm("P"));
  EXPECT_FALSE(looks_like_pnm(""));
}

struct HostilePicture {
  std::string bytes;
  const char* hint;
};

TEST(Pnm, EveryBadPictureIsRefusedWithOneClearLine) {
  const std::vector<HostilePicture> pictures = {
      {"", "expected 'P5'"},
      {"P2 1 1 255 0", "expected 'P5'"},
      {"P7 1 1 255 rgb", "expected 'P5' or 'P6'"},
      {"P6 1 1 255 rg", "2 bytes of samples, expected 3 x 1 x 1 = 3"},
      {"P6 1 1 255 rgbr", "4 bytes of samples"},
      {"P6 1 1 98 abc", "byte 12: sample 99 is above the maximum value 98"},
      {"P5", "byte 2: expected a blank before the width"},
      {"P51 1 255 x", "byte 2: expected a blank before the width"},
      {"P5 ", "byte 3: expected a decimal number as width"},
      {"P5 # no end", "expected a decimal number as width"},
      {"P5 x 1 255 x", "expected a decimal number as width"},
      {"P5 -1 1 255 x", "expected a decimal number as width"},
      {"P5 0 1 255 ", "byte 3: width is out of range, expected 1..65535"},
      {"P5 65536 1 255 ", "width is out of range"},
      {"P5 99999999999999999999 1 255 ", "width is out of range"},
      {"P5 1", "expected a blank before the height"},
      {"P5 1 0 255 ", "height is out of range"},
      {"P5 1.5 1 255 ", "byte 4: expected a blank before the height"},
      {"P5 1 1", "expected a blank before the maximum value"},
      {"P5 1 1 0 x", "maximum value is out of range, expected 1..255"},
      {"P5 1 1 65535 xx", "maximum value is out of range"},
      {"P5 1 1 255", "byte 10: expected a blank between"},
      {"P5 1 1 255x", "byte 10: expected a blank between"},
      {"P5 1 1 255 ", "byte 11: 0 bytes of samples, expected 1 x 1 = 1"},
      {"P5 1 1 255 xy", "2 bytes of samples"},
      {"P5 65535 65535 255 x", "expected 65535 x 65535 = 4294836225"},
      {"P5 2 1 16 \x10\x11", "byte 11: sample 17 is above the maximum value 16"},
  };
  for (const HostilePicture& picture : pictures) {
    EXPECT_THAT(input_error_of([&] { parse_pnm(picture.bytes, "p\n.pgm"); }),
                AllOf(StartsWith("p\\x0a.pgm: picture byte "), HasSubstr(picture.hint)))
        << picture.bytes;
  }
}

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

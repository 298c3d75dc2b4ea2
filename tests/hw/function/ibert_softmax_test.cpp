#include "hw/function/ibert_softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace systole::hw {
namespace {

/// Constants whose 16-bit code maps the exponential's value at zero to 32767.
IBertSoftmaxConstants constants_of(double scale) {
  const IBertExpConstants exp = make_ibert_exp_constants(scale);
  const double at_zero = std::ldexp(static_cast<double>(exp.c), kIBertExpHalvings);
  return {exp, make_ibert_dyadic(32767 / at_zero)};
}

struct IBertRow {
  std::vector<std::uint16_t> exponentials;
  std::vector<std::uint16_t> codes;
};

IBertRow run(const std::vector<std::int32_t>& scores, const IBertSoftmaxConstants& constants,
             const std::vector<std::uint8_t>& keep = {}) {
  const std::size_t n = scores.size();
  IBertRow row{std::vector<std::uint16_t>(n), std::vector<std::uint16_t>(n)};
  ibert_softmax_row(scores.data(), keep.empty() ? nullptr : keep.data(), n, constants,
                    row.exponentials.data(), row.codes.data());
  return row;
}

TEST(IBertSoftmax, GivesTheExactCodesWhereFloatingPointOverflowsThem) {
  const IBertSoftmaxConstants constants = constants_of(0.01);
  EXPECT_EQ(run({42}, constants).codes, (std::vector<std::uint16_t>{255}));
  EXPECT_EQ(run({9, 9}, constants).codes, (std::vector<std::uint16_t>{127, 127}));
  EXPECT_EQ(run(std::vector<std::int32_t>(256, 3), constants).codes.front(), 0);
}

TEST(IBertSoftmax, FoldsTheShiftLeftOfThirtyBitsWithoutChangingTheValue) {
  // At this scale the unfolded product still fits 128 bits: z * 2^(30 - k) * m.
  const IBertSoftmaxConstants constants = constants_of(0.002);
  for (std::int64_t difference = -12000; difference <= 0; ++difference) {
    const IBertExp exp = ibert_exp(difference, constants.exp);
    const Int128 product = (Int128{exp.polynomial} << (kIBertExpHalvings - exp.halvings)) *
                           constants.exp_to_code.multiplier;
    const int shift = constants.exp_to_code.shift;
    Int128 expected = (product + (Int128{1} << (shift - 1))) >> shift;
    if ((expected << shift) - product == Int128{1} << (shift - 1)) expected -= expected & 1;
    expected = std::min<Int128>(expected, 32767);
    ASSERT_EQ(ibert_softmax_exponential(difference, constants),
              static_cast<std::uint32_t>(expected))
        << difference;
  }
}

TEST(IBertSoftmax, RoundsTheExponentialHalfToEven) {
  // Polynomial 5 and 7 at zero, factor 2^-31 * 2^30 = 1/2.
  EXPECT_EQ(ibert_softmax_exponential(0, {{-1, 0, 5}, {1, 31}}), 2U);
  EXPECT_EQ(ibert_softmax_exponential(0, {{-1, 0, 7}, {1, 31}}), 4U);
  EXPECT_EQ(ibert_softmax_exponential(0, {{-1, 0, 5}, {3, 32}}), 4U);
}

TEST(IBertSoftmax, SaturatesTheExponentialAt32767ForEveryShift) {
  for (const std::int8_t shift : std::vector<std::int8_t>{-128, -20, 0, 16, 30}) {
    EXPECT_EQ(ibert_softmax_exponential(0, {{-1, 0, 100000}, {1, shift}}), 32767U);
  }
  EXPECT_EQ(ibert_softmax_exponential(0, {{-1, 0, 100000}, {1, 127}}), 0U);
  EXPECT_EQ(ibert_softmax_exponential(0, {{-1, 0, 3}, {1, 28}}), 12U);
}

TEST(IBertSoftmax, MaskedCellsTakeNoPart) {
  const IBertSoftmaxConstants constants = constants_of(0.02);
  const IBertRow row = run({10, 1000000, 12, 2000000, -3}, constants, {1, 0, 1, 0, 1});
  const IBertRow compact = run({10, 12, -3}, constants);
  EXPECT_EQ(row.codes, (std::vector<std::uint16_t>{compact.codes[0], 0, compact.codes[1], 0,
                                                   compact.codes[2]}));
  EXPECT_EQ(row.exponentials[1], 0);
}

TEST(IBertSoftmax, RowWithoutAKeptCellIsZero) {
  const IBertRow row = run({1, 2}, constants_of(0.02), {0, 0});
  EXPECT_EQ(row.codes, (std::vector<std::uint16_t>{0, 0}));
}

}  // namespace
}  // namespace systole::hw

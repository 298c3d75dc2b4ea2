#include "hw/number/dyadic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/hw/number/golden_table.h"

namespace systole::hw {
namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();

/// The quotient in doubles, exact for the small operands used here.
double rounded(double x, Rounding rounding) {
  switch (rounding) {
    case Rounding::kHalfUp:
      return std::floor(x + 0.5);
    case Rounding::kHalfEven:
      return std::nearbyint(x);
    case Rounding::kFloor:
      break;
  }
  return std::floor(x);
}

TEST(ShiftRight, RoundsEverySmallQuotientLikeRealArithmetic) {
  for (const Rounding rounding : {Rounding::kHalfUp, Rounding::kHalfEven, Rounding::kFloor}) {
    for (unsigned shift = 0; shift <= 14; ++shift) {
      for (int x = -5000; x <= 5000; ++x) {
        const double expected = rounded(std::ldexp(x, -static_cast<int>(shift)), rounding);
        ASSERT_EQ(shift_right(x, shift, rounding), static_cast<std::int64_t>(expected))
            << x << " >> " << shift << " rounding " << static_cast<int>(rounding);
      }
    }
  }
}

TEST(ShiftRight, FarShiftsLeaveZeroOrTheFlooredSign) {
  for (const unsigned shift : {65U, 70U, 127U, 200U}) {
    for (const std::int64_t x : {kLowest, std::int64_t{-1}, std::int64_t{0}, kHighest}) {
      EXPECT_EQ(shift_right(x, shift, Rounding::kHalfUp), 0);
      EXPECT_EQ(shift_right(x, shift, Rounding::kHalfEven), 0);
      EXPECT_EQ(shift_right(x, shift, Rounding::kFloor), x < 0 ? -1 : 0);
    }
  }
}

TEST(ShiftRight, TreatsTheWholeWidthWithoutOverflow) {
  EXPECT_EQ(shift_right(kHighest, 1, Rounding::kHalfUp), std::int64_t{1} << 62);
  EXPECT_EQ(shift_right(kHighest, 63, Rounding::kHalfUp), 1);
  EXPECT_EQ(shift_right(kHighest, 63, Rounding::kHalfEven), 1);
  EXPECT_EQ(shift_right(kHighest, 63, Rounding::kFloor), 0);
  EXPECT_EQ(shift_right(std::int64_t{1} << 62, 63, Rounding::kHalfUp), 1);
  EXPECT_EQ(shift_right(std::int64_t{1} << 62, 63, Rounding::kHalfEven), 0);
  EXPECT_EQ(shift_right(kLowest, 63, Rounding::kHalfUp), -1);
  EXPECT_EQ(shift_right(kLowest, 64, Rounding::kHalfUp), 0);
  EXPECT_EQ(shift_right(kLowest, 64, Rounding::kHalfEven), 0);
  EXPECT_EQ(shift_right(kLowest, 64, Rounding::kFloor), -1);
  EXPECT_EQ(shift_right(-3 * (std::int64_t{1} << 61), 62, Rounding::kHalfUp), -1);
  EXPECT_EQ(shift_right(-3 * (std::int64_t{1} << 61), 62, Rounding::kHalfEven), -2);
}

TEST(Dyadic, MatchesTheReferenceTable) {
  for (const auto& entry : golden_cases("datapath/requant.json")) {
    const Dyadic factor = make_dyadic(entry["factor"], entry["bits"]);
    ASSERT_EQ(factor.multiplier, entry["m"]) << entry["factor"];
    ASSERT_EQ(factor.shift, entry["s"]) << entry["factor"];
    const auto x = entry["x"].get<std::vector<std::int64_t>>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (const unsigned bits : {8U, 16U, 31U}) {
        EXPECT_EQ(requantise(x[i], factor, Rounding::kHalfUp, symmetric_range(bits)),
                  entry["q" + std::to_string(bits)][i])
            << entry["factor"] << " times " << x[i];
      }
    }
  }
}

TEST(Dyadic, KeepsHalfAStepOfTheMantissa) {
  for (const unsigned bits : {8U, 12U, 16U, 31U}) {
    for (double factor = 1e-6; factor < 100; factor *= 1.0371) {
      const Dyadic dyadic = make_dyadic(factor, bits);
      const double value = std::ldexp(dyadic.multiplier, -dyadic.shift);
      EXPECT_LE(std::fabs(value / factor - 1), std::ldexp(1.0, -static_cast<int>(bits)));
      EXPECT_GE(dyadic.multiplier, std::int64_t{1} << (bits - 1));
      EXPECT_LT(dyadic.multiplier, std::int64_t{1} << bits);
    }
  }
}

TEST(Dyadic, FormsDifferOnAMantissaTieOnly) {
  const double tie = std::ldexp(std::ldexp(1.0, 30) + 0.5, -40);
  EXPECT_EQ(make_dyadic(tie, 31), (Dyadic{1 << 30, 40}));
  EXPECT_EQ(make_ibert_dyadic(tie), (Dyadic{(1 << 30) + 1, 40}));
  EXPECT_EQ(make_ibert_dyadic(-tie), (Dyadic{-(1 << 30) - 1, 40}));
  EXPECT_EQ(make_dyadic(0.1, 31), make_ibert_dyadic(0.1));
}

TEST(Dyadic, RenormalisesAMantissaThatRoundsUpToOne) {
  EXPECT_EQ(make_dyadic(std::nextafter(1.0, 0.0), 16), (Dyadic{1 << 15, 15}));
  EXPECT_EQ(make_ibert_dyadic(std::nextafter(1.0, 0.0)), (Dyadic{1 << 30, 30}));
  EXPECT_EQ(make_dyadic(1.0, 16), (Dyadic{1 << 15, 15}));
}

TEST(Dyadic, SaturatesTheShiftOfAFactorTooSmallToMatter) {
  const Dyadic tiny = make_dyadic(std::ldexp(0.75, -90), 16);
  EXPECT_EQ(tiny.shift, kMaxDyadicShift);
  EXPECT_EQ(scale(std::numeric_limits<std::int32_t>::min(), tiny, Rounding::kHalfUp), 0);
  EXPECT_EQ(scale(std::numeric_limits<std::int32_t>::max(), tiny, Rounding::kHalfUp), 0);
  EXPECT_EQ(make_ibert_dyadic(std::ldexp(0.75, -43)).shift, 74);
  EXPECT_EQ(make_dyadic(0.0, 16).multiplier, 0);
}

TEST(Dyadic, RefusesFactorsItCannotHold) {
  EXPECT_THROW(make_dyadic(std::numeric_limits<double>::quiet_NaN(), 16), InputError);
  EXPECT_THROW(make_dyadic(std::numeric_limits<double>::infinity(), 16), InputError);
  EXPECT_THROW(make_dyadic(65536.0, 16), InputError);
  EXPECT_EQ(make_dyadic(65535.0, 16), (Dyadic{65535, 0}));
  EXPECT_THROW(make_dyadic(0.5, 1), InputError);
  EXPECT_THROW(make_dyadic(0.5, 32), InputError);
}

TEST(Requantise, TakesTheWidestProductOfEachMode) {
  constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(signed_bits(std::int64_t{kMin} * 65535), 48U);
  EXPECT_EQ(signed_bits(std::int64_t{kMin} * kMax), 63U);
  EXPECT_EQ(scale(kMin, {kMax, 31}, Rounding::kHalfEven), -2147483647);
  EXPECT_EQ(ibert_requantise(kMin, {kMax, 0}, std::int64_t{kMin} * kMax, 32),
            2 * (std::int64_t{kMin} * kMax));
}

TEST(Requantise, ClampsSymmetricallyByDefaultAndToTwosComplementForIBert) {
  const Dyadic half{1 << 15, 16};
  EXPECT_EQ(requantise(-1000, half, Rounding::kHalfUp, symmetric_range(8)), -127);
  EXPECT_EQ(requantise(1000, half, Rounding::kHalfUp, -5, 9), 9);
  EXPECT_EQ(requantise(-1, half, Rounding::kHalfUp, symmetric_range(8)), 0);
  EXPECT_EQ(requantise(-3, half, Rounding::kHalfUp, symmetric_range(8)), -1);
  EXPECT_EQ(ibert_requantise(-1000, half, 0, 8), -128);
  EXPECT_EQ(ibert_requantise(-3, half, 0, 8), -2);
  EXPECT_EQ(ibert_requantise(-100000, half, 0, 22), -50000);
}

TEST(Requantise, AddsTheIBertResidualBeforeTheClamp) {
  EXPECT_EQ(ibert_requantise(400, {1 << 15, 16}, -150, 8), 50);
  EXPECT_EQ(ibert_requantise(400, {1 << 15, 16}, -250, 4), -8);
}

}  // namespace
}  // namespace systole::hw

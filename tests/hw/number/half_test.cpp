#include "hw/number/half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "tests/support/half_oracle.h"

namespace systole::hw {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kRandomPairs = 1'000'000;
#else
constexpr std::size_t kRandomPairs = 10'000'000;
#endif

/// Every bit pattern.
template <typename Visit>
void for_each_half(Visit visit) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) visit(Half{static_cast<std::uint16_t>(bits)});
}

/// The value of a magnitude's bits; infinity stands for 2^16, where rounding would put it.
double magnitude_of(unsigned bits) {
  const unsigned field = bits >> 10;
  if (field == 0) return std::ldexp(bits, -24);
  return std::ldexp((bits & 0x3ff) | 0x400, static_cast<int>(field) - 25);
}

double value_of(Half x) {
  const double magnitude = magnitude_of(x.bits & kHalfMagnitude);
  return x.bits >> 15 != 0 ? -magnitude : magnitude;
}

TEST(Half, ConvertsToFloatExactly) {
  for_each_half([](Half x) {
    const float value = to_float(x);
    if (is_nan(x)) {
      ASSERT_TRUE(std::isnan(value)) << x.bits;
    } else if ((x.bits & kHalfMagnitude) == kHalfInfinity.bits) {
      ASSERT_TRUE(std::isinf(value)) << x.bits;
    } else {
      ASSERT_EQ(double{value}, value_of(x)) << x.bits;
    }
    ASSERT_EQ(std::signbit(value), x.bits >> 15 != 0) << x.bits;
    ASSERT_EQ(to_half(value), is_nan(x) ? kHalfNan : x) << x.bits;
  });
}

template <typename Float>
void expect_rounding(Float value, unsigned bits) {
  ASSERT_EQ(to_half(value).bits, bits) << value;
  ASSERT_EQ(to_half(-value).bits, bits | kHalfSign) << -value;
}

template <typename Float>
void round_around_every_midpoint() {
  constexpr Float kFar = std::numeric_limits<Float>::infinity();
  for (unsigned below = 0; below < kHalfInfinity.bits; ++below) {
    const auto middle = static_cast<Float>((magnitude_of(below) + magnitude_of(below + 1)) / 2);
    ASSERT_NO_FATAL_FAILURE(expect_rounding(middle, below + (below & 1)));
    ASSERT_NO_FATAL_FAILURE(expect_rounding(std::nextafter(middle, Float{0}), below));
    ASSERT_NO_FATAL_FAILURE(expect_rounding(std::nextafter(middle, kFar), below + 1));
  }
  for (const Float huge : {Float{65536}, std::numeric_limits<Float>::max(), kFar}) {
    expect_rounding(huge, kHalfInfinity.bits);
  }
  expect_rounding(std::numeric_limits<Float>::denorm_min(), 0);
  expect_rounding(std::numeric_limits<Float>::min(), 0);
  EXPECT_EQ(to_half(-std::numeric_limits<Float>::quiet_NaN()), kHalfNan);
}

TEST(Half, RoundsAFloatToTheNearest) { round_around_every_midpoint<float>(); }
TEST(Half, RoundsADoubleToTheNearestOnce) { round_around_every_midpoint<double>(); }

TEST(Half, SumsAndProductsAreThoseOfIntegersInEveryCorner) {
  std::mt19937_64 random(1);
  const systole::test::HalfPairs corners = systole::test::half_corner_pairs(random, 40);
  for (std::size_t i = 0; i < corners.a.size(); ++i) {
    const Half a = corners.a[i];
    const Half b = corners.b[i];
    ASSERT_EQ(half_add(a, b).bits, systole::test::oracle_add(a, b).bits)
        << a.bits << " + " << b.bits;
    ASSERT_EQ(half_sub(a, b).bits, systole::test::oracle_add(a, half_negate(b)).bits)
        << a.bits << " - " << b.bits;
    ASSERT_EQ(half_mul(a, b).bits, systole::test::oracle_mul(a, b).bits)
        << a.bits << " * " << b.bits;
  }
}

TEST(Half, SumsAndProductsOfRandomPairsAreThoseOfIntegers) {
  std::mt19937_64 random(2);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kRandomPairs; ++i) {
    const std::uint64_t bits = random();
    const Half a{static_cast<std::uint16_t>(bits)};
    const Half b{static_cast<std::uint16_t>(bits >> 16)};
    wrong += half_add(a, b) != systole::test::oracle_add(a, b) ? 1 : 0;
    wrong += half_mul(a, b) != systole::test::oracle_mul(a, b) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(Half, TheLargerOfTwoOrdersZerosAndKeepsNan) {
  for (const Half a : systole::test::special_halves()) {
    for (const Half b : systole::test::special_halves()) {
      Half expected = kHalfNan;
      if (!is_nan(a) && !is_nan(b)) {
        const bool a_larger =
            value_of(a) > value_of(b) || (value_of(a) == value_of(b) && (a.bits & kHalfSign) == 0);
        expected = a_larger ? a : b;
      }
      ASSERT_EQ(half_max(a, b).bits, expected.bits) << a.bits << ' ' << b.bits;
    }
  }
}

/// Where the rounding to the magnitude `bits` begins and ends.
struct Midpoints {
  explicit Midpoints(unsigned bits)
      : low(bits == 0 ? 0 : (magnitude_of(bits - 1) + magnitude_of(bits)) / 2),
        high(bits == kHalfInfinity.bits ? std::numeric_limits<double>::infinity()
                                        : (magnitude_of(bits) + magnitude_of(bits + 1)) / 2) {}
  double low, high;
};

/// `scaled(m)` is exact, and rises or falls with m as m stands to the result, where it is 1.
template <typename Scaled>
void expect_nearest(Half result, Scaled scaled) {
  const unsigned bits = result.bits & kHalfMagnitude;
  const Midpoints points(bits);
  const bool even = (bits & 1) == 0;
  ASSERT_TRUE(scaled(points.low) < 1 || (even && scaled(points.low) == 1)) << result.bits;
  ASSERT_TRUE(scaled(points.high) > 1 || (even && scaled(points.high) == 1)) << result.bits;
}

/// Finite, and not a zero.
bool is_ordinary(Half x) {
  const unsigned magnitude = x.bits & kHalfMagnitude;
  return magnitude != 0 && magnitude < kHalfInfinity.bits;
}

TEST(Half, ReciprocalsAreRoundedRight) {
  for_each_half([](Half x) {
    if (!is_ordinary(x)) return;
    const Half result = half_recip(x);
    ASSERT_EQ(result.bits & kHalfSign, x.bits & kHalfSign) << x.bits;
    const double value = std::fabs(value_of(x));
    ASSERT_NO_FATAL_FAILURE(expect_nearest(result, [value](double m) { return m * value; }));
  });
}

/// Distance of a result to the nearest point where rounding steps, as a part of it.
double margin(long double result, Half rounded) {
  const Midpoints points(rounded.bits & kHalfMagnitude);
  const long double below = result - points.low;
  const long double above = points.high - result;
  return static_cast<double>(std::min(below, above) / result);
}

constexpr double kSafeMargin = 0x1p-30;

TEST(Half, ReciprocalRootsAreRoundedRightOnAnyHost) {
  double least = 1;
  for_each_half([&least](Half x) {
    if (!is_ordinary(x) || x.bits >= kHalfSign) return;
    const Half result = half_recip_sqrt(x);
    const double value = value_of(x);
    ASSERT_NO_FATAL_FAILURE(expect_nearest(result, [value](double m) { return m * m * value; }));
    least = std::min(least, margin(1 / std::sqrt(static_cast<long double>(value)), result));
  });
  EXPECT_GT(least, kSafeMargin);
  RecordProperty("least_margin", std::to_string(std::log2(least)));
}

TEST(Half, ExponentialsAreRoundedRightOnAnyHost) {
  constexpr double kFar = 100;  // far beyond it is 0 or infinite, whatever a library says
  double least = 1;
  for_each_half([&least](Half x) {
    if (!is_ordinary(x)) return;
    const double value = value_of(x);
    const Half result = half_exp(x);
    if (std::fabs(value) > kFar) {
      ASSERT_EQ(result, value < 0 ? kHalfZero : kHalfInfinity) << value;
      return;
    }
    const double found = margin(std::exp(static_cast<long double>(value)), result);
    ASSERT_GT(found, kSafeMargin) << value << ' ' << result.bits;
    least = std::min(least, found);
  });
  RecordProperty("least_margin", std::to_string(std::log2(least)));
}

TEST(Half, FunctionsOfZerosInfinitiesAndNan) {
  struct Case {
    unsigned x, recip, recip_sqrt, exp;
  };
  for (const Case& expected : {Case{0x0000, 0x7c00, 0x7c00, 0x3c00},
                               {0x8000, 0xfc00, 0xfc00, 0x3c00},
                               {0x7c00, 0x0000, 0x0000, 0x7c00},
                               {0xfc00, 0x8000, 0x7e00, 0x0000},
                               {0x7c01, 0x7e00, 0x7e00, 0x7e00},
                               {0xfe00, 0x7e00, 0x7e00, 0x7e00},
                               {0x8001, 0xfc00, 0x7e00, 0x3c00},
                               {0xbc00, 0xbc00, 0x7e00, 0x35e3}}) {
    const Half x{static_cast<std::uint16_t>(expected.x)};
    EXPECT_EQ(half_recip(x).bits, expected.recip) << expected.x;
    EXPECT_EQ(half_recip_sqrt(x).bits, expected.recip_sqrt) << expected.x;
    EXPECT_EQ(half_exp(x).bits, expected.exp) << expected.x;
  }
}

}  // namespace
}  // namespace systole::hw

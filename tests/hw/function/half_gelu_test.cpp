#include "hw/function/half_gelu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

namespace systole::hw {
namespace {

/// In the form with tanh, and with more digits than the table's.
long double tanh_gelu(long double x) {
  const long double root = std::sqrt(2 / std::acos(-1.0L));
  return x / 2 * (1 + std::tanh(root * (x + 0.044715L * x * x * x)));
}

double value_of(Half x) { return to_float(x); }

/// Distance of x to the nearest point where its rounding steps, relative to x.
double margin(long double x) {
  const auto near = static_cast<double>(x);
  const Half rounded = to_half(near);
  double least = 1;
  for (const int side : {-1, 1}) {
    const Half next{static_cast<std::uint16_t>(rounded.bits + side)};
    const long double step = (value_of(rounded) + static_cast<long double>(value_of(next))) / 2;
    least = std::min(least, std::fabs(static_cast<double>((step - x) / x)));
  }
  return least;
}

TEST(HalfGelu, TableIsTheSameOnEveryHost) {
  const HalfGeluTable& table = half_gelu_table();
  for (std::size_t i = 0; i < kHalfGeluSamples; ++i) {
    const long double x = -8 + static_cast<long double>(i) / 128;
    const long double sample = tanh_gelu(x);
    const long double slope = (tanh_gelu(x + 1.0L / 128) - sample) * 128;
    for (const auto& [real, entry] :
         {std::make_pair(sample, table.samples[i]), std::make_pair(slope, table.slopes[i])}) {
      ASSERT_EQ(value_of(entry), value_of(to_half(static_cast<double>(real)))) << i;
      ASSERT_NE(entry.bits, kHalfSign) << i;
      if (value_of(entry) == 0) {
        ASSERT_LT(std::fabs(real), 0x1.ffp-26L) << i;  // far from half a subnormal
      } else {
        ASSERT_GT(margin(real), 0x1p-30) << i;
      }
    }
  }
}

TEST(HalfGelu, KeepsTheEndsOfTheTable) {
  for (unsigned bits = 0x4800; bits <= 0x7c00; ++bits) {  // from 8 to infinity
    ASSERT_EQ(half_gelu({static_cast<std::uint16_t>(bits)}).bits, bits);
    ASSERT_EQ(half_gelu({static_cast<std::uint16_t>(bits | kHalfSign)}), kHalfZero);
  }
  EXPECT_EQ(half_gelu({0x7c01}), kHalfNan);
  EXPECT_EQ(half_gelu({0xfe00}), kHalfNan);
}

TEST(HalfGelu, IsNearTheFunctionForEveryInput) {
  double squares = 0;
  double most = 0;
  std::size_t count = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const Half x{static_cast<std::uint16_t>(bits)};
    if (!(std::fabs(value_of(x)) <= 8)) continue;
    const auto real = static_cast<double>(tanh_gelu(value_of(x)));
    const double error = std::fabs(value_of(half_gelu(x)) - real);
    // Half a step of the sample and of the sum; the rest, with the chord's error, is far smaller.
    ASSERT_LE(error, 0x1p-10 * std::fabs(real) + 0x1p-16) << value_of(x);
    squares += error * error;
    most = std::max(most, error);
    ++count;
  }
  EXPECT_EQ(count, 2 * 0x4801U);
  const double mean = squares / static_cast<double>(count);
  EXPECT_LT(mean, 1e-7);
  RecordProperty("mean_squared_error", std::to_string(mean * 1e9) + "e-9");
  RecordProperty("largest_error", std::to_string(most));
}

}  // namespace
}  // namespace systole::hw

#include "hw/function/half_table.h"

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

long double tanh_silu(long double x) { return x / 2 * (1 + std::tanh(x / 2)); }

struct Function {
  const char* name;
  const HalfTable& (*table)();
  long double (*real)(long double);
  double limit;
  double mean;  ///< of squared errors, at most
};

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

class HalfTables : public testing::TestWithParam<Function> {};

TEST_P(HalfTables, AreTheSameOnEveryHost) {
  const Function& function = GetParam();
  const HalfTable& table = function.table();
  ASSERT_EQ(table.limit, function.limit);
  const long double step = 2 * static_cast<long double>(function.limit) / kHalfSamples;
  for (std::size_t i = 0; i < kHalfSamples; ++i) {
    const long double x = -function.limit + static_cast<long double>(i) * step;
    const long double sample = function.real(x);
    const long double slope = (function.real(x + step) - sample) / step;
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

TEST_P(HalfTables, KeepTheirEnds) {
  const HalfTable& table = GetParam().table();
  for (unsigned bits = to_half(GetParam().limit).bits; bits <= 0x7c00; ++bits) {  // to infinity
    ASSERT_EQ(half_lookup(table, {static_cast<std::uint16_t>(bits)}).bits, bits);
    ASSERT_EQ(half_lookup(table, {static_cast<std::uint16_t>(bits | kHalfSign)}), kHalfZero);
  }
  EXPECT_EQ(half_lookup(table, {0x7c01}), kHalfNan);
  EXPECT_EQ(half_lookup(table, {0xfe00}), kHalfNan);
}

TEST_P(HalfTables, AreNearTheFunctionForEveryInput) {
  const Function& function = GetParam();
  double squares = 0;
  double most = 0;
  std::size_t count = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const Half x{static_cast<std::uint16_t>(bits)};
    if (!(std::fabs(value_of(x)) <= function.limit)) continue;
    const auto real = static_cast<double>(function.real(value_of(x)));
    const double error = std::fabs(value_of(half_lookup(function.table(), x)) - real);
    // Half a step of the sample and of the sum; the rest, with the chord's error, is far smaller.
    ASSERT_LE(error, 0x1p-10 * std::fabs(real) + 0x1p-16) << value_of(x);
    squares += error * error;
    most = std::max(most, error);
    ++count;
  }
  EXPECT_EQ(count, 2 * (to_half(function.limit).bits + 1U));
  const double mean = squares / static_cast<double>(count);
  EXPECT_LT(mean, function.mean);
  RecordProperty("mean_squared_error", std::to_string(mean * 1e9) + "e-9");
  RecordProperty("largest_error", std::to_string(most));
}

INSTANTIATE_TEST_SUITE_P(All, HalfTables,
                         testing::Values(Function{"gelu", half_gelu_table, tanh_gelu, 8, 1e-7},
                                         Function{"silu", half_silu_table, tanh_silu, 16, 3e-7}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(HalfTable, AreThoseOfTheirFunctions) {
  const Half one = kHalfOne;
  EXPECT_EQ(half_gelu(one), to_half(0.8411919906));
  EXPECT_EQ(half_silu(one), to_half(0.7310585786));
}

}  // namespace
}  // namespace systole::hw

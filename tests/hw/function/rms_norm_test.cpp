#include "hw/function/rms_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace systole::hw {
namespace {

using Integers = std::vector<std::int32_t>;

std::uint64_t squares(const Integers& x) {
  std::uint64_t sum = 0;
  for (const std::int32_t value : x) sum += static_cast<std::uint64_t>(std::int64_t{value} * value);
  return sum;
}

Integers outputs(const Integers& x, const RmsNormConstants& constants, unsigned bits) {
  const LayerNormStatistics statistics = rms_norm_statistics(squares(x));
  Integers out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    out.push_back(rms_norm_output(x[i], i, statistics, constants, symmetric_range(bits)));
  }
  return out;
}

TEST(RmsNorm, FollowsTheRealFunctionWithinAStep) {
  constexpr std::size_t kLength = 128;
  constexpr double kOutputScale = 6.0 / 127;
  std::mt19937 random(5);
  for (const double deviation : {20.0, 600.0, 8000.0, 60000.0}) {
    std::normal_distribution<double> normal(deviation / 2, deviation);
    std::vector<double> gamma(kLength);
    Integers x(kLength);
    for (std::size_t i = 0; i < kLength; ++i) {
      gamma[i] = 0.5 + static_cast<double>(i) / kLength;
      x[i] = static_cast<std::int32_t>(std::lround(normal(random)));
    }
    const double rms = std::sqrt(static_cast<double>(squares(x)) / kLength);
    const Integers out = outputs(x, make_rms_norm_constants(gamma, kOutputScale), 16);
    for (std::size_t i = 0; i < kLength; ++i) {
      EXPECT_NEAR(out[i] * kOutputScale, x[i] / rms * gamma[i],
                  0.6 * kOutputScale + 0.6 / deviation);
    }
  }
}

TEST(RmsNorm, RowOfZerosGivesZeros) {
  const RmsNormConstants constants = make_rms_norm_constants({1.0, -2.0, 0.5}, 0.1);
  EXPECT_EQ(outputs({0, 0, 0}, constants, 8), (Integers{0, 0, 0}));
  EXPECT_EQ(rms_norm_statistics(0).deviation, 1U);
}

TEST(RmsNorm, RoundsHalfUpAndClamps) {
  // The root of 9 + 16 is 5: 3 / 5 and -4 / 5 with one fraction bit are 1 and -2.
  EXPECT_EQ(outputs({3, -4}, {{1, 1}, 1, 1}, 8), (Integers{1, -1}));
  EXPECT_EQ(outputs({3, -4}, {{3, 3}, 2, 1}, 8), (Integers{1, -1}));
  EXPECT_EQ(outputs({3, -4}, {{900, 900}, 0, 1}, 8), (Integers{127, -127}));
}

TEST(RmsNorm, StatisticsOfTheWidestRow) {
  const LayerNormStatistics widest =
      rms_norm_statistics(squares(Integers(kLayerNormMaxLength, -(1 << 23))));
  EXPECT_EQ(widest.deviation, 1U << 31);
  EXPECT_EQ(widest.factor, 1U);
}

TEST(RmsNorm, WordsOfNoRowAreLegal) {
  const LayerNormStatistics most = rms_norm_statistics(~std::uint64_t{0});
  EXPECT_EQ(most.deviation, 0xffffffffU);
  EXPECT_EQ(most.factor, 0U);
  // 2^23 * 2^31 >> 1 leaves the register; its low 32 bits are zero.
  EXPECT_EQ(layernorm_normalise(-(1 << 23), rms_norm_statistics(1), 30), 0);
  EXPECT_EQ(layernorm_normalise(-3, rms_norm_statistics(1), 30), 1 << 30);
}

TEST(RmsNormConstantsCheck, RefusesWhatTheRegistersCannotHold) {
  EXPECT_THROW(make_rms_norm_constants({}, 0.1), InputError);
  EXPECT_THROW(make_rms_norm_constants({1.0}, 0.0), InputError);
  EXPECT_THROW(make_rms_norm_constants({std::nan("")}, 0.1), InputError);
  EXPECT_THROW(make_rms_norm_constants({0.0, 0.0}, 0.1), InputError);
  EXPECT_THROW(make_rms_norm_constants({1e9}, 0.1), InputError);
  EXPECT_THROW(make_rms_norm_constants({1.0}, 0.1, 31), std::invalid_argument);
}

}  // namespace
}  // namespace systole::hw

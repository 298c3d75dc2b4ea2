#include "hw/function/layernorm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "hw/function/ibert_layernorm.h"
#include "hw/function/rms_norm.h"
#include "tests/hw/number/golden_table.h"

namespace systole::hw {
namespace {

using Integers = std::vector<std::int32_t>;

Integers random_row(std::size_t n, double deviation, double mean, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(mean, deviation);
  Integers row(n);
  for (auto& x : row) x = static_cast<std::int32_t>(std::lround(normal(random)));
  return row;
}

TEST(LayerNorm, MatchesTheReferenceTable) {
  for (const auto& entry : golden_cases("datapath/layernorm.json")) {
    const LayerNormConstants constants = make_layernorm_constants(
        entry["gamma"].get<std::vector<double>>(), entry["beta"].get<std::vector<double>>(),
        entry["output_scale"], entry["fraction_bits"], entry["multiplier_bits"]);
    EXPECT_EQ(constants.multiplier, entry["multiplier"].get<std::vector<std::int32_t>>());
    EXPECT_EQ(constants.bias, entry["bias"].get<std::vector<std::int64_t>>());
    EXPECT_EQ(constants.shift, entry["shift"]);
    for (const auto& row : entry["rows"]) {
      const auto x = row["x"].get<Integers>();
      Integers out(x.size());
      layernorm_row(x.data(), constants, out.data(), entry["output_bits"]);
      EXPECT_EQ(out, row["out"].get<Integers>());
    }
  }
}

TEST(LayerNorm, FollowsTheRealFunctionWithinAStep) {
  constexpr std::size_t kLength = 128;
  constexpr double kOutputScale = 5.0 / 127;
  const std::vector<double> gamma(kLength, 1.0);
  const std::vector<double> beta(kLength, 0.25);
  const LayerNormConstants constants = make_layernorm_constants(gamma, beta, kOutputScale);
  for (const double deviation : {20.0, 600.0, 8000.0}) {
    const Integers x = random_row(kLength, deviation, 100, 4);
    double mean = 0;
    for (const auto value : x) mean += value / static_cast<double>(kLength);
    double variance = 0;
    for (const auto value : x) variance += (value - mean) * (value - mean) / kLength;
    std::vector<std::int8_t> out(kLength);
    layernorm_row(x.data(), constants, out.data());
    for (std::size_t i = 0; i < kLength; ++i) {
      const double expected = (x[i] - mean) / std::sqrt(variance) + 0.25;
      if (std::fabs(expected) < 4.9) {
        EXPECT_NEAR(out[i] * kOutputScale, expected, 0.6 * kOutputScale + 0.6 / deviation);
      }
    }
  }
}

TEST(LayerNorm, RowWithoutVarianceGivesTheBias) {
  const LayerNormConstants constants =
      make_layernorm_constants({1.0, 2.0, 0.5}, {0.1, -0.2, 0.4}, 0.1);
  for (const std::int32_t value : {0, 1, -7, 32767}) {
    const Integers x(3, value);
    std::vector<std::int8_t> out(3);
    layernorm_row(x.data(), constants, out.data());
    EXPECT_EQ(out, (std::vector<std::int8_t>{1, -2, 4}));
    EXPECT_EQ(layernorm_statistics(x.data(), 3).deviation, 1U);
  }
}

TEST(LayerNorm, RoundsTheMeanHalfUp) {
  const auto mean = [](const Integers& x) { return layernorm_statistics(x.data(), x.size()).mean; };
  EXPECT_EQ(mean({0, 1}), 1);
  EXPECT_EQ(mean({-1, 0}), 0);
  EXPECT_EQ(mean({-2, -1}), -1);
  EXPECT_EQ(mean({1, 1, 2}), 1);
  EXPECT_EQ(mean({-1, -1, -2}), -1);
}

TEST(LayerNorm, RoundsTheOutputHalfUp) {
  const Integers constant(4, 9);
  const LayerNormConstants constants{{1, 1, 1, 1}, {2, -2, 6, -6}, 2, kLayerNormFractionBits};
  Integers out(4);
  layernorm_row(constant.data(), constants, out.data());
  EXPECT_EQ(out, (Integers{1, 0, 2, -1}));
}

TEST(LayerNorm, StatisticsKeepTheDocumentedWidths) {
  const auto alternating = [](std::size_t n, unsigned bits) {
    Integers x(n);
    const auto limit = static_cast<std::int32_t>(symmetric_range(bits).hi);
    for (std::size_t i = 0; i < n; ++i) x[i] = i % 2 == 0 ? limit : -limit;
    return layernorm_statistics(x.data(), n);
  };
  // Random s16 rows stay at 33 bits; the worst row of 128 channels needs four more.
  EXPECT_EQ(bit_length(alternating(128, 16).sum_squares), 37U);
  EXPECT_EQ(bit_length(alternating(128, 22).sum_squares), 49U);
  const LayerNormStatistics widest = alternating(kLayerNormMaxLength, kLayerNormMaxInputBits);
  EXPECT_EQ(bit_length(widest.sum_squares), 62U);
  EXPECT_LE(widest.sqrt_passes, kMaxIntSqrtPasses);
  EXPECT_EQ(widest.factor, 1U);
}

void expect_same_from_sums(const Integers& x) {
  std::int64_t sum = 0;
  std::uint64_t sum_squares = 0;
  for (const std::int32_t value : x) {
    sum += value;
    sum_squares += static_cast<std::uint64_t>(std::int64_t{value} * value);
  }
  const LayerNormStatistics two_passes = layernorm_statistics(x.data(), x.size());
  const LayerNormStatistics from_sums = layernorm_statistics_from_sums(sum, sum_squares, x.size());
  EXPECT_EQ(from_sums.mean, two_passes.mean);
  EXPECT_EQ(from_sums.sum_squares, two_passes.sum_squares);
  EXPECT_EQ(from_sums.deviation, two_passes.deviation);
  EXPECT_EQ(from_sums.factor, two_passes.factor);
}

TEST(LayerNorm, SumsGiveTheStatisticsOfTwoPasses) {
  unsigned seed = 0;
  for (const std::size_t n : {1U, 2U, 3U, 64U, 197U, 768U}) {
    for (const double deviation : {0.4, 30.0, 5000.0, 1e6}) {
      for (const double mean : {0.0, -3.5, 1e4, -4e6}) {
        expect_same_from_sums(random_row(n, deviation, mean, ++seed));
      }
    }
  }
}

TEST(LayerNorm, SumsGiveTheStatisticsOfExtremeRows) {
  constexpr std::int32_t kLowest = -(1 << 23);
  constexpr std::int32_t kHighest = (1 << 23) - 1;
  for (const std::size_t n :
       {std::size_t{1}, std::size_t{5}, kLayerNormMaxLength - 1, kLayerNormMaxLength}) {
    expect_same_from_sums(Integers(n, kLowest));
    expect_same_from_sums(Integers(n, kHighest));
    Integers alternating(n, kLowest);
    for (std::size_t i = 0; i < n; i += 2) alternating[i] = kHighest;
    expect_same_from_sums(alternating);
    Integers one_off(n, kHighest);
    one_off[n / 2] = kLowest;
    expect_same_from_sums(one_off);
  }
}

TEST(LayerNorm, WordsOfNoRowAreLegal) {
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(layernorm_statistics_from_sums(kHighest, 0, 1).mean, (1 << 23) - 1);
  EXPECT_EQ(layernorm_statistics_from_sums(kLowest, 0, 1).mean, -(1 << 23));
  // The sum saturates to 2^39 - 1 before it is divided.
  EXPECT_EQ(layernorm_statistics_from_sums(kHighest, 0, kLayerNormMaxLength).mean, (1 << 23) - 1);
  EXPECT_EQ(layernorm_statistics_from_sums(1LL << 50, 0, 1 << 16).mean, (1 << 23) - 1);
  const LayerNormStatistics negative = layernorm_statistics_from_sums(100, 3, 10);
  EXPECT_EQ(negative.mean, 10);
  EXPECT_EQ(negative.sum_squares, 0U);
  EXPECT_EQ(negative.deviation, 1U);
  const LayerNormStatistics most = layernorm_statistics_from_sums(0, ~std::uint64_t{0} >> 1, 1);
  EXPECT_EQ(most.sum_squares, ~std::uint64_t{0} >> 1);
  EXPECT_EQ(most.factor, 0U);
}

TEST(LayerNorm, SaturatesToTheOutputWidth) {
  const LayerNormConstants constants =
      make_layernorm_constants(std::vector<double>(64, 1.0), std::vector<double>(64, 0.0), 0.01);
  Integers x(64, 0);
  x[5] = 30000;
  x[9] = -30000;
  std::vector<std::int16_t> out(64);
  layernorm_row(x.data(), constants, out.data(), 8);
  EXPECT_EQ(out[5], 127);
  EXPECT_EQ(out[9], -127);
  layernorm_row(x.data(), constants, out.data(), 12);
  EXPECT_NEAR(out[5], 566, 1);
  std::vector<std::int8_t> bytes(64);
  EXPECT_THROW(layernorm_row(x.data(), constants, bytes.data(), 12), std::invalid_argument);
}

TEST(LayerNormConstantsCheck, RefusesWhatTheRegistersCannotHold) {
  const double nan = std::nan("");
  EXPECT_THROW(make_layernorm_constants({}, {}, 0.1), InputError);
  EXPECT_THROW(make_layernorm_constants({1.0}, {1.0, 2.0}, 0.1), InputError);
  EXPECT_THROW(make_layernorm_constants({1.0}, {0.0}, 0.0), InputError);
  EXPECT_THROW(make_layernorm_constants({1.0}, {0.0}, nan), InputError);
  EXPECT_THROW(make_layernorm_constants({nan, 1.0}, {0.0, 0.0}, 0.1), InputError);
  EXPECT_THROW(make_layernorm_constants({1.0}, {nan}, 0.1), InputError);
  EXPECT_THROW(make_layernorm_constants({0.0, 0.0}, {1.0, 1.0}, 0.1), InputError);
  EXPECT_THROW(make_layernorm_constants({1e9}, {0.0}, 0.1), InputError);
  EXPECT_THROW(make_layernorm_constants({1e-6}, {1e6}, 0.1), InputError);
  EXPECT_THROW(make_layernorm_constants({1.0}, {0.0}, 0.1, 31), std::invalid_argument);
}

TEST(IBertLayerNorm, RoundsTheMeanHalfToEven) {
  EXPECT_EQ(mean_half_even(1, 2), 0);
  EXPECT_EQ(mean_half_even(3, 2), 2);
  EXPECT_EQ(mean_half_even(-1, 2), 0);
  EXPECT_EQ(mean_half_even(-3, 2), -2);
  EXPECT_EQ(mean_half_even(-4, 3), -1);
  EXPECT_EQ(mean_half_even(5, 3), 2);
}

TEST(IBertLayerNorm, ShiftHoldsTheSumOfSquaresIn32Bits) {
  for (const double deviation : {10.0, 5e4, 4e5, 3e8}) {
    const Integers x = random_row(64, deviation, deviation / 2, 8);
    const unsigned shift = ibert_layernorm_shift(x.data(), x.size());
    EXPECT_LT(bit_length(ibert_layernorm_statistics(x.data(), x.size(), shift).sum_squares), 34U);
    if (shift > 0) {
      const auto before = ibert_layernorm_statistics(x.data(), x.size(), shift - 1);
      EXPECT_GT(before.sum_squares, std::uint64_t{1} << 32);
    }
  }
  const Integers small{1, 2, 3};
  EXPECT_EQ(ibert_layernorm_shift(small.data(), small.size()), 0U);
}

TEST(IBertLayerNorm, RowWithoutVarianceGivesTheBias) {
  const Integers x(5, 123);
  const IBertLayerNormStatistics statistics = ibert_layernorm_statistics(x.data(), x.size(), 0);
  EXPECT_EQ(statistics.deviation, 0);
  EXPECT_EQ(ibert_layernorm_output(x[0], statistics, -77), -77);
}

TEST(IBertLayerNorm, BiasIsFlooredOnTheOutputGrid) {
  EXPECT_EQ(ibert_layernorm_bias(1.0, 0.0, 4), 0);
  EXPECT_EQ(ibert_layernorm_bias(1.0, 1.0, 4), std::ldexp(1.0, 29));
  EXPECT_EQ(ibert_layernorm_bias(2.0, -3.0, 16), -1.5 * std::ldexp(1.0, 28));
}

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

#include "hw/stream/stream_functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace systole::hw::stream {
namespace {

/// floor((x multiplier + 2^(shift-1)) / 2^shift) in real arithmetic, which is exact here.
std::int64_t half_up(std::int64_t x, unsigned multiplier, unsigned shift) {
  const double product = static_cast<double>(x) * multiplier;
  return static_cast<std::int64_t>(std::floor(product / std::exp2(shift) + 0.5));
}

TEST(StreamRequantise, RoundsHalfUpAndSaturatesOnce) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const std::int32_t x =
        wrap(static_cast<std::int64_t>(random()), 1 + static_cast<unsigned>(random() % 26));
    const Requantiser by{static_cast<std::uint8_t>(random()),
                         static_cast<std::uint8_t>(random() % 32),
                         static_cast<std::int8_t>(random())};
    EXPECT_EQ(requantise(x, by),
              std::clamp<std::int64_t>(half_up(x, by.multiplier, by.shift) + by.addend, -128, 127))
        << x << " " << int{by.multiplier} << " " << int{by.shift};
  }
  EXPECT_EQ(requantise(-3, {1, 1, 0}), -1);
  EXPECT_EQ(requantise(3, {1, 1, 0}), 2);
  EXPECT_EQ(requantise(1000, {1, 0, -100}), 127);
  EXPECT_EQ(requantise(-1000, {1, 0, 100}), -128);
}

TEST(StreamRequantise, LosesTheRoundingBitBeyondItsProduct) {
  for (unsigned shift = 0; shift < 256; ++shift) {
    const Requantiser by{255, static_cast<std::uint8_t>(shift), 0};
    if (shift < 18) continue;
    EXPECT_EQ(requantise(1, by), 0) << shift;
    EXPECT_EQ(requantise(-1, by), shift <= 35 ? 0 : -1) << shift;
  }
}

TEST(StreamSoftmax, EqualScoresGiveEqualProbabilitiesUntilTheInverseIsZero) {
  std::array<std::int8_t, kGroup> group;
  for (const int score : {-128, -1, 0, 127}) {
    group.fill(static_cast<std::int8_t>(score));
    SoftmaxRow row;
    for (std::size_t length = kGroup; length + kGroup <= kLongestRow; length += kGroup) {
      row.take(group.data());
      EXPECT_EQ(row.sum, 256 * length);
      EXPECT_EQ(row.inverse(), 255 / length);
      EXPECT_EQ(row.probability(group[0], row.inverse()), 255 / length);
    }
  }
}

TEST(StreamSoftmax, ShiftsTheWholeSumWhereTheMaximumGrows) {
  std::array<std::int8_t, kGroup> group;
  group.fill(0);
  group[3] = 1;
  SoftmaxRow row;
  row.take(group.data());
  EXPECT_EQ(row.sum, 256U + 15 * 128);
  group.fill(-128);
  group[0] = 4;
  row.take(group.data());
  EXPECT_EQ(row.maximum, 4);
  EXPECT_EQ(row.sum, ((256U + 15 * 128) >> 3) + 256);
  // From 19 octaves on nothing is left.
  group[0] = 4 + 19;
  row.take(group.data());
  EXPECT_EQ(row.sum, 256U);
  EXPECT_EQ(row.probability(4 + 19, 255), 255);
  EXPECT_EQ(row.probability(4 + 19 - 7, 255), 1);
  EXPECT_EQ(row.probability(4 + 19 - 8, 255), 0);
  EXPECT_EQ(row.probability(-128, 255), 0);
}

TEST(StreamSoftmax, TheOrderWithinAGroupDoesNotMatter) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::int8_t> scores(4 * kGroup);
    for (std::int8_t& score : scores) score = static_cast<std::int8_t>(random());
    SoftmaxRow row, shuffled;
    for (std::size_t at = 0; at < scores.size(); at += kGroup) {
      row.take(&scores[at]);
      const auto begin = scores.begin() + static_cast<std::ptrdiff_t>(at);
      std::shuffle(begin, begin + kGroup, random);
      shuffled.take(&scores[at]);
    }
    EXPECT_EQ(row.maximum, shuffled.maximum);
    EXPECT_EQ(row.sum, shuffled.sum);
    EXPECT_GE(row.sum, 256U);
  }
}

TEST(StreamSoftmax, AScoreWeighsAnOctaveLessPerUnitAndNothingFromNineOn) {
  for (int difference = 0; difference < 256; ++difference) {
    // One score at the maximum and one below it, the rest too far below to count.
    std::array<std::int8_t, kGroup> scores;
    scores.fill(-128);
    scores[3] = static_cast<std::int8_t>(difference < 200 ? 100 : 127);
    scores[7] = static_cast<std::int8_t>(scores[3] - difference);
    SoftmaxRow row;
    row.take(scores.data());
    constexpr std::array<std::uint32_t, 9> kWeights = {256, 128, 64, 32, 16, 8, 4, 2, 1};
    EXPECT_EQ(row.sum, 256 + (difference < 9 ? kWeights[static_cast<std::size_t>(difference)] : 0));
    // A probability has eight bits: nothing from 8 on, where the sum still counts 1.
    const int expected = difference < 8 ? row.inverse() / (1 << difference) : 0;
    EXPECT_EQ(row.probability(scores[7], row.inverse()), expected);
  }
}

TEST(StreamGelu, TurnsTheSignOfAGelu) {
  // A scale of 1/32, as ITA's generator makes its constants.
  const Activation gelu{ActivationKind::kGelu, {-80, -7091}, {74, 20, 0}};
  for (int q = -127; q <= 127; ++q) {
    const double x = q / 32.0;
    const double expected = -x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
    EXPECT_NEAR(activate(static_cast<std::int8_t>(q), gelu) / 32.0, expected, 0.04) << q;
  }
}

TEST(StreamGelu, DoesNotClipTheSmallestInput) {
  const GeluConstants constants{-200, -100};
  EXPECT_EQ(gelu_product(-128, constants), -128 * (-((-72 * -72) - 100) - 100));
  EXPECT_EQ(gelu_product(0, constants), 0);
}

TEST(StreamRelu, IsARequantisationOfWhatIsPositive) {
  const Activation relu{ActivationKind::kRelu, {}, {90, 7, -3}};
  for (int q = -128; q <= 127; ++q) {
    EXPECT_EQ(activate(static_cast<std::int8_t>(q), relu), half_up(std::max(q, 0), 90, 7) - 3);
    EXPECT_EQ(activate(static_cast<std::int8_t>(q), {}), q);
  }
}

TEST(StreamSums, WrapTo26Bits) {
  EXPECT_EQ(wrap((1 << 25) - 1, kAccumulatorBits), (1 << 25) - 1);
  EXPECT_EQ(wrap(1 << 25, kAccumulatorBits), -(1 << 25));
  EXPECT_EQ(wrap(-(1 << 25) - 1, kAccumulatorBits), (1 << 25) - 1);
}

}  // namespace
}  // namespace systole::hw::stream

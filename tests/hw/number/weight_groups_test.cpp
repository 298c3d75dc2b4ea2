#include "hw/number/weight_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace systole::hw {
namespace {

using Codes = std::array<std::int8_t, kGroupWeights>;

TEST(WeightGroups, ExpandToTheNearestMultipleOfTheScaleAboveTheMinimum) {
  for (int scale = 0; scale < 256; ++scale) {
    for (int minimum = -128; minimum < 128; ++minimum) {
      const WeightGroup group{static_cast<std::uint8_t>(scale), static_cast<std::int8_t>(minimum)};
      for (int q = 0; q <= kLargestGroupCode; ++q) {
        const double real = std::floor(q * scale / 16.0 + 0.5) + minimum;
        ASSERT_EQ(expanded_weight(WeightFormat::kGroups, q, group),
                  std::min(127.0, std::max(-127.0, real)));
      }
    }
  }
}

/// Bytes of a tile in the order that the header describes, written down by hand.
TEST(WeightGroups, ResideAsScalesMinimaAndPairsOfNeighbours) {
  const std::vector<WeightGroup> groups = {{16, -3}, {32, 5}, {160, -70}};
  std::vector<std::uint8_t> weights(kGroupWeights * 4, 0xaa);  // rows of three, one byte apart
  for (std::uint32_t row = 0; row < kGroupWeights; ++row) {
    for (std::size_t c = 0; c < 3; ++c) {
      const int q = static_cast<int>((row * 5 + c * 7) % 16);
      weights[row * 4 + c] =
          static_cast<std::uint8_t>(expanded_weight(WeightFormat::kGroups, q, groups[c]));
    }
  }
  std::vector<std::uint8_t> packed(packed_group_bytes(WeightFormat::kGroups, 3));
  ASSERT_EQ(packed.size(), 2U * 3 + 32 * 2);
  pack_group(WeightFormat::kGroups, weights.data(), 4, groups.data(), 3, packed.data());
  const std::vector<std::uint8_t> head = {16, 32, 160, 0xfd, 5, 0xba, 0x70, 0x0e, 0xc5, 0x03};
  for (std::size_t i = 0; i < head.size(); ++i) EXPECT_EQ(packed[i], head[i]) << i;

  std::vector<std::uint8_t> again(weights.size(), 0xaa);
  expand_group(WeightFormat::kGroups, packed.data(), 3, again.data(), 4);
  EXPECT_EQ(again, weights) << "nothing between the rows is written";
}

TEST(WeightGroups, RefuseAWeightWithoutACode) {
  std::vector<std::uint8_t> weights(kGroupWeights, 7);
  const WeightGroup group{32, 5};  // odd weights alone
  std::vector<std::uint8_t> packed(packed_group_bytes(WeightFormat::kGroups, 1));
  pack_group(WeightFormat::kGroups, weights.data(), 1, &group, 1, packed.data());
  weights[31] = 8;
  EXPECT_THROW(pack_group(WeightFormat::kGroups, weights.data(), 1, &group, 1, packed.data()),
               std::invalid_argument);
}

int squared(const Codes& a, const Codes& b) {
  int sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

/// Least sum of squares of any group, by trying them all.
int least_error(const Codes& codes) {
  int least = std::numeric_limits<int>::max();
  for (int scale = 0; scale < 256; ++scale) {
    for (int minimum = -128; minimum < 128; ++minimum) {
      const WeightGroup group{static_cast<std::uint8_t>(scale), static_cast<std::int8_t>(minimum)};
      std::array<int, kLargestGroupCode + 1> values;
      for (int q = 0; q <= kLargestGroupCode; ++q)
        values.at(static_cast<std::size_t>(q)) = expanded_weight(WeightFormat::kGroups, q, group);
      int sum = 0;
      for (const std::int8_t code : codes) {
        int nearest = 256 * 256;
        for (const int value : values) {
          nearest = std::min(nearest, (value - code) * (value - code));
        }
        sum += nearest;
        if (sum >= least) break;
      }
      least = std::min(least, sum);
    }
  }
  return least;
}

// Of normal, flat, tiny, constant and full groups.
TEST(WeightGroups, RoundToWhatComesCloseToTheBestGroupThereIs) {
  std::mt19937 random(3);
  int found = 0, best = 0;
  for (int i = 0; i < 9; ++i) {
    Codes codes;
    const double width = std::exp2(static_cast<double>(random() % 90) / 10.0 - 1);
    std::normal_distribution<double> normal(static_cast<double>(random() % 41) - 20, width);
    for (std::int8_t& code : codes) {
      const double value = i % 4 == 0 ? static_cast<double>(random() % 255) - 127 : normal(random);
      code = static_cast<std::int8_t>(std::lrint(std::min(127.0, std::max(-127.0, value))));
    }
    if (i == 8) codes.fill(-127);
    Codes rounded = codes;
    const WeightGroup group = round_to_group(WeightFormat::kGroups, rounded.data());
    std::array<std::uint8_t, packed_group_bytes(WeightFormat::kGroups, 1)> packed;
    pack_group(WeightFormat::kGroups, reinterpret_cast<const std::uint8_t*>(rounded.data()), 1,
               &group, 1, packed.data());
    const int error = squared(codes, rounded), least = least_error(codes);
    EXPECT_LE(least, error);
    EXPECT_LE(error, 1.6 * least + kGroupWeights) << i;
    found += error;
    best += least;
  }
  EXPECT_LT(found, 1.15 * best);
}

TEST(WeightGroups, TakeTheCyclesOfTheNarrowerOfLanesAndWord) {
  EXPECT_EQ(expansion_cycles(64, 16, 16).per_group, 32U * 4);
  EXPECT_EQ(expansion_cycles(64, 64, 16).per_group, 32U * 4);
  EXPECT_EQ(expansion_cycles(64, 4, 16).per_group, 32U * 16);
  EXPECT_EQ(expansion_cycles(17, 16, 32).per_group, 32U * 2);
  EXPECT_EQ(packed_bytes(WeightFormat::kGroups, 64, 10), 2U * (20 + 160));
}

}  // namespace
}  // namespace systole::hw

#include "hw/function/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace systole::hw {
namespace {

constexpr IntRange kRopeLimits = full_range(32);

TEST(Rope, TurnsPairsLikeTheRealFunction) {
  constexpr std::size_t kPositions = 300;
  constexpr std::size_t kDims = 64;
  const std::vector<std::int16_t> table = make_rope_table(kPositions, rope_frequencies(kDims));
  ASSERT_EQ(table.size(), kPositions * kDims);
  for (std::size_t p = 0; p < kPositions; p += 7) {
    for (std::size_t i = 0; i < kDims; i += 2) {
      const double angle =
          static_cast<double>(p) * std::exp(-std::log(10000.0) * static_cast<double>(i) / kDims);
      const RopePair x{static_cast<std::int32_t>(p * 97 % 401) - 200,
                       static_cast<std::int32_t>(i * 31 % 255) - 127};
      const std::size_t at = p * kDims + i;
      const RopePair turned =
          rope(x, {table[at], table[at + 1]}, kRopeFractionBits, Rounding::kHalfUp, kRopeLimits);
      // Half a step, and a whole step of the table for each of the inputs.
      const double bound = 0.5 + 400.0 / 32768;
      EXPECT_NEAR(turned.even, x.even * std::cos(angle) - x.odd * std::sin(angle), bound);
      EXPECT_NEAR(turned.odd, x.even * std::sin(angle) + x.odd * std::cos(angle), bound);
    }
  }
}

TEST(Rope, TableStopsShortOfOne) {
  const std::vector<std::int16_t> table = make_rope_table(2, rope_frequencies(4, 100.0));
  const auto code = [](double x) { return static_cast<std::int16_t>(std::lround(x * 32768)); };
  EXPECT_EQ(table,
            (std::vector<std::int16_t>{32767, 0, 32767, 0, code(std::cos(1.0)), code(std::sin(1.0)),
                                       code(std::cos(0.1)), code(std::sin(0.1))}));
  EXPECT_THROW(static_cast<void>(rope_frequencies(3)), std::invalid_argument);
}

TEST(Rope, RoundsAndClampsBothResults) {
  const RopePair half_up = rope({1, 3}, {1, 0}, 1, Rounding::kHalfUp, kRopeLimits);
  EXPECT_EQ(half_up.even, 1);
  EXPECT_EQ(half_up.odd, 2);
  const RopePair half_even = rope({1, 3}, {1, 0}, 1, Rounding::kHalfEven, kRopeLimits);
  EXPECT_EQ(half_even.even, 0);
  EXPECT_EQ(half_even.odd, 2);
  const RopePair clamped = rope({-500, 500}, {1, 0}, 0, Rounding::kFloor, symmetric_range(8));
  EXPECT_EQ(clamped.even, -127);
  EXPECT_EQ(clamped.odd, 127);
}

TEST(Rope, InputsSaturateToTheirRegister) {
  constexpr std::int32_t kLowest = -2147483647 - 1;
  const RopePair same = rope({kLowest, 2147483647}, {1, 0}, 0, Rounding::kFloor, kRopeLimits);
  EXPECT_EQ(same.even, -8388608);
  EXPECT_EQ(same.odd, 8388607);
  // Both products at their widest: 2^23 * 2^31 twice.
  const RopePair widest =
      rope({kLowest, kLowest}, {kLowest, 2147483647}, 54, Rounding::kFloor, kRopeLimits);
  EXPECT_EQ(widest.even, 1);
  EXPECT_EQ(widest.odd, 0);
}

}  // namespace
}  // namespace systole::hw

#include "hw/function/row_scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "hw/postop/postop.h"
#include "tests/hw/postop/random_chain.h"
#include "tests/hw/postop/stage_sketch.h"

namespace systole::hw {
namespace {

using test::any_int32;
using test::pick;
using test::Random;

TEST(RowScale, CodesAreTheNearestToTheRealOnes) {
  Random random(1);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const std::uint32_t peak = magnitude(any_int32(random));
    const auto top = static_cast<std::int32_t>(i % 3 == 0 ? 127 : pick(random, 1, 32767));
    const auto limit = static_cast<std::int64_t>(std::min<std::uint32_t>(peak, 0x7fffffff));
    const auto x = static_cast<std::int32_t>(pick(random, -limit, limit));
    const double real = peak == 0 ? 0.0 : static_cast<double>(x) / peak * top;
    const std::int32_t code = row_code(x, peak, top);
    worst = std::max(worst, std::fabs(code - real));
    ASSERT_LE(std::fabs(code - real), 0.5 + std::ldexp(1.0, -15)) << x << " " << peak << " " << top;
  }
  EXPECT_GT(worst, 0.499);
}

TEST(RowScale, PeakBecomesTheLargestCode) {
  for (std::int64_t peak = 1; peak < std::int64_t{1} << 31; peak = peak * 5 / 3 + 1) {
    for (const std::int32_t top : {1, 127, 32767}) {
      const auto x = static_cast<std::int32_t>(peak);
      EXPECT_EQ(row_code(x, magnitude(x), top), top) << peak;
      EXPECT_EQ(row_code(-x, magnitude(-x), top), -top) << peak;
    }
  }
  constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(magnitude(kLowest), 0x80000000U);
  EXPECT_EQ(row_code(kLowest, magnitude(kLowest), 127), -127);
}

TEST(RowScale, CodesOfARowWithAnotherPeakAreClamped) {
  EXPECT_EQ(row_code(1000, 10, 127), 127);
  EXPECT_EQ(row_code(-1000, 10, 127), -127);
  EXPECT_EQ(row_code(5, 0, 127), 127);
  EXPECT_EQ(row_code(0, 0, 127), 0);
}

TEST(RowScale, FactorFitsItsRegisters) {
  for (std::uint64_t peak = 0; peak < std::uint64_t{1} << 32; peak = peak * 9 / 7 + 1) {
    for (const std::int32_t top : {1, 127, 32767}) {
      const Dyadic factor = row_code_factor(static_cast<std::uint32_t>(peak), top);
      EXPECT_GE(factor.multiplier, top << (kRowReciprocalBits - 1)) << peak;
      EXPECT_LE(factor.multiplier, std::int64_t{top} << kRowReciprocalBits) << peak;
      EXPECT_LE(factor.shift, kMaxDyadicShift);
    }
  }
}

TEST(RowScale, StageTakesARowInEverySixteenCycles) {
  // A division of 31 bits at two a cycle; before the first the peak is shifted to its place.
  const Stage stage = test::stage(StageOp::kQuantiseRow, {127});
  EXPECT_EQ(stage_interval(stage, 1), 16U);
  EXPECT_EQ(stage_interval(stage, 17), 17U);
  EXPECT_EQ(stage_lead(stage), 1U + 16U);
  EXPECT_EQ(chain_cycles({{stage}, DType::kS8}, 10, 64, 16).total(10),
            17U + 4U + 9U * 16U + stage_latency(stage));
  EXPECT_EQ(chain_cycles({{stage}, DType::kS8}, 10, 1536, 16).total(10),
            17U + 10U * 96U + stage_latency(stage));
}

}  // namespace
}  // namespace systole::hw

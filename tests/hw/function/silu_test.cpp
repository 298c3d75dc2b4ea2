#include "hw/function/silu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "base/error.h"

namespace systole::hw {
namespace {

double real_silu(double x) { return x / (1 + std::exp(-x)); }

/// Largest error of silu() against the real function over every input of `bits` bits that spans
/// [-range, range], in units of the value; outputs of 16 bits.
double worst_silu_error(double range, unsigned bits, unsigned fraction_bits) {
  const IntRange domain = full_range(bits);
  const double input_scale = range / static_cast<double>(domain.hi);
  const double output_scale = range / 32767;
  const SiluConstants constants =
      make_silu_constants(input_scale, output_scale, kDefaultMultiplierBits, fraction_bits);
  double worst = 0;
  for (auto q = static_cast<std::int32_t>(domain.lo); q <= domain.hi; ++q) {
    const double actual = silu(q, constants, full_range(16)) * output_scale;
    worst = std::max(worst, std::fabs(actual - real_silu(q * input_scale)));
  }
  return worst;
}

TEST(Silu, FollowsTheRealFunctionOverEveryInputOf8To16Bits) {
  for (const unsigned bits : {8U, 12U, 16U}) {
    for (const double range : {1.0, 6.0, 10.0, 32.0}) {
      const double half_step = 0.5 * range / 32767;
      EXPECT_LT(worst_silu_error(range, bits, 8), 2.0e-3 + half_step) << bits << " +-" << range;
      EXPECT_LT(worst_silu_error(range, bits, 10), 1.35e-3 + half_step) << bits << " +-" << range;
    }
  }
  // The bounds are no looser than they have to be.
  EXPECT_GT(worst_silu_error(10.0, 16, 8), 1.8e-3);
  EXPECT_GT(worst_silu_error(10.0, 16, 10), 1.2e-3);
}

/// Constants that take the input for the exponential's argument, times 1 / 2^shift.
SiluConstants direct_silu(std::int8_t shift) {
  return {{1, shift}, kDefaultIntExp, {1, kSigmoidBits}};
}

TEST(Silu, SigmoidOfHandWorkedArguments) {
  EXPECT_EQ(silu_sigmoid(0, direct_silu(0)), 16384);
  // ln 2 is 177 steps: the value at zero, 182601, is halved once.
  EXPECT_EQ(silu_sigmoid(-177, direct_silu(0)), (91300LL << 15) / (182601 + 91300));
  EXPECT_EQ(silu_sigmoid(177, direct_silu(0)), (182601LL << 15) / (182601 + 91300));
  EXPECT_EQ(silu_sigmoid(-32768, direct_silu(0)), 0);
  EXPECT_EQ(silu_sigmoid(32767, direct_silu(0)), 32768);
}

TEST(Silu, ArgumentRoundsHalfUpInBothDirections) {
  const std::int64_t e = 345 * 345 + 62885;  // of the argument -1
  EXPECT_EQ(silu_sigmoid(-1, direct_silu(1)), (e << 15) / (182601 + e));
  EXPECT_EQ(silu_sigmoid(1, direct_silu(1)), (std::int64_t{182601} << 15) / (182601 + e));
}

TEST(Silu, SaturatesInputAndOutput) {
  const IntRange s32 = full_range(32);
  EXPECT_EQ(silu(32767, direct_silu(0), s32), 32767);
  EXPECT_EQ(silu(32768, direct_silu(0), s32), 32767);
  EXPECT_EQ(silu(2147483647, direct_silu(0), s32), 32767);
  EXPECT_EQ(silu(-2147483647 - 1, direct_silu(0), s32), 0);
  EXPECT_EQ(silu(1000, direct_silu(0), symmetric_range(8)), 127);
  EXPECT_EQ(silu(-177, direct_silu(0), {-7, 7}), -7);
}

TEST(Silu, LargestMultiplierKeepsWithin63Bits) {
  const SiluConstants constants{{2147483647, 0}, kDefaultIntExp, {-2147483647, 30}};
  // (2^30 - 2^15) (2^31 - 1) / 2^30.
  EXPECT_EQ(silu(32767, constants, full_range(32)), -2147418111);
  EXPECT_EQ(silu(-32768, constants, full_range(32)), 0);
}

TEST(SiluConstantsCheck, RefusesScalesThatDoNotFit) {
  EXPECT_THROW(make_silu_constants(0.0, 1.0), InputError);
  EXPECT_THROW(make_silu_constants(1.0, std::nan("")), InputError);
  EXPECT_THROW(make_silu_constants(-1.0, 1.0), InputError);
  EXPECT_THROW(make_silu_constants(256.0, 1.0), InputError);
  EXPECT_THROW(make_silu_constants(0.1, 0.1, 16, 12), std::invalid_argument);
  EXPECT_THROW(make_silu_constants(0.1, 0.1, 16, 0), std::invalid_argument);
}

}  // namespace
}  // namespace systole::hw

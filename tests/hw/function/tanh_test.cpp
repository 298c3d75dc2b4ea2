#include "hw/function/tanh.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace systole::hw {
namespace {

/// Largest error of tanh() against the real function over every input of `bits` bits that spans
/// [-range, range]; outputs of 16 bits. Fails unless the quotient is odd and never falls.
double worst_tanh_error(double range, unsigned bits, unsigned fraction_bits) {
  const IntRange domain = full_range(bits);
  const double input_scale = range / static_cast<double>(domain.hi);
  const TanhConstants constants =
      make_tanh_constants(input_scale, 1.0 / 32767, kDefaultMultiplierBits, fraction_bits);
  double worst = 0;
  std::int32_t last = std::numeric_limits<std::int32_t>::min();
  for (auto q = static_cast<std::int32_t>(domain.lo); q <= domain.hi; ++q) {
    const std::int32_t quotient = tanh_quotient(q, constants);
    EXPECT_EQ(tanh_quotient(-q, constants), -quotient) << q;
    EXPECT_GE(quotient, last) << q;
    last = quotient;
    const double actual = tanh(q, constants, full_range(16)) / 32767.0;
    worst = std::max(worst, std::fabs(actual - std::tanh(q * input_scale)));
    if (testing::Test::HasFailure()) return 1.0;
  }
  return worst;
}

TEST(Tanh, FollowsTheRealFunctionOverEveryInputOf8To16Bits) {
  constexpr double kHalfStep = 0.5 / 32767;
  for (const unsigned bits : {8U, 12U, 16U}) {
    for (const double range : {0.3, 1.0, 4.0, 8.0, 16.0}) {
      EXPECT_LT(worst_tanh_error(range, bits, 8), 2.5e-3 + kHalfStep) << bits << " +-" << range;
      EXPECT_LT(worst_tanh_error(range, bits, 10), 1.8e-3 + kHalfStep) << bits << " +-" << range;
    }
  }
  // The bounds are no looser than they have to be.
  EXPECT_GT(worst_tanh_error(8.0, 16, 8), 2.4e-3);
  EXPECT_GT(worst_tanh_error(8.0, 16, 10), 1.7e-3);
}

/// Constants that take the input for the exponential's argument, times 1 / 2^shift.
TanhConstants direct_tanh(std::int8_t shift) { return {{1, shift}, kDefaultIntExp, {1, 0}}; }

TEST(Tanh, QuotientOfHandWorkedArguments) {
  EXPECT_EQ(tanh_quotient(0, direct_tanh(0)), 0);
  // ln 2 is 177 steps: the value at zero, 182601, is halved once.
  const std::int64_t expected = ((182601LL - 91300) << 15) / (182601 + 91300);
  EXPECT_EQ(tanh_quotient(177, direct_tanh(0)), expected);
  EXPECT_EQ(tanh_quotient(-177, direct_tanh(0)), -expected);
  EXPECT_EQ(tanh_quotient(-32768, direct_tanh(0)), -32768);
  EXPECT_EQ(tanh_quotient(32767, direct_tanh(0)), 32768);
}

TEST(Tanh, ArgumentRoundsHalfUpAsAMagnitude) {
  const std::int64_t e = 345 * 345 + 62885;  // of the argument -1
  EXPECT_EQ(tanh_quotient(-1, direct_tanh(1)), -(((182601 - e) << 15) / (182601 + e)));
  EXPECT_EQ(tanh_quotient(1, direct_tanh(1)), ((182601 - e) << 15) / (182601 + e));
}

TEST(Tanh, SaturatesInputAndOutput) {
  const IntRange s32 = full_range(32);
  EXPECT_EQ(tanh(2147483647, direct_tanh(0), s32), 32768);
  EXPECT_EQ(tanh(-2147483647 - 1, direct_tanh(0), s32), -32768);
  EXPECT_EQ(tanh(1000, direct_tanh(0), symmetric_range(8)), 127);
  EXPECT_EQ(tanh(-1000, direct_tanh(0), {-7, 7}), -7);
  // Without saturation the argument of 32768 / 2^9 would be 64, that of 32767 is 64 as well.
  EXPECT_EQ(tanh(40000, direct_tanh(9), s32), tanh(32767, direct_tanh(9), s32));
  EXPECT_LT(tanh(32767, direct_tanh(9), s32), 32768);
}

TEST(Tanh, LargestMultiplierKeepsWithin63Bits) {
  const TanhConstants constants{{2147483647, 0}, kDefaultIntExp, {-2147483647, 30}};
  // 2^15 (2^31 - 1) / 2^30, rounded half up.
  EXPECT_EQ(tanh(32767, constants, full_range(32)), -65536);
  EXPECT_EQ(tanh(-32768, constants, full_range(32)), 65536);
}

TEST(TanhConstantsCheck, RefusesScalesThatDoNotFit) {
  EXPECT_THROW(make_tanh_constants(0.0, 1.0), InputError);
  EXPECT_THROW(make_tanh_constants(1.0, std::nan("")), InputError);
  EXPECT_THROW(make_tanh_constants(-1.0, 1.0), InputError);
  EXPECT_THROW(make_tanh_constants(128.0, 1.0), InputError);
  EXPECT_THROW(make_tanh_constants(0.1, 0.1, 16, 12), std::invalid_argument);
  EXPECT_THROW(make_tanh_constants(0.1, 0.1, 16, 0), std::invalid_argument);
}

}  // namespace
}  // namespace systole::hw

#include "hw/number/int_exp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/hw/number/golden_table.h"

namespace systole::hw {
namespace {

TEST(IntExp, MatchesTheReferenceTable) {
  for (const auto& entry : golden_cases("datapath/exp.json")) {
    const IntExpConstants constants = make_int_exp_constants(entry["fraction_bits"]);
    EXPECT_EQ(constants.q_ln2, entry["q_ln2"]);
    EXPECT_EQ(constants.b, entry["b"]);
    EXPECT_EQ(constants.c, entry["c"]);
    const auto q = entry["q"].get<std::vector<std::int64_t>>();
    for (std::size_t i = 0; i < q.size(); ++i) {
      EXPECT_EQ(int_exp(q[i], constants), entry["e"][i]) << q[i];
    }
  }
}

/// Largest distance from exp over the whole domain, one output step being worth `step`.
double worst_exp_error(const IntExpConstants& constants, double step) {
  double worst = 0;
  for (std::int64_t q = kIntExpLowestArgument; q <= 0; ++q) {
    const double x = std::ldexp(static_cast<double>(q), -static_cast<int>(constants.fraction_bits));
    worst = std::max(worst, std::fabs(int_exp(q, constants) * step - std::exp(x)));
  }
  return worst;
}

TEST(IntExp, FollowsTheRealExponentialOverItsWholeDomain) {
  // On the polynomial's own scale the floored constants add to the 2.128e-3 of real arithmetic;
  // relative to the value at zero, as the softmax uses it, the error is smaller.
  const double own_scale = worst_exp_error(kDefaultIntExp, std::ldexp(0.3585, -16));
  EXPECT_GT(own_scale, 2.6e-3);
  EXPECT_LT(own_scale, 2.7e-3);
  const double relative = worst_exp_error(kDefaultIntExp, 1.0 / kDefaultIntExp.value_at_zero());
  EXPECT_GT(relative, 1.9e-3);
  EXPECT_LT(relative, 2.0e-3);
}

TEST(IntExp, ApproachesThePolynomialsOwnErrorAtAFineScale) {
  const IntExpConstants fine = make_int_exp_constants(kMaxExpFractionBits);
  // Flooring b by up to one step of 2^-14 moves the result by 4e-5 at most.
  EXPECT_NEAR(worst_exp_error(fine, std::ldexp(0.3585, -28)), 2.128e-3, 4e-5);
}

TEST(IntExp, IsMonotonicWithin18Bits) {
  EXPECT_EQ(bit_length(int_exp(0, kDefaultIntExp)), 18U);
  for (std::int64_t q = kIntExpLowestArgument; q < 0; ++q) {
    ASSERT_LE(int_exp(q, kDefaultIntExp), int_exp(q + 1, kDefaultIntExp)) << q;
  }
}

TEST(IntExp, VanishesFarBelowAndClampsItsArgument) {
  EXPECT_EQ(int_exp(-20 * 177, kDefaultIntExp), 0U);
  EXPECT_EQ(int_exp(std::numeric_limits<std::int64_t>::min() / 2, kDefaultIntExp), 0U);
  const IntExpConstants widest = make_int_exp_constants(kMaxExpFractionBits);
  EXPECT_EQ(int_exp(-40000, widest), int_exp(kIntExpLowestArgument, widest));
}

TEST(IntExp, RefusesFractionBitsOutsideItsRegisters) {
  EXPECT_THROW(make_int_exp_constants(0), std::invalid_argument);
  EXPECT_THROW(make_int_exp_constants(15), std::invalid_argument);
  EXPECT_EQ(bit_length(make_int_exp_constants(14).value_at_zero()), 30U);
}

TEST(IBertExp, FollowsTheRealExponentialAtAFineScale) {
  constexpr double kScale = 1e-4;
  const IBertExpConstants constants = make_ibert_exp_constants(kScale);
  ASSERT_TRUE(fits_ibert_exp(constants));
  const double step = 0.35815147 * kScale * kScale;
  double worst = 0;
  for (std::int64_t q = -100000; q <= 0; ++q) {
    const IBertExp exp = ibert_exp(q, constants);
    const double actual = std::ldexp(static_cast<double>(exp.polynomial), -exp.halvings) * step;
    worst = std::max(worst, std::fabs(actual - std::exp(static_cast<double>(q) * kScale)));
  }
  EXPECT_LT(worst, 1.95e-3);
  EXPECT_GT(worst, 1.85e-3);
}

TEST(IBertExp, ClampsTheArgumentAtThirtyHalvings) {
  const IBertExpConstants constants = make_ibert_exp_constants(0.01);
  EXPECT_EQ(ibert_exp(0, constants).halvings, 0);
  EXPECT_EQ(ibert_exp(0, constants).polynomial, constants.c);
  EXPECT_EQ(ibert_exp(-70, constants).halvings, 1);
  EXPECT_EQ(ibert_exp(-69, constants).halvings, 0);
  EXPECT_EQ(ibert_exp(-1000000, constants).halvings, 30);
}

TEST(IBertExp, AcceptsTheScalesWhoseConstantsFit) {
  EXPECT_TRUE(fits_ibert_exp(make_ibert_exp_constants(9e-10)));
  EXPECT_FALSE(fits_ibert_exp(make_ibert_exp_constants(5e-10)));
  EXPECT_FALSE(fits_ibert_exp({0, 1, 1}));
}

}  // namespace
}  // namespace systole::hw

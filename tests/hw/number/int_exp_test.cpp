#include "hw/number/int_exp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "hw/number/isqrt.h"
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
  EXPECT_FALSE(fits_ibert_exp(make_ibert_exp_constants(1e-200)));
  EXPECT_FALSE(fits_ibert_exp({0, 1, 1}));
}

/// root^2 <= n < (root + 1)^2, by products alone.
bool is_root(std::uint64_t n, std::uint64_t root) {
  return root * root <= n && n - root * root <= 2 * root;
}

TEST(IntSqrt, IsExactForEveryInputOf20Bits) {
  for (std::uint64_t n = 0; n <= std::uint64_t{1} << 20; ++n) {
    ASSERT_TRUE(is_root(n, int_sqrt(n).root)) << n;
  }
}

TEST(IntSqrt, NeedsAtMostSixPassesAroundEverySquareOf32Bits) {
  unsigned most = 0;
  for (std::uint64_t k = 1; k < std::uint64_t{1} << 16; ++k) {
    for (const std::uint64_t n : {k * k - 1, k * k, k * k + 1, k * k + 2 * k}) {
      const IntSqrt result = int_sqrt(n);
      ASSERT_TRUE(is_root(n, result.root)) << n;
      most = std::max(most, result.passes);
    }
  }
  EXPECT_EQ(most, kMaxIntSqrtPasses48Bit);
  EXPECT_LT(int_sqrt(16785407).passes, kMaxIntSqrtPasses48Bit);
  EXPECT_EQ(int_sqrt(16785408).passes, kMaxIntSqrtPasses48Bit);
}

TEST(IntSqrt, StaysBelowTheDocumentedPassesOverAllWidths) {
  std::mt19937_64 random(7);
  unsigned most = 0;
  unsigned most_48_bit = 0;
  const auto check = [&most, &most_48_bit](std::uint64_t n) {
    const IntSqrt result = int_sqrt(n);
    ASSERT_TRUE(is_root(n, result.root)) << n;
    unsigned& counter = bit_length(n) <= 48 ? most_48_bit : most;
    counter = std::max(counter, result.passes);
  };
  for (unsigned bits = 1; bits <= 64; ++bits) {
    const std::uint64_t lowest = std::uint64_t{1} << (bits - 1);
    check(lowest);
    check(lowest - 1 + lowest);
    for (int i = 0; i < 3000; ++i) check(lowest | (random() & (lowest - 1)));
  }
  for (unsigned bits = 2; bits <= 32; ++bits) {
    const std::uint64_t base = std::uint64_t{1} << (bits - 1);
    // The start is worst, twice the root, just above a power of four.
    for (std::uint64_t k = base; k < base + 2000 && k < 2 * base; ++k) {
      check(k * k - 1);
      check(k * k);
      check(k * k + 2 * k);
    }
  }
  check(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(most, kMaxIntSqrtPasses);
  EXPECT_EQ(most_48_bit, kMaxIntSqrtPasses48Bit);
}

TEST(IntSqrt, MatchesTheReferenceTable) {
  for (const auto& entry : golden_cases("datapath/isqrt.json")) {
    EXPECT_EQ(int_sqrt(entry[0]).root, entry[1]) << entry[0];
  }
}

TEST(IntSqrt, CountsNoPassForZeroAndTwoForOne) {
  EXPECT_EQ(int_sqrt(0).root, 0U);
  EXPECT_EQ(int_sqrt(0).passes, 0U);
  EXPECT_EQ(int_sqrt(1).root, 1U);
  EXPECT_EQ(int_sqrt(1).passes, 2U);
}

}  // namespace
}  // namespace systole::hw

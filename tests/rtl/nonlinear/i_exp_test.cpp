#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "base/error.h"
#include "testbench/rtl/postop/chain_rtl.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/drive/unit_test.h"

namespace systole::testbench {
namespace {

std::size_t differences(IExpRtl& unit, const std::vector<std::int32_t>& arguments,
                        const hw::IntExpConstants& constants, const BackPressure& pressure = {}) {
  std::vector<std::int32_t> actual = arguments;
  unit.exponentials(actual.data(), actual.size(), 1, constants, pressure);
  std::size_t count = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    count += static_cast<std::uint32_t>(actual[i]) == hw::int_exp(arguments[i], constants) ? 0 : 1;
  }
  return count;
}

/// Every argument of s16 that is not positive.
std::vector<std::int32_t> exp_domain() {
  std::vector<std::int32_t> arguments;
  for (std::int32_t q = hw::kIntExpLowestArgument; q <= 0; ++q) arguments.push_back(q);
  return arguments;
}

class IExp : public testing::TestWithParam<std::uint32_t> {
 protected:
  const std::unique_ptr<IExpRtl> unit_ = make_i_exp(GetParam(), RtlOptions{true, "", 7});
};

TEST(IExpReciprocal, DividesExactlyOverTheWholeDomain) {
  for (unsigned bits = hw::kMinExpFractionBits; bits <= hw::kMaxExpFractionBits; ++bits) {
    const hw::IntExpConstants constants = hw::make_int_exp_constants(bits);
    const std::uint64_t reciprocal = hw::int_exp_reciprocal(constants);
    EXPECT_LT(reciprocal, std::uint64_t{1} << 30);
    for (const std::int32_t q : exp_domain()) {
      const auto magnitude = static_cast<std::uint64_t>(-q);
      ASSERT_EQ(magnitude * reciprocal >> hw::kIntExpReciprocalBits,
                magnitude / static_cast<std::uint64_t>(constants.q_ln2))
          << bits << " bits, " << q;
    }
  }
}

TEST_P(IExp, MatchesTheReferenceOverItsWholeDomain) {
  const std::vector<std::int32_t> arguments = exp_domain();
  for (unsigned bits = hw::kMinExpFractionBits; bits <= hw::kMaxExpFractionBits; ++bits) {
    EXPECT_EQ(differences(*unit_, arguments, hw::make_int_exp_constants(bits)), 0U) << bits;
  }
  EXPECT_FALSE(unit_->failed());
}

TEST_P(IExp, SaturatesArgumentsBelowS16) {
  std::mt19937_64 random(21);
  std::vector<std::int32_t> arguments = {
      std::numeric_limits<std::int32_t>::min(), -32769, -32768, -32770, -65536, -65535, -65537};
  for (int i = 0; i < 2000; ++i) {
    const std::int32_t word = random_word(random);
    arguments.push_back(word < 0 ? word : -word);
  }
  for (unsigned bits = hw::kMinExpFractionBits; bits <= hw::kMaxExpFractionBits; ++bits) {
    EXPECT_EQ(differences(*unit_, arguments, hw::make_int_exp_constants(bits)), 0U) << bits;
  }
  EXPECT_FALSE(unit_->failed());
}

TEST_P(IExp, KeepsItsValuesUnderBackPressure) {
  std::mt19937_64 random(22);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::int32_t> arguments(1 + random() % 100);
    for (std::int32_t& q : arguments) q = -static_cast<std::int32_t>(random() % 3000);
    ASSERT_EQ(differences(*unit_, arguments, hw::kDefaultIntExp, random_pressure(random)), 0U);
  }
  EXPECT_FALSE(unit_->failed());
}

TEST_P(IExp, TakesTheCyclesOfTheContract) {
  constexpr std::uint64_t kRows = 3;
  constexpr std::uint64_t kCols = 70;
  std::vector<std::int32_t> x(kRows * kCols);
  sweep_cycles(
      10'000, kRows, kCols, 23,
      [&](std::uint64_t rows, std::uint64_t cols, const BackPressure& pressure) {
        std::fill(x.begin(), x.end(), -100);
        return unit_->exponentials(x.data(), cols, rows, hw::kDefaultIntExp, pressure);
      },
      [&](std::uint64_t rows, std::uint64_t cols) {
        return hw::int_exp_cycles(rows, cols, GetParam());
      });
  EXPECT_FALSE(unit_->failed());
}

TEST_P(IExp, ReportsAPositiveArgument) {
  const ExpectedAssertions expected({"NotPositive_A"});
  std::int32_t q = 1;
  unit_->exponentials(&q, 1, 1, hw::kDefaultIntExp);
  EXPECT_TRUE(unit_->failed());
}

TEST_P(IExp, FastBuildHasTheSameValues) {
  const std::unique_ptr<IExpRtl> fast = make_i_exp(GetParam());
  EXPECT_EQ(differences(*fast, exp_domain(), hw::kDefaultIntExp), 0U);
}

INSTANTIATE_TEST_SUITE_P(Lanes, IExp, testing::ValuesIn(kLaneBuilds));

TEST(IExpSizes, OthersThanThoseBuiltAreRefused) {
  EXPECT_THROW((void)make_i_exp(5), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench

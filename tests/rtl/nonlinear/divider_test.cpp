// rtl/nonlinear/systole_divider.sv against hw/function/divide.h, bit by bit, and its cycles.

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "hw/function/divide.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/postop/stage_case.h"

namespace systole::testbench {
namespace {

constexpr hw::Rounding kQuotientRoundings[] = {hw::Rounding::kHalfUp, hw::Rounding::kHalfEven,
                                               hw::Rounding::kFloor};

/// Every column with its own divisor.
StageCase division_case(hw::Rounding rounding, unsigned shift, std::int32_t lo, std::int32_t hi,
                        std::size_t cols) {
  StageCase test{{}, {}, cols, std::vector<std::int32_t>(cols)};
  test.stage.op = hw::StageOp::kDivide;
  test.stage.operand = hw::Operand::kChannel;
  test.stage.rounding = rounding;
  test.stage.imm = {shift, lo, hi, 0};
  return test;
}

/// Of any number of bits, so that quotients have, too.
std::int32_t of_any_size(std::mt19937_64& random) {
  return random_word(random) >> static_cast<int>(random() % 32);
}

StageCase random_divisions(std::mt19937_64& random, int i, std::size_t rows, std::size_t cols) {
  const std::int32_t a = of_any_size(random), b = of_any_size(random);
  const bool whole = random() % 2 == 0;
  const auto shift = static_cast<unsigned>(random() % (hw::kMaxDivideShift + 1));
  StageCase test = division_case(kQuotientRoundings[i % 3], shift, whole ? kLowest : std::min(a, b),
                                 whole ? kHighest : std::max(a, b), cols);
  for (std::int32_t& divisor : test.parameters) divisor = of_any_size(random);
  for (std::size_t c = 0; c < rows * cols; ++c) test.x.push_back(of_any_size(random));
  return test;
}

StageCase small_division(std::mt19937_64& random, int i) {
  const std::size_t rows = 1 + random() % 3;
  return random_divisions(random, i, rows, 1 + random() % 70);
}

using Divider = StageTest<make_divider>;

TEST_P(Divider, MatchesTheReferenceOnRandomOperands) {
  expect_values(600, 81,
                [](std::mt19937_64& random, int i) { return random_divisions(random, i, 1, 499); });
}

TEST_P(Divider, MatchesTheReferenceInEveryCorner) {
  const std::int32_t words[] = {kLowest, kLowest + 1,   -65536,  -7, -3, -2, -1, 0, 1, 2, 3, 5,
                                1 << 15, (1 << 30) + 1, kHighest};
  const std::size_t count = std::size(words);
  for (const hw::Rounding rounding : kQuotientRoundings) {
    for (unsigned shift = 0; shift <= hw::kMaxDivideShift; ++shift) {
      for (const auto& [lo, hi] : {std::pair{kLowest, kHighest}, {-127, 127}, {3, 5}, {-9, -4}}) {
        StageCase test = division_case(rounding, shift, lo, hi, count);
        std::copy_n(words, count, test.parameters.begin());
        for (const std::int32_t word : words) test.x.insert(test.x.end(), count, word);
        ASSERT_EQ(differing(test), 0U) << static_cast<int>(rounding) << ' ' << shift << ' ' << lo;
      }
    }
  }
}

// Of small numbers by small numbers many quotients are halves.
TEST_P(Divider, MatchesTheReferenceAtEveryTie) {
  constexpr std::int32_t kMost = 40;
  for (const hw::Rounding rounding : kQuotientRoundings) {
    for (const unsigned shift : {0U, 1U, 4U}) {
      StageCase test = division_case(rounding, shift, kLowest, kHighest, 2 * kMost + 1);
      for (std::int32_t y = -kMost; y <= kMost; ++y) {
        test.parameters[static_cast<std::size_t>(y + kMost)] = y;
        test.x.insert(test.x.end(), test.cols, y);
      }
      ASSERT_EQ(differing(test), 0U) << static_cast<int>(rounding) << ' ' << shift;
    }
  }
}

TEST_P(Divider, KeepsItsValuesUnderBackPressure) {
  expect_values_under_back_pressure(300, 82, small_division);
}

TEST_P(Divider, TakesTheCyclesOfTheContract) {
  sweep(5'000, 3, 70, 83, division_case(hw::Rounding::kHalfUp, 4, kLowest, kHighest, 1).stage);
}

TEST_P(Divider, ReportsLimitsInTheWrongOrder) {
  const ExpectedAssertions expected({"LimitsOrdered_A"});
  StageCase test = division_case(hw::Rounding::kHalfUp, 0, 1, 0, 1);
  test.parameters = {1};
  test.x = {5};
  run_illegal(test);
}

TEST_P(Divider, FastBuildHasTheSameValues) {
  expect_values_of_the_fast_build(100, 84, small_division);
}

INSTANTIATE_TEST_SUITE_P(Lanes, Divider, testing::ValuesIn(kLaneBuilds));

TEST(DividerSizes, OthersThanThoseBuiltAreRefused) {
  EXPECT_THROW((void)make_divider(8), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench

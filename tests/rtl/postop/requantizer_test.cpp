#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "Vrequantizer_4_checked.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/postop/stage_case.h"

namespace systole::testbench {
namespace {

constexpr hw::Rounding kRoundings[] = {hw::Rounding::kHalfUp, hw::Rounding::kHalfEven,
                                       hw::Rounding::kFloor};
constexpr int kShifts = hw::kMaxDyadicShift + 1;

/// Every column with its own multiplier and shift.
StageCase channel_case(hw::Rounding rounding, std::int32_t lo, std::int32_t hi, std::size_t cols) {
  StageCase test{{}, {}, cols, std::vector<std::int32_t>(2 * cols)};
  test.stage.op = hw::StageOp::kRequantise;
  test.stage.operand = hw::Operand::kChannel;
  test.stage.rounding = rounding;
  test.stage.imm = {0, 0, lo, hi};
  return test;
}

StageCase random_channels(std::mt19937_64& random, int i, std::size_t rows, std::size_t cols) {
  const bool whole = random() % 2 == 0;
  const std::int32_t a = random_word(random);
  const std::int32_t b = random_word(random);
  StageCase test = channel_case(kRoundings[i % 3], whole ? kLowest : std::min(a, b),
                                whole ? kHighest : std::max(a, b), cols);
  for (std::size_t c = 0; c < cols; ++c) {
    test.parameters[c] = random_word(random);
    test.parameters[cols + c] = static_cast<std::int32_t>(random() % kShifts);
  }
  for (std::size_t c = 0; c < rows * cols; ++c) test.x.push_back(random_word(random));
  return test;
}

StageCase small_case(std::mt19937_64& random, int i) {
  const std::size_t rows = 1 + random() % 3;
  return random_channels(random, i, rows, 1 + random() % 70);
}

using Requantizer = StageTest<make_requantizer>;

TEST_P(Requantizer, MatchesTheReferenceOnRandomOperands) {
  constexpr std::size_t kCols = 1999;
  constexpr int kRows = 3 * 526;  // a million elements with each rounding
  expect_values(kRows, 11, [](std::mt19937_64& random, int i) {
    return random_channels(random, i, 1, kCols);
  });
}

TEST_P(Requantizer, MatchesTheReferenceInEveryCorner) {
  const std::int32_t words[] = {kLowest, kLowest + 1, -65536,  -3,    -2,      -1,      0, 1, 2, 3,
                                5,       7,           1 << 15, 65535, 1 << 30, kHighest};
  const std::size_t cols = std::size(words) * kShifts;
  std::vector<std::int32_t> x;
  for (const std::int32_t word : words) x.insert(x.end(), cols, word);
  for (const hw::Rounding rounding : kRoundings) {
    for (const auto& [lo, hi] : {std::pair{kLowest, kHighest},
                                 {-127, 127},
                                 {0, 0},
                                 {kLowest, kLowest},
                                 {kHighest, kHighest}}) {
      StageCase test = channel_case(rounding, lo, hi, cols);
      for (std::size_t i = 0; i < cols; ++i) {
        test.parameters[i] = words[i / kShifts];
        test.parameters[cols + i] = static_cast<std::int32_t>(i % kShifts);
      }
      test.x = x;
      EXPECT_EQ(differing(test), 0U) << static_cast<int>(rounding) << ' ' << lo << ' ' << hi;
    }
  }
}

TEST_P(Requantizer, KeepsItsValuesUnderBackPressure) {
  expect_values_under_back_pressure(300, 12, small_case);
}

TEST_P(Requantizer, TakesTheCyclesOfTheContract) {
  sweep(10'000, 3, 70, 13, channel_case(hw::Rounding::kHalfUp, kLowest, kHighest, 1).stage);
}

TEST_P(Requantizer, ReportsLimitsInTheWrongOrder) {
  const ExpectedAssertions expected({"LimitsOrdered_A"});
  StageCase test = channel_case(hw::Rounding::kHalfUp, 1, 0, 1);
  test.x = {5};
  run_illegal(test);
}

TEST_P(Requantizer, FastBuildHasTheSameValues) {
  expect_values_of_the_fast_build(100, 14, small_case);
}

INSTANTIATE_TEST_SUITE_P(Lanes, Requantizer, testing::ValuesIn(kLaneBuilds));

TEST(RequantizerProtocol, AssertionFiresWhenABeatIsWithdrawn) {
  VerilatedDut<Vrequantizer_4_checked> dut(RtlOptions{true, "", 3});
  dut->rounding_i = 0;
  dut->lo_i = 0;
  dut->hi_i = 1;
  dut->mask_i = 0xf;
  dut->ready_i = 0;
  dut->valid_i = 1;
  expect_assertion("InputHeld_A", dut, 10, [&] { dut->valid_i = 0; });
}

TEST(RequantizerSizes, SixtyFourLanesHaveValuesAndCyclesToo) {
  std::mt19937_64 random(64);
  const auto unit = make_requantizer(64, RtlOptions{true, "", 7});
  for (int i = 0; i < 150; ++i) {
    const BackPressure pressure = i % 2 == 0 ? BackPressure{} : random_pressure(random);
    ASSERT_EQ(differences(*unit, 64, small_case(random, i), pressure), 0U) << i;
  }
  EXPECT_FALSE(unit->failed());
}

TEST(RequantizerSizes, OthersThanThoseBuiltAreRefused) {
  EXPECT_THROW((void)make_requantizer(8), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench

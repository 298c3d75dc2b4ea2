#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "Vlayernorm_unit_4_checked.h"
#include "hw/function/layernorm.h"
#include "hw/kernel/row_kernels.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/nonlinear/row_data.h"
#include "tests/rtl/postop/stage_case.h"

namespace systole::testbench {
namespace {

struct LaneConstants {
  std::vector<std::int32_t> multipliers;
  std::vector<std::int32_t> addends;
  unsigned shift;
  unsigned fraction_bits;
  hw::row::Clamp limits;
};

/// What real weights give, at 15 fraction bits and an s8 output.
LaneConstants usual_constants(std::mt19937_64& random, std::size_t cols) {
  std::normal_distribution<double> normal;
  std::vector<double> gamma(cols);
  std::vector<double> beta(cols);
  for (double& weight : gamma) weight = 1 + 0.2 * normal(random);
  for (double& bias : beta) bias = 0.1 * normal(random);
  const hw::LayerNormConstants constants = hw::make_layernorm_constants(gamma, beta, 0.03);
  return {constants.multiplier,
          {constants.bias.begin(), constants.bias.end()},
          constants.shift,
          constants.fraction_bits,
          {-127, 127}};
}

/// Anything that check_chain() accepts, of any magnitude.
LaneConstants random_constants(std::mt19937_64& random, std::size_t cols) {
  const std::int32_t first = random_word(random);
  const std::int32_t second = random_word(random);
  LaneConstants constants{std::vector<std::int32_t>(cols),
                          std::vector<std::int32_t>(cols),
                          static_cast<unsigned>(random() % 63),
                          1 + static_cast<unsigned>(random() % 30),
                          {std::min(first, second), std::max(first, second)}};
  if (random() % 2 == 0) constants.limits = {kLowest, kHighest};
  for (std::int32_t& multiplier : constants.multipliers) multiplier = random_word(random);
  for (std::int32_t& addend : constants.addends) addend = random_word(random);
  return constants;
}

/// Rows of s24 values and of values that saturate to them, in turns.
std::vector<std::int32_t> random_inputs(std::mt19937_64& random, std::size_t rows,
                                        std::size_t cols) {
  std::vector<std::int32_t> words = random_rows(random, rows, cols);
  if (random() % 3 != 0) {
    for (std::int32_t& word : words) word >>= 8;
  }
  return words;
}

StageCase norm_case(const LaneConstants& constants, std::vector<std::int32_t> x) {
  StageCase test{{}, std::move(x), constants.multipliers.size(), constants.multipliers};
  test.parameters.insert(test.parameters.end(), constants.addends.begin(), constants.addends.end());
  test.stage.op = hw::StageOp::kLayerNorm;
  test.stage.imm = {constants.fraction_bits, constants.shift, constants.limits.lo,
                    constants.limits.hi};
  return test;
}

/// Rows of up to `most` columns with any constants.
StageCase random_norm(std::mt19937_64& random, std::size_t most, std::size_t rows) {
  const std::size_t cols = random_length(random, most);
  const LaneConstants constants = random_constants(random, cols);
  return norm_case(constants, random_inputs(random, rows, cols));
}

using LayernormUnit = StageTest<make_layernorm_unit>;

TEST_P(LayernormUnit, MatchesTheReferenceWithUsualConstants) {
  expect_values(200, 71, [](std::mt19937_64& random, int) {
    const std::size_t cols = random_length(random, 800);
    const LaneConstants constants = usual_constants(random, cols);
    return norm_case(constants, random_inputs(random, 1 + random() % 4, cols));
  });
}

TEST_P(LayernormUnit, MatchesTheReferenceOnAMillionElements) {
  std::size_t elements = 0;
  expect_values(700, 72, [&](std::mt19937_64& random, int) {
    StageCase test = random_norm(random, 700, 1 + random() % 12);
    elements += test.x.size();
    return test;
  });
  EXPECT_GT(elements, 1'000'000U);
}

TEST_P(LayernormUnit, MatchesTheReferenceAtTheEdgesOfItsWidths) {
  constexpr std::size_t kCols = 70;
  std::mt19937_64 random(73);
  for (const std::int32_t multiplier : {kLowest, kLowest + 1, -1, 0, 1, kHighest}) {
    for (const std::int32_t addend : {kLowest, 0, kHighest}) {
      for (const unsigned shift : {0U, 1U, 30U, 31U, 61U, 62U}) {
        for (const unsigned fraction_bits : {1U, 15U, 30U}) {
          const LaneConstants constants{std::vector<std::int32_t>(kCols, multiplier),
                                        std::vector<std::int32_t>(kCols, addend),
                                        shift,
                                        fraction_bits,
                                        {kLowest, kHighest}};
          // Deviations of 0, 1 and the largest there are, alone in their row and throughout.
          std::vector<std::int32_t> rows(4 * kCols, 5);
          rows[kCols] = 6;
          rows[2 * kCols + 3] = random() % 2 == 0 ? kLowest : kHighest;
          for (std::size_t i = 0; i < kCols; ++i) rows[3 * kCols + i] = i % 2 ? kLowest : kHighest;
          ASSERT_EQ(differing(norm_case(constants, rows)), 0U)
              << multiplier << " " << addend << " " << shift << " " << fraction_bits;
        }
      }
    }
  }
}

TEST_P(LayernormUnit, MatchesTheReferenceOnTheLongestRow) {
  constexpr std::size_t kCols = hw::kLayerNormMaxLength;
  std::mt19937_64 random(74);
  const LaneConstants constants = usual_constants(random, kCols);
  std::vector<std::int32_t> halves(kCols, kLowest);  // the largest sum of squares
  for (std::size_t i = 0; i < kCols / 2; ++i) halves[i] = kHighest;
  EXPECT_EQ(differing(norm_case(constants, halves)), 0U);
  EXPECT_EQ(differing(norm_case(constants, std::vector<std::int32_t>(kCols, kHighest))), 0U);
  EXPECT_EQ(differing(norm_case(constants, random_inputs(random, 1, kCols))), 0U);
}

TEST_P(LayernormUnit, MatchesTheReferenceWhereTheSumOfSquaresGainsABit) {
  std::mt19937_64 random(80);
  for (std::size_t power = 2; power < hw::kLayerNormMaxLength; power *= 2) {
    // Without its uppermost bit, the sum of these squares would be a small one.
    const std::size_t cols = power + 2;
    std::vector<std::int32_t> halves(cols, kLowest);
    std::fill_n(halves.begin(), cols / 2, kHighest);
    EXPECT_EQ(differing(norm_case(usual_constants(random, cols), halves)), 0U) << cols;
  }
}

TEST_P(LayernormUnit, KeepsItsValuesUnderBackPressure) {
  expect_values_under_back_pressure(600, 75, [](std::mt19937_64& random, int) {
    return random_norm(random, 80, 1 + random() % 6);
  });
}

TEST_P(LayernormUnit, TakesTheCyclesOfTheContract) {
  std::mt19937_64 random(76);
  // Intervals bound by root and reciprocal, and by the slots.
  sweep(10'000, 3, 22 * GetParam(), 77, random_norm(random, 1, 1).stage);
}

TEST_P(LayernormUnit, FastBuildHasTheSameValues) {
  expect_values_of_the_fast_build(
      300, 78, [](std::mt19937_64& random, int) { return random_norm(random, 300, 3); });
}

TEST_P(LayernormUnit, ReportsAShiftOutOfRange) {
  const ExpectedAssertions expected({"ShiftInRange_A"});
  std::mt19937_64 random(79);
  LaneConstants wrong = usual_constants(random, 1);
  wrong.shift = 63;
  run_illegal(norm_case(wrong, {1}));
}

INSTANTIATE_TEST_SUITE_P(Lanes, LayernormUnit, testing::ValuesIn(kLaneBuilds));

TEST(LayernormUnitProtocol, AssertionFiresWhenAWaitingBeatChanges) {
  VerilatedDut<Vlayernorm_unit_4_checked> dut(RtlOptions{true, "", 3});
  // One beat a row: after slot A of the only row, beats wait for the next interval.
  dut->rows_i = 1;
  dut->cols_i = 4;
  dut->fraction_bits_i = 15;
  dut->shift_i = 0;
  dut->lo_i = 0;
  dut->hi_i = 0;
  dut->ready_i = 1;
  dut->valid_i = 1;
  expect_assertion("DataHeld_A", dut, 5, [&] { dut->data_i[0] ^= 1; });
}

TEST(LayernormUnitSizes, SixtyFourLanesHaveValuesAndCyclesToo) {
  std::mt19937_64 random(64);
  const auto unit = make_layernorm_unit(64, RtlOptions{true, "", 7});
  for (int i = 0; i < 150; ++i) {
    const BackPressure pressure = i % 2 == 0 ? BackPressure{} : random_pressure(random);
    ASSERT_EQ(differences(*unit, 64, random_norm(random, 300, 1 + random() % 5), pressure), 0U)
        << i;
  }
  EXPECT_FALSE(unit->failed());
}

TEST(LayernormUnitSizes, OthersThanThoseBuiltAreRefused) {
  EXPECT_THROW((void)make_layernorm_unit(8), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench

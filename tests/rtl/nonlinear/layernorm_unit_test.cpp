#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "Vlayernorm_unit_4_checked.h"
#include "base/error.h"
#include "hw/function/layernorm.h"
#include "hw/kernel/row_plain.h"
#include "hw/postop/postop.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/nonlinear/layernorm_unit_rtl.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/drive/unit_test.h"
#include "tests/rtl/nonlinear/row_data.h"

namespace systole::testbench {
namespace {

struct Constants {
  std::vector<std::int32_t> multipliers;
  std::vector<std::int32_t> addends;
  unsigned shift;
  unsigned fraction_bits;
  hw::row::Clamp limits;

  [[nodiscard]] hw::row::LayerNormFactors factors() const {
    return {multipliers.data(), addends.data(), shift, fraction_bits};
  }
};

/// What real weights give, at 15 fraction bits and an s8 output.
Constants usual_constants(std::mt19937_64& random, std::size_t cols) {
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
Constants random_constants(std::mt19937_64& random, std::size_t cols) {
  const std::int32_t first = random_word(random);
  const std::int32_t second = random_word(random);
  Constants constants{std::vector<std::int32_t>(cols),
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

hw::Chain chain() {
  hw::Stage stage;
  stage.op = hw::StageOp::kLayerNorm;
  return {{stage}, hw::DType::kS32};
}

class LayernormUnit : public testing::TestWithParam<std::uint32_t> {
 protected:
  /// Runs the rows and counts the values that differ from the reference.
  std::size_t differences(LayernormUnitRtl& unit, const std::vector<std::int32_t>& x,
                          const Constants& constants, const BackPressure& pressure = {}) const {
    const std::size_t cols = constants.multipliers.size();
    const std::size_t rows = x.size() / cols;
    std::vector<std::int32_t> actual = x;
    const RtlCycles measured =
        unit.run(actual.data(), cols, rows, constants.factors(), constants.limits, pressure);
    expect_contract(hw::chain_cycles(chain(), rows, cols, GetParam()).total(rows), measured);
    std::vector<std::int32_t> expected = x;
    for (std::size_t row = 0; row < rows; ++row) {
      std::int32_t* const values = expected.data() + row * cols;
      hw::row::plain::clamp_row(values, cols, hw::row::kLayerNormInputs);
      hw::row::plain::layer_norm_row(values, cols, hw::layernorm_statistics(values, cols),
                                     constants.factors(), constants.limits);
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < x.size(); ++i) count += actual[i] == expected[i] ? 0 : 1;
    return count;
  }

  LayernormUnitRtl unit_{GetParam(), RtlOptions{true, "", 9}};
};

TEST_P(LayernormUnit, MatchesTheReferenceWithUsualConstants) {
  std::mt19937_64 random(71);
  for (int i = 0; i < 200; ++i) {
    const std::size_t cols = random_length(random, 800);
    ASSERT_EQ(differences(unit_, random_inputs(random, 1 + random() % 4, cols),
                          usual_constants(random, cols)),
              0U)
        << i << ": " << cols;
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(LayernormUnit, MatchesTheReferenceOnAMillionElements) {
  std::mt19937_64 random(72);
  std::size_t elements = 0;
  for (int i = 0; elements < 1'000'000; ++i) {
    const std::size_t cols = random_length(random, 700);
    const std::size_t rows = 1 + random() % 12;
    ASSERT_EQ(differences(unit_, random_inputs(random, rows, cols), random_constants(random, cols)),
              0U)
        << i << ": " << rows << " x " << cols;
    elements += rows * cols;
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(LayernormUnit, MatchesTheReferenceAtTheEdgesOfItsWidths) {
  constexpr std::size_t kCols = 70;
  std::mt19937_64 random(73);
  for (const std::int32_t multiplier : {kLowest, kLowest + 1, -1, 0, 1, kHighest}) {
    for (const std::int32_t addend : {kLowest, 0, kHighest}) {
      for (const unsigned shift : {0U, 1U, 30U, 31U, 61U, 62U}) {
        for (const unsigned fraction_bits : {1U, 15U, 30U}) {
          const Constants constants{std::vector<std::int32_t>(kCols, multiplier),
                                    std::vector<std::int32_t>(kCols, addend),
                                    shift,
                                    fraction_bits,
                                    {kLowest, kHighest}};
          // Deviations of 0, 1 and the largest there are, alone in their row and throughout.
          std::vector<std::int32_t> rows(4 * kCols, 5);
          rows[kCols] = 6;
          rows[2 * kCols + 3] = random() % 2 == 0 ? kLowest : kHighest;
          for (std::size_t i = 0; i < kCols; ++i) rows[3 * kCols + i] = i % 2 ? kLowest : kHighest;
          ASSERT_EQ(differences(unit_, rows, constants), 0U)
              << multiplier << " " << addend << " " << shift << " " << fraction_bits;
        }
      }
    }
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(LayernormUnit, MatchesTheReferenceOnTheLongestRow) {
  constexpr std::size_t kCols = hw::kLayerNormMaxLength;
  std::mt19937_64 random(74);
  const Constants constants = usual_constants(random, kCols);
  std::vector<std::int32_t> halves(kCols, kLowest);  // the largest sum of squares
  for (std::size_t i = 0; i < kCols / 2; ++i) halves[i] = kHighest;
  EXPECT_EQ(differences(unit_, halves, constants), 0U);
  EXPECT_EQ(differences(unit_, std::vector<std::int32_t>(kCols, kHighest), constants), 0U);
  EXPECT_EQ(differences(unit_, random_inputs(random, 1, kCols), constants), 0U);
  EXPECT_FALSE(unit_.failed());
}

TEST_P(LayernormUnit, MatchesTheReferenceWhereTheSumOfSquaresGainsABit) {
  std::mt19937_64 random(80);
  for (std::size_t power = 2; power < hw::kLayerNormMaxLength; power *= 2) {
    // Without its uppermost bit, the sum of these squares would be a small one.
    const std::size_t cols = power + 2;
    std::vector<std::int32_t> halves(cols, kLowest);
    std::fill_n(halves.begin(), cols / 2, kHighest);
    EXPECT_EQ(differences(unit_, halves, usual_constants(random, cols)), 0U) << cols;
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(LayernormUnit, KeepsItsValuesUnderBackPressure) {
  std::mt19937_64 random(75);
  for (int i = 0; i < 600; ++i) {
    const std::size_t cols = random_length(random, 80);
    ASSERT_EQ(differences(unit_, random_inputs(random, 1 + random() % 6, cols),
                          random_constants(random, cols), random_pressure(random)),
              0U)
        << i;
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(LayernormUnit, TakesTheCyclesOfTheContract) {
  constexpr std::uint64_t kRows = 3;
  std::mt19937_64 random(76);
  // Intervals bound by root and reciprocal, and by the slots.
  const std::uint64_t cols = 22 * GetParam();
  const Constants constants = random_constants(random, cols);
  std::vector<std::int32_t> x(kRows * cols);
  sweep_cycles(
      10'000, kRows, cols, 77,
      [&](std::uint64_t rows, std::uint64_t columns, const BackPressure& pressure) {
        return unit_.run(x.data(), columns, rows, constants.factors(), constants.limits, pressure);
      },
      [&](std::uint64_t rows, std::uint64_t columns) {
        return hw::chain_cycles(chain(), rows, columns, GetParam()).total(rows);
      });
  EXPECT_FALSE(unit_.failed());
}

TEST_P(LayernormUnit, FastBuildHasTheSameValues) {
  std::mt19937_64 random(78);
  LayernormUnitRtl fast(GetParam());
  for (int i = 0; i < 300; ++i) {
    const std::size_t cols = random_length(random, 300);
    ASSERT_EQ(differences(fast, random_inputs(random, 3, cols), random_constants(random, cols)),
              0U);
  }
}

TEST_P(LayernormUnit, ReportsAShiftOutOfRange) {
  const ExpectedAssertions expected({"ShiftInRange_A"});
  std::mt19937_64 random(79);
  Constants wrong = usual_constants(random, 1);
  wrong.shift = 63;
  std::int32_t x = 1;
  unit_.run(&x, 1, 1, wrong.factors(), wrong.limits);
  EXPECT_TRUE(unit_.failed());
}

INSTANTIATE_TEST_SUITE_P(Lanes, LayernormUnit, testing::ValuesIn(kLaneBuilds));

TEST(LayernormUnitProtocol, AssertionFiresWhenAWaitingBeatChanges) {
  const ExpectedAssertions expected({"DataHeld_A"});
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
  for (int i = 0; i < 5; ++i) dut.tick();
  EXPECT_FALSE(dut.failed()) << "a beat may wait for its slot";
  dut->data_i[0] ^= 1;
  for (int i = 0; i < 2; ++i) dut.tick();
  EXPECT_TRUE(dut.failed());
}

TEST(LayernormUnitSizes, OthersThanThoseBuiltAreRefused) {
  EXPECT_THROW(LayernormUnitRtl(8), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench

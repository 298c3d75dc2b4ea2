#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "Vsoftmax_unit_4_checked.h"
#include "hw/function/softmax.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/nonlinear/row_data.h"
#include "tests/rtl/postop/stage_case.h"

namespace systole::testbench {
namespace {

constexpr hw::SoftmaxMode kModes[] = {hw::SoftmaxMode::kDeferred, hw::SoftmaxMode::kNormalisedFloor,
                                      hw::SoftmaxMode::kNormalisedRound};

hw::SoftmaxConstants usual_constants(hw::SoftmaxMode mode, double scale = 0.01,
                                     unsigned fraction_bits = 8, unsigned output_bits = 8) {
  hw::SoftmaxOptions options;
  options.mode = mode;
  options.output_bits = output_bits;
  options.fraction_bits = fraction_bits;
  return hw::make_softmax_constants(scale, options);
}

/// Constants that check_chain() accepts, of any magnitude.
hw::SoftmaxConstants random_constants(std::mt19937_64& random, hw::SoftmaxMode mode) {
  const auto dyadic = [&random] {
    return hw::Dyadic{static_cast<std::int32_t>(random() >> (33 + random() % 31)),
                      static_cast<std::int8_t>(random() % 64)};
  };
  const hw::Dyadic score = dyadic();
  const hw::Dyadic code = dyadic();
  const auto fraction_bits = static_cast<unsigned>(
      hw::kMinExpFractionBits + random() % (hw::kMaxExpFractionBits - hw::kMinExpFractionBits + 1));
  return {mode,
          score,
          hw::make_int_exp_constants(fraction_bits),
          code,
          static_cast<unsigned>(1 + random() % 16),
          32};
}

StageCase softmax_case(const hw::SoftmaxConstants& constants, std::vector<std::int32_t> x,
                       std::size_t cols, std::size_t kept = 0) {
  StageCase test{{}, std::move(x), cols, {}, kept};
  test.stage.op = hw::StageOp::kSoftmax;
  test.stage.imm = {static_cast<std::int64_t>(constants.mode),
                    constants.score.multiplier,
                    constants.score.shift,
                    constants.exp.fraction_bits,
                    constants.exp_to_code.multiplier,
                    constants.exp_to_code.shift,
                    constants.output_bits};
  return test;
}

/// Rows of up to `most` columns with any constants.
StageCase random_softmax(std::mt19937_64& random, int i, std::size_t most, std::size_t rows,
                         bool masked = false) {
  const std::size_t cols = random_length(random, most);
  const hw::SoftmaxConstants constants = random_constants(random, kModes[i % 3]);
  return softmax_case(constants, random_rows(random, rows, cols), cols,
                      masked ? 1 + random() % cols : 0);
}

using SoftmaxUnit = StageTest<make_softmax_unit>;

TEST_P(SoftmaxUnit, MatchesTheReferenceWithUsualConstants) {
  std::mt19937_64 random(61);
  for (const hw::SoftmaxMode mode : kModes) {
    for (const double scale : {1e-4, 0.003, 0.05, 1.0}) {
      for (const unsigned output_bits : {4U, 8U, 16U}) {
        const hw::SoftmaxConstants constants = usual_constants(mode, scale, 8, output_bits);
        for (int i = 0; i < 6; ++i) {
          const std::size_t cols = random_length(random, 600);
          // Scores as products of s8 operands give them, and anything else.
          std::vector<std::int32_t> rows = random_rows(random, 6, cols);
          if (i % 2 == 0) {
            for (std::int32_t& word : rows) word >>= 14;
          }
          ASSERT_EQ(differing(softmax_case(constants, rows, cols)), 0U) << scale << " " << cols;
        }
      }
    }
  }
}

TEST_P(SoftmaxUnit, MatchesTheReferenceOnAMillionElements) {
  std::mt19937_64 random(62);
  std::size_t elements = 0;
  for (int i = 0; elements < 1'000'000; ++i) {
    const std::size_t cols = random_length(random, 700);
    const std::size_t rows = 1 + random() % 12;
    const hw::SoftmaxConstants constants = random_constants(random, kModes[i % 3]);
    ASSERT_EQ(differing(softmax_case(constants, random_rows(random, rows, cols), cols)), 0U)
        << i << ": " << rows << " x " << cols;
    elements += rows * cols;
  }
}

TEST_P(SoftmaxUnit, MatchesTheReferenceWithEveryPrecisionOfTheExponential) {
  std::mt19937_64 random(63);
  for (const hw::SoftmaxMode mode : kModes) {
    for (unsigned bits = hw::kMinExpFractionBits; bits <= hw::kMaxExpFractionBits; ++bits) {
      const hw::SoftmaxConstants constants = usual_constants(mode, 0.02, bits);
      for (const std::size_t cols : {1U, 3U, 33U, 200U}) {
        std::vector<std::int32_t> rows = random_rows(random, 4, cols);
        for (std::int32_t& word : rows) word >>= 20;
        ASSERT_EQ(differing(softmax_case(constants, rows, cols)), 0U) << bits << " " << cols;
      }
    }
  }
}

TEST_P(SoftmaxUnit, MatchesTheReferenceOnTheLongestRow) {
  std::mt19937_64 random(64);
  for (const hw::SoftmaxMode mode : kModes) {
    // The largest exponential throughout makes the largest sum; the codes add up to 2^32 - 65536.
    hw::SoftmaxConstants constants = usual_constants(mode, 0.02, hw::kMaxExpFractionBits, 16);
    constants.exp_to_code = {2147483647, 0};
    EXPECT_EQ(differing(softmax_case(constants, std::vector<std::int32_t>(65536, -7), 65536)), 0U);
  }
}

TEST_P(SoftmaxUnit, MatchesTheReferenceWhereTheSumGainsABit) {
  // Without its uppermost bit, such a sum would be a small one and give large codes.
  const hw::SoftmaxConstants constants =
      usual_constants(hw::SoftmaxMode::kNormalisedFloor, 0.02, hw::kMaxExpFractionBits, 16);
  const std::uint64_t largest = hw::int_exp(0, constants.exp);
  for (unsigned bit = 30; (std::uint64_t{1} << bit) < 65536 * largest; ++bit) {
    const std::size_t cols = (std::uint64_t{1} << bit) / largest + 1;
    EXPECT_EQ(differing(softmax_case(constants, std::vector<std::int32_t>(cols, -7), cols)), 0U)
        << bit;
  }
}

TEST_P(SoftmaxUnit, KeepsItsValuesUnderBackPressure) {
  expect_values_under_back_pressure(600, 65, [](std::mt19937_64& random, int i) {
    return random_softmax(random, i, 80, 1 + random() % 6);
  });
}

TEST_P(SoftmaxUnit, LeavesOutWhatACausalMaskDoes) {
  const auto masked_case = [](std::mt19937_64& random, int i) {
    return random_softmax(random, i, 80, 1 + random() % 9, true);
  };
  expect_values(200, 68, masked_case);
  expect_values_under_back_pressure(200, 69, masked_case);
}

TEST_P(SoftmaxUnit, TakesTheCyclesOfTheContract) {
  for (const hw::SoftmaxMode mode : kModes) {
    // Intervals bound by the division, and by the slots.
    sweep(4'000, 5, 8 * GetParam(), 66, softmax_case(usual_constants(mode), {}, 1).stage);
  }
}

TEST_P(SoftmaxUnit, FastBuildHasTheSameValues) {
  expect_values_of_the_fast_build(
      300, 67, [](std::mt19937_64& random, int i) { return random_softmax(random, i, 300, 3); });
}

TEST_P(SoftmaxUnit, ReportsAnUnknownMode) {
  const ExpectedAssertions expected({"ModeKnown_A"});
  hw::SoftmaxConstants wrong = usual_constants(hw::SoftmaxMode::kNormalisedFloor);
  wrong.mode = static_cast<hw::SoftmaxMode>(3);
  run_illegal(softmax_case(wrong, {1}, 1));
}

INSTANTIATE_TEST_SUITE_P(Lanes, SoftmaxUnit, testing::ValuesIn(kLaneBuilds));

TEST(SoftmaxUnitProtocol, AssertionFiresWhenABeatIsWithdrawn) {
  VerilatedDut<Vsoftmax_unit_4_checked> dut(RtlOptions{true, "", 3});
  // One beat a row: after slot A of the only row, beats wait for the next interval.
  dut->rows_i = 1;
  dut->cols_i = 4;
  dut->mode_i = 1;
  dut->out_bits_i = 8;
  dut->q_ln2_i = 177;
  dut->ready_i = 1;
  dut->valid_i = 1;
  expect_assertion("InputHeld_A", dut, 5, [&] { dut->valid_i = 0; });
}

TEST(SoftmaxUnitSizes, OthersThanThoseBuiltAreRefused) {
  EXPECT_THROW((void)make_softmax_unit(8), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench

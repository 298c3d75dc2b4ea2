#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "Vsoftmax_unit_4_checked.h"
#include "base/error.h"
#include "hw/function/softmax.h"
#include "hw/postop/postop.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/nonlinear/softmax_unit_rtl.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/drive/unit_test.h"
#include "tests/rtl/nonlinear/row_data.h"

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

hw::Chain chain_of(hw::SoftmaxMode mode) {
  hw::Stage stage;
  stage.op = hw::StageOp::kSoftmax;
  stage.imm[0] = static_cast<std::int64_t>(mode);
  return {{stage}, hw::DType::kS32};
}

class SoftmaxUnit : public testing::TestWithParam<std::uint32_t> {
 protected:
  /// Runs the rows and counts codes and row sums that differ from the reference.
  std::size_t differences(SoftmaxUnitRtl& unit, const std::vector<std::int32_t>& x,
                          std::size_t cols, const hw::SoftmaxConstants& constants,
                          const BackPressure& pressure = {}, std::size_t kept = 0) const {
    const std::size_t rows = x.size() / cols;
    std::vector<std::int32_t> actual = x;
    std::vector<std::uint32_t> sums(rows, 1);
    const RtlCycles measured =
        unit.run(actual.data(), cols, rows, constants, sums.data(), pressure, kept);
    expect_contract(hw::chain_cycles(chain_of(constants.mode), rows, cols, GetParam()).total(rows),
                    measured);
    std::size_t count = 0;
    std::vector<std::uint32_t> codes(cols);
    for (std::size_t row = 0; row < rows; ++row) {
      std::vector<std::uint8_t> keep(cols, 1);
      for (std::size_t i = kept + row; kept != 0 && i < cols; ++i) keep[i] = 0;
      const std::uint32_t sum =
          hw::softmax_row(x.data() + row * cols, keep.data(), cols, constants, codes.data());
      count += sum == sums[row] ? 0 : 1;
      for (std::size_t i = 0; i < cols; ++i) {
        count += static_cast<std::uint32_t>(actual[row * cols + i]) == codes[i] ? 0 : 1;
      }
    }
    return count;
  }

  SoftmaxUnitRtl unit_{GetParam(), RtlOptions{true, "", 8}};
};

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
          ASSERT_EQ(differences(unit_, rows, cols, constants), 0U) << scale << " " << cols;
        }
      }
    }
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(SoftmaxUnit, MatchesTheReferenceOnAMillionElements) {
  std::mt19937_64 random(62);
  std::size_t elements = 0;
  for (int i = 0; elements < 1'000'000; ++i) {
    const std::size_t cols = random_length(random, 700);
    const std::size_t rows = 1 + random() % 12;
    const hw::SoftmaxConstants constants = random_constants(random, kModes[i % 3]);
    ASSERT_EQ(differences(unit_, random_rows(random, rows, cols), cols, constants), 0U)
        << i << ": " << rows << " x " << cols;
    elements += rows * cols;
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(SoftmaxUnit, MatchesTheReferenceWithEveryPrecisionOfTheExponential) {
  std::mt19937_64 random(63);
  for (const hw::SoftmaxMode mode : kModes) {
    for (unsigned bits = hw::kMinExpFractionBits; bits <= hw::kMaxExpFractionBits; ++bits) {
      const hw::SoftmaxConstants constants = usual_constants(mode, 0.02, bits);
      for (const std::size_t cols : {1U, 3U, 33U, 200U}) {
        std::vector<std::int32_t> rows = random_rows(random, 4, cols);
        for (std::int32_t& word : rows) word >>= 20;
        ASSERT_EQ(differences(unit_, rows, cols, constants), 0U) << bits << " " << cols;
      }
    }
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(SoftmaxUnit, MatchesTheReferenceOnTheLongestRow) {
  std::mt19937_64 random(64);
  for (const hw::SoftmaxMode mode : kModes) {
    // The largest exponential throughout makes the largest sum; the codes add up to 2^32 - 65536.
    hw::SoftmaxConstants constants = usual_constants(mode, 0.02, hw::kMaxExpFractionBits, 16);
    constants.exp_to_code = {2147483647, 0};
    EXPECT_EQ(differences(unit_, std::vector<std::int32_t>(65536, -7), 65536, constants), 0U);
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(SoftmaxUnit, MatchesTheReferenceWhereTheSumGainsABit) {
  // Without its uppermost bit, such a sum would be a small one and give large codes.
  const hw::SoftmaxConstants constants =
      usual_constants(hw::SoftmaxMode::kNormalisedFloor, 0.02, hw::kMaxExpFractionBits, 16);
  const std::uint64_t largest = hw::int_exp(0, constants.exp);
  for (unsigned bit = 30; (std::uint64_t{1} << bit) < 65536 * largest; ++bit) {
    const std::size_t cols = (std::uint64_t{1} << bit) / largest + 1;
    EXPECT_EQ(differences(unit_, std::vector<std::int32_t>(cols, -7), cols, constants), 0U) << bit;
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(SoftmaxUnit, KeepsItsValuesUnderBackPressure) {
  std::mt19937_64 random(65);
  for (int i = 0; i < 600; ++i) {
    const std::size_t cols = random_length(random, 80);
    const std::vector<std::int32_t> rows = random_rows(random, 1 + random() % 6, cols);
    ASSERT_EQ(differences(unit_, rows, cols, random_constants(random, kModes[i % 3]),
                          random_pressure(random)),
              0U)
        << i;
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(SoftmaxUnit, LeavesOutWhatACausalMaskDoes) {
  std::mt19937_64 random(68);
  for (int i = 0; i < 400; ++i) {
    const std::size_t cols = random_length(random, 80);
    const std::vector<std::int32_t> rows = random_rows(random, 1 + random() % 9, cols);
    const std::size_t kept = 1 + random() % cols;
    const BackPressure pressure = i % 2 == 0 ? BackPressure{} : random_pressure(random);
    ASSERT_EQ(
        differences(unit_, rows, cols, random_constants(random, kModes[i % 3]), pressure, kept), 0U)
        << i << ": " << kept << " of " << cols;
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(SoftmaxUnit, TakesTheCyclesOfTheContract) {
  constexpr std::uint64_t kRows = 5;
  std::vector<std::int32_t> x(kRows * 200);
  std::vector<std::uint32_t> sums(kRows);
  for (const hw::SoftmaxMode mode : kModes) {
    const hw::SoftmaxConstants constants = usual_constants(mode);
    const std::uint64_t cols = 8 * GetParam();  // intervals bound by the division, and by the slots
    sweep_cycles(
        4'000, kRows, cols, 66,
        [&](std::uint64_t rows, std::uint64_t columns, const BackPressure& pressure) {
          return unit_.run(x.data(), columns, rows, constants, sums.data(), pressure);
        },
        [&](std::uint64_t rows, std::uint64_t columns) {
          return hw::chain_cycles(chain_of(mode), rows, columns, GetParam()).total(rows);
        });
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(SoftmaxUnit, FastBuildHasTheSameValues) {
  std::mt19937_64 random(67);
  SoftmaxUnitRtl fast(GetParam());
  for (int i = 0; i < 300; ++i) {
    const std::size_t cols = random_length(random, 300);
    ASSERT_EQ(differences(fast, random_rows(random, 3, cols), cols,
                          random_constants(random, kModes[i % 3])),
              0U);
  }
}

TEST_P(SoftmaxUnit, ReportsAnUnknownMode) {
  const ExpectedAssertions expected({"ModeKnown_A"});
  hw::SoftmaxConstants wrong = usual_constants(hw::SoftmaxMode::kNormalisedFloor);
  wrong.mode = static_cast<hw::SoftmaxMode>(3);
  std::int32_t x = 1;
  std::uint32_t sum = 0;
  unit_.run(&x, 1, 1, wrong, &sum);
  EXPECT_TRUE(unit_.failed());
}

INSTANTIATE_TEST_SUITE_P(Lanes, SoftmaxUnit, testing::ValuesIn(kLaneBuilds));

TEST(SoftmaxUnitProtocol, AssertionFiresWhenABeatIsWithdrawn) {
  const ExpectedAssertions expected({"InputHeld_A"});
  VerilatedDut<Vsoftmax_unit_4_checked> dut(RtlOptions{true, "", 3});
  // One beat a row: after slot A of the only row, beats wait for the next interval.
  dut->rows_i = 1;
  dut->cols_i = 4;
  dut->mode_i = 1;
  dut->out_bits_i = 8;
  dut->q_ln2_i = 177;
  dut->ready_i = 1;
  dut->valid_i = 1;
  for (int i = 0; i < 5; ++i) dut.tick();
  EXPECT_FALSE(dut.failed()) << "a beat may wait for its slot";
  dut->valid_i = 0;
  for (int i = 0; i < 2; ++i) dut.tick();
  EXPECT_TRUE(dut.failed());
}

TEST(SoftmaxUnitSizes, OthersThanThoseBuiltAreRefused) {
  EXPECT_THROW(SoftmaxUnitRtl(8), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "Vrequantizer_4_checked.h"
#include "base/error.h"
#include "hw/kernel/row_plain.h"
#include "hw/postop/postop.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/postop/requantizer_rtl.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/drive/unit_test.h"

namespace systole::testbench {
namespace {

constexpr hw::Rounding kRoundings[] = {hw::Rounding::kHalfUp, hw::Rounding::kHalfEven,
                                       hw::Rounding::kFloor};
constexpr hw::row::Clamp kWhole = {kLowest, kHighest};
constexpr int kShifts = hw::kMaxDyadicShift + 1;

/// Rows with constants of their own per column.
struct Operands {
  std::vector<std::int32_t> x, multipliers, shifts;
};

/// Number of elements that differ from the plain loop.
std::size_t differences(RequantizerRtl& unit, const Operands& operands, hw::Rounding rounding,
                        hw::row::Clamp limits, const BackPressure& pressure = {}) {
  const std::size_t cols = operands.multipliers.size();
  const std::size_t rows = operands.x.size() / cols;
  std::vector<std::int32_t> expected = operands.x;
  hw::row::plain::requantise_channels_rows(expected.data(), cols, rows, operands.multipliers.data(),
                                           operands.shifts.data(), rounding, limits);
  std::vector<std::int32_t> actual = operands.x;
  unit.run(actual.data(), cols, rows, operands.multipliers.data(), operands.shifts.data(), rounding,
           limits, pressure);
  std::size_t count = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) count += actual[i] == expected[i] ? 0 : 1;
  return count;
}

Operands random_operands(std::mt19937_64& random, std::size_t rows, std::size_t cols) {
  Operands operands;
  for (std::size_t i = 0; i < cols; ++i) {
    operands.multipliers.push_back(random_word(random));
    operands.shifts.push_back(static_cast<std::int32_t>(random() % kShifts));
  }
  for (std::size_t i = 0; i < rows * cols; ++i) operands.x.push_back(random_word(random));
  return operands;
}

hw::row::Clamp random_limits(std::mt19937_64& random) {
  if (random() % 2 == 0) return kWhole;
  const std::int32_t a = random_word(random);
  const std::int32_t b = random_word(random);
  return {std::min(a, b), std::max(a, b)};
}

class Requantizer : public testing::TestWithParam<std::uint32_t> {
 protected:
  RequantizerRtl unit_{GetParam(), RtlOptions{true, "", 7}};
};

TEST_P(Requantizer, MatchesTheReferenceOnRandomOperands) {
  constexpr std::size_t kCols = 1999;
  constexpr std::size_t kElements = 1'050'000;
  std::mt19937_64 random(11);
  for (const hw::Rounding rounding : kRoundings) {
    for (std::size_t elements = 0; elements < kElements; elements += kCols) {
      // One row: every element has a multiplier and a shift of its own.
      const Operands operands = random_operands(random, 1, kCols);
      ASSERT_EQ(differences(unit_, operands, rounding, random_limits(random)), 0U)
          << static_cast<int>(rounding);
    }
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(Requantizer, MatchesTheReferenceInEveryCorner) {
  const std::int32_t words[] = {kLowest, kLowest + 1, -65536,  -3,    -2,      -1,      0, 1, 2, 3,
                                5,       7,           1 << 15, 65535, 1 << 30, kHighest};
  Operands operands;
  for (const std::int32_t multiplier : words) {
    for (std::int32_t shift = 0; shift < kShifts; ++shift) {
      operands.multipliers.push_back(multiplier);
      operands.shifts.push_back(shift);
    }
  }
  for (const std::int32_t x : words) {
    operands.x.insert(operands.x.end(), operands.multipliers.size(), x);
  }
  for (const hw::Rounding rounding : kRoundings) {
    for (const hw::row::Clamp limits :
         {kWhole, hw::row::Clamp{-127, 127}, hw::row::Clamp{0, 0}, hw::row::Clamp{kLowest, kLowest},
          hw::row::Clamp{kHighest, kHighest}}) {
      EXPECT_EQ(differences(unit_, operands, rounding, limits), 0U)
          << static_cast<int>(rounding) << ' ' << limits.lo << ' ' << limits.hi;
    }
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(Requantizer, KeepsItsValuesUnderBackPressure) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 300; ++i) {
    const Operands operands = random_operands(random, 1 + random() % 3, 1 + random() % 70);
    ASSERT_EQ(differences(unit_, operands, kRoundings[i % 3], random_limits(random),
                          random_pressure(random)),
              0U);
  }
  EXPECT_FALSE(unit_.failed());
}

TEST_P(Requantizer, TakesTheCyclesOfTheContract) {
  constexpr std::uint64_t kRows = 3;
  constexpr std::uint64_t kCols = 70;
  hw::Stage stage;
  stage.op = hw::StageOp::kRequantise;
  const std::vector<std::int32_t> ones(kCols, 1);
  std::vector<std::int32_t> x(kRows * kCols);
  sweep_cycles(
      10'000, kRows, kCols, 13,
      [&](std::uint64_t rows, std::uint64_t cols, const BackPressure& pressure) {
        return unit_.run(x.data(), cols, rows, ones.data(), ones.data(), hw::Rounding::kHalfUp,
                         kWhole, pressure);
      },
      [&](std::uint64_t rows, std::uint64_t cols) {
        return hw::chain_cycles({{stage}}, rows, cols, GetParam()).total(rows);
      });
  EXPECT_FALSE(unit_.failed());
}

TEST_P(Requantizer, ReportsLimitsInTheWrongOrder) {
  const ExpectedAssertions expected({"LimitsOrdered_A"});
  std::int32_t x = 5;
  const std::int32_t one = 1;
  unit_.run(&x, 1, 1, &one, &one, hw::Rounding::kHalfUp, {1, 0});
  EXPECT_TRUE(unit_.failed());
}

TEST_P(Requantizer, FastBuildHasTheSameValues) {
  std::mt19937_64 random(14);
  RequantizerRtl fast(GetParam());
  for (int i = 0; i < 100; ++i) {
    const Operands operands = random_operands(random, 2, 1 + random() % 200);
    ASSERT_EQ(differences(fast, operands, kRoundings[i % 3], random_limits(random)), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, Requantizer, testing::ValuesIn(kLaneBuilds));

TEST(RequantizerProtocol, AssertionFiresWhenABeatIsWithdrawn) {
  const ExpectedAssertions expected({"InputHeld_A"});
  VerilatedDut<Vrequantizer_4_checked> dut(RtlOptions{true, "", 3});
  dut->rounding_i = 0;
  dut->lo_i = 0;
  dut->hi_i = 1;
  dut->mask_i = 0xf;
  dut->ready_i = 0;
  dut->valid_i = 1;
  for (int i = 0; i < 10; ++i) dut.tick();
  EXPECT_FALSE(dut.failed()) << "a held beat is legal";
  dut->valid_i = 0;
  for (int i = 0; i < 2; ++i) dut.tick();
  EXPECT_TRUE(dut.failed());
}

TEST(RequantizerSizes, OthersThanThoseBuiltAreRefused) {
  EXPECT_THROW(RequantizerRtl(8), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "Vi_sqrt_64_checked.h"
#include "hw/number/isqrt.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/postop/chain_rtl.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/drive/unit_test.h"

namespace systole::testbench {
namespace {

const RtlOptions kChecked{true, "", 5};

/// Numbers with all lengths of 0 to 64 bits equally often.
std::vector<std::uint64_t> random_numbers(std::mt19937_64& random, std::size_t count) {
  std::vector<std::uint64_t> numbers(count);
  for (std::uint64_t& number : numbers) {
    const auto bits = static_cast<unsigned>(random() % 65);
    number = bits == 0 ? 0 : random() >> (64 - bits);
  }
  return numbers;
}

/// Where the root steps: k^2 - 1, k^2, k^2 + 1 and k^2 + 2k, for k up to 2^32 - 1.
void add_corners(std::uint64_t k, std::vector<std::uint64_t>& numbers) {
  for (const std::uint64_t number : {k * k - 1, k * k, k * k + 1, k * k + 2 * k}) {
    numbers.push_back(number);
  }
}

std::size_t differences(ISqrtRtl& unit, const std::vector<std::uint64_t>& numbers,
                        const BackPressure& pressure = {}) {
  const ISqrtRtl::Roots result = unit.roots(numbers, pressure);
  expect_contract(hw::int_sqrt_cycles(numbers.size()), result.cycles);
  if (result.roots.size() != numbers.size()) return numbers.size();
  std::size_t count = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    count += result.roots[i] == hw::int_sqrt(numbers[i]).root ? 0 : 1;
  }
  return count;
}

TEST(ISqrtRtl, MatchesTheReferenceOnNumbersOfAnyMagnitude) {
  std::mt19937_64 random(51);
  const std::unique_ptr<ISqrtRtl> unit = make_i_sqrt(kChecked);
  EXPECT_EQ(differences(*unit, random_numbers(random, 1'200'000)), 0U);
  EXPECT_FALSE(unit->failed());
}

TEST(ISqrtRtl, MatchesTheReferenceWhereTheRootSteps) {
  std::mt19937_64 random(52);
  const std::unique_ptr<ISqrtRtl> unit = make_i_sqrt(kChecked);
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t k = 1; k <= 70'000; ++k) add_corners(k, numbers);
  for (unsigned bit = 1; bit <= 32; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    for (std::uint64_t k = power - std::min<std::uint64_t>(power - 1, 20); k < power; ++k) {
      add_corners(k, numbers);
    }
  }
  for (int i = 0; i < 50'000; ++i) add_corners(1 + random() % 0xffffffff, numbers);
  numbers.push_back(~std::uint64_t{0});
  EXPECT_EQ(differences(*unit, numbers), 0U);
  EXPECT_FALSE(unit->failed());
}

TEST(ISqrtRtl, TakesTheCyclesOfTheContractUnderBackPressure) {
  std::mt19937_64 random(53);
  const std::unique_ptr<ISqrtRtl> unit = make_i_sqrt(kChecked);
  for (int i = 0; i < 10'000; ++i) {
    const BackPressure pressure = i % 2 == 0 ? BackPressure{} : random_pressure(random);
    ASSERT_EQ(differences(*unit, random_numbers(random, 1 + random() % 8), pressure), 0U);
    ASSERT_FALSE(HasFailure()) << i;
  }
  EXPECT_FALSE(unit->failed());
}

TEST(ISqrtRtl, FastBuildHasTheSameValues) {
  std::mt19937_64 random(54);
  const std::unique_ptr<ISqrtRtl> unit = make_i_sqrt();
  EXPECT_EQ(differences(*unit, random_numbers(random, 100'000)), 0U);
}

TEST(ISqrtRtl, EndsASimulationInWhichNothingMoves) {
  VerilatedDut<Vi_sqrt_64_checked> dut(kChecked);
  dut->valid_i = 0;
  dut->ready_i = 1;
  const auto wait = [&](int cycles) {
    for (int i = 0; i < cycles; ++i) {
      dut.settle();
      dut.end_cycle(false);
    }
  };
  EXPECT_NO_THROW(wait(100'000));
  dut.settle();
  dut.end_cycle(true);
  EXPECT_NO_THROW(wait(100'000));
  EXPECT_THROW(wait(1), std::runtime_error);
}

TEST(ISqrtRtl, AssertionFiresWhenANumberIsWithdrawn) {
  VerilatedDut<Vi_sqrt_64_checked> dut(kChecked);
  dut->ready_i = 1;
  dut->radicand_i = 1;
  dut->valid_i = 1;
  expect_assertion("InputHeld_A", dut, 10, [&] { dut->valid_i = 0; });
}

}  // namespace
}  // namespace systole::testbench

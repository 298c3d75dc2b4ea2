#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>

#include "testbench/rtl/drive/rtl_options.h"

/// What the tests of the streaming units have in common.
namespace systole::testbench {

inline constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
inline constexpr std::int32_t kHighest = std::numeric_limits<std::int32_t>::max();

/// Lanes that every lane unit is built with.
inline constexpr std::uint32_t kLaneBuilds[] = {4, 16};

/// A signed word of a random length of 1 to 32 bits, so that small values are as frequent as large
/// ones; now and then one of the two extremes.
inline std::int32_t random_word(std::mt19937_64& random) {
  const std::uint64_t bits = random();
  if (bits % 64 == 0) return std::numeric_limits<std::int32_t>::min();
  if (bits % 64 == 1) return std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(bits >> 32) >> (bits / 64 % 32);
}

/// Any mixture of a slow source and a slow sink, from none to nine cycles lost in ten.
inline BackPressure random_pressure(std::mt19937_64& random) {
  const auto per_mille = [&random] {
    return random() % 3 == 0 ? 0 : static_cast<unsigned>(random() % 901);
  };
  return {per_mille(), per_mille(), random()};
}

/// The contract says how long an operation takes; only cycles stalled from outside come on top.
inline void expect_contract(std::uint64_t contract, const RtlCycles& measured) {
  EXPECT_EQ(measured.cycles, contract + measured.stalled);
}

/// Runs `count` operations of random shape, every other one under random back-pressure, and checks
/// their cycles: run(rows, cols, pressure) returns RtlCycles, contract(rows, cols) cycles.
template <typename Run, typename Contract>
void sweep_cycles(std::size_t count, std::uint64_t max_rows, std::uint64_t max_cols,
                  std::uint64_t seed, Run run, Contract contract) {
  std::mt19937_64 random(seed);
  std::uint64_t stalled = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t rows = 1 + random() % max_rows;
    const std::uint64_t cols = 1 + random() % max_cols;
    const BackPressure pressure = i % 2 == 0 ? BackPressure{} : random_pressure(random);
    const RtlCycles measured = run(rows, cols, pressure);
    expect_contract(contract(rows, cols), measured);
    if (i % 2 == 0) {
      EXPECT_EQ(measured.stalled, 0U);
    }
    stalled += measured.stalled;
    if (testing::Test::HasFailure()) {
      FAIL() << rows << " x " << cols << ", input " << pressure.input_per_mille << ", output "
             << pressure.output_per_mille << ", seed " << pressure.seed;
    }
  }
  EXPECT_GT(stalled, count) << "the back-pressure had no effect";
}

}  // namespace systole::testbench

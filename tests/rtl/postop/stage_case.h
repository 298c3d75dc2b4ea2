#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "base/error.h"
#include "hw/postop/postop.h"
#include "testbench/rtl/postop/chain_rtl.h"
#include "tests/rtl/drive/unit_test.h"

/// What the tests of the blocks that are a whole stage have in common.
namespace systole::testbench {

struct StageCase {
  hw::Stage stage;
  std::vector<std::int32_t> x;  ///< rows of `cols` words
  std::size_t cols;
  std::vector<std::int32_t> parameters = {};
  std::size_t kept = 0;  ///< hw::ChainOperands::kept

  [[nodiscard]] hw::Chain chain() const { return {{stage}, hw::DType::kS32}; }
  [[nodiscard]] hw::ChainOperands operands(std::vector<std::uint32_t>& statistics) const {
    hw::ChainOperands operands;
    operands.accumulator = x.data();
    operands.accumulator_pitch = operands.cols = cols;
    operands.rows = x.size() / cols;
    operands.parameters = parameters.data();
    operands.valid_cols = kept;
    statistics.assign(operands.rows, 1);
    operands.row_statistics = statistics.data();
    return operands;
  }
};

/// Words and row statistics that differ from hw::apply_chain(). Checks the cycles as well.
inline std::size_t differences(ChainRtl& rtl, std::uint32_t lanes, const StageCase& test,
                               const BackPressure& pressure = {}) {
  std::vector<std::uint32_t> statistics, expected_statistics;
  std::vector<std::int32_t> found(test.x.size()), expected(test.x.size());
  hw::ChainOperands model = test.operands(expected_statistics);
  model.out = expected.data();
  model.out_pitch = test.cols * sizeof(std::int32_t);
  hw::apply_chain(test.chain(), model);
  const RtlCycles cycles =
      rtl.run(test.chain(), test.operands(statistics), found.data(), nullptr, pressure);
  expect_contract(hw::chain_cycles(test.chain(), model.rows, model.cols, lanes).total(model.rows),
                  cycles);
  std::size_t count = 0;
  for (std::size_t i = 0; i < found.size(); ++i) count += found[i] != expected[i] ? 1 : 0;
  for (std::size_t i = 0; i < model.rows; ++i) {
    count += statistics[i] != expected_statistics[i] ? 1 : 0;
  }
  return count;
}

using MakeStageRtl = std::unique_ptr<ChainRtl> (*)(std::uint32_t, const RtlOptions&);

/// A block in a number of lanes, with assertions: none may fail but in run_illegal().
template <MakeStageRtl kMake>
class StageTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  void TearDown() override { EXPECT_EQ(unit_->failed(), fails_); }

  [[nodiscard]] std::size_t differing(const StageCase& test, const BackPressure& pressure = {}) {
    return differences(*unit_, GetParam(), test, pressure);
  }
  /// `random_case(random, i)` makes case i of `count`.
  template <typename RandomCase>
  void expect_values(int count, std::uint64_t seed, RandomCase random_case) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < count; ++i) ASSERT_EQ(differing(random_case(random, i)), 0U) << i;
  }
  template <typename RandomCase>
  void expect_values_under_back_pressure(int count, std::uint64_t seed, RandomCase random_case) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(differing(random_case(random, i), random_pressure(random)), 0U) << i;
    }
  }
  template <typename RandomCase>
  void expect_values_of_the_fast_build(int count, std::uint64_t seed, RandomCase random_case) {
    std::mt19937_64 random(seed);
    const std::unique_ptr<ChainRtl> fast = kMake(GetParam(), {});
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(differences(*fast, GetParam(), random_case(random, i)), 0U) << i;
    }
  }
  void sweep(std::size_t count, std::uint64_t max_rows, std::uint64_t max_cols, std::uint64_t seed,
             const hw::Stage& stage) {
    const std::vector<std::int32_t> words(std::max<std::uint64_t>(max_rows, 2) * max_cols, 1);
    sweep_cycles(
        count, max_rows, max_cols, seed,
        [&](std::uint64_t rows, std::uint64_t cols, const BackPressure& pressure) {
          const StageCase test{stage, {words.data(), words.data() + rows * cols}, cols, words};
          std::vector<std::uint32_t> statistics;
          std::vector<std::int32_t> out(rows * cols);
          return unit_->run(test.chain(), test.operands(statistics), out.data(), nullptr, pressure);
        },
        [&](std::uint64_t rows, std::uint64_t cols) {
          return hw::chain_cycles({{stage}}, rows, cols, GetParam()).total(rows);
        });
  }
  /// Runs what the block has to report, in one row.
  void run_illegal(const StageCase& test) {
    std::vector<std::uint32_t> statistics;
    std::vector<std::int32_t> out(test.x.size());
    unit_->run(test.chain(), test.operands(statistics), out.data());
    fails_ = true;
  }

  bool fails_ = false;
  const std::unique_ptr<ChainRtl> unit_ = kMake(GetParam(), RtlOptions{true, "", 7});
};

}  // namespace systole::testbench

/// rtl/dma/systole_weight_expander.sv against hw/number/weight_groups.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "Vweight_expander_4_checked.h"
#include "testbench/rtl/dma/weight_expander_rtl.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/drive/expected_assertions.h"

namespace systole::testbench {
namespace {

/// Lanes.
class WeightExpander : public testing::TestWithParam<std::uint32_t> {
 protected:
  std::unique_ptr<WeightExpanderRtl> unit_ =
      make_weight_expander(GetParam(), RtlOptions{true, "", 6});
};

TEST_P(WeightExpander, MakesTheWeightsOfRandomRunsInTheCyclesOfTheContract) {
  std::mt19937_64 random(7);
  RtlCounts counts;
  for (int i = 0; i < 60; ++i) {
    std::vector<PackedRun> runs;
    for (std::size_t j = 0; j < 1 + random() % 6; ++j) {
      runs.push_back(random_run(random, unit_->max_cols()));
    }
    check_weight_expander(*unit_, runs, random() % 3 == 0 ? random() % 400 : 0, counts);
    ASSERT_EQ(counts.mismatches, 0U) << i;
  }
  EXPECT_GT(counts.operations, 100U);
  EXPECT_FALSE(unit_->failed());
}

/// A run whose columns have scales one after the other, and its rows all codes from `first` on.
PackedRun corners(hw::WeightFormat format, std::uint32_t cols, int scale, int first, int minimum) {
  PackedRun run{format, cols, {}};
  run.bytes.assign(hw::packed_group_bytes(format, cols), 0);
  const std::size_t heads = hw::is_mx(format) ? 1 : 2;
  for (std::uint32_t c = 0; c < cols; ++c) {
    run.bytes[c] = static_cast<std::uint8_t>(scale + static_cast<int>(c));
    if (heads == 2) run.bytes[cols + c] = static_cast<std::uint8_t>(minimum);
  }
  const std::size_t row_bytes = hw::code_row_bytes(format, cols);
  for (std::uint32_t row = 0; row < hw::kGroupWeights; ++row) {
    const int code = first + static_cast<int>(row);
    const int byte = hw::code_bits(format) == 8 ? code : code % 16 * 17;
    std::fill_n(&run.bytes[heads * cols + row * row_bytes], row_bytes,
                static_cast<std::uint8_t>(byte));
  }
  return run;
}

TEST_P(WeightExpander, MakesEveryWeightOfMxAndTheCornersOfGroups) {
  const auto cols = static_cast<int>(unit_->max_cols());
  std::vector<PackedRun> runs;
  for (int scale = 0; scale < 256; scale += cols) {
    const bool rounds = scale + cols >= 120 && scale <= 140;  // else all is zero or saturates
    for (int first = 0; first < 256; first += rounds ? 32 : 96) {
      runs.push_back(corners(hw::WeightFormat::kMxInt8, unit_->max_cols(), scale, first, 0));
    }
    runs.push_back(corners(hw::WeightFormat::kMxFp4, unit_->max_cols(), scale, 0, 0));
    for (const int minimum : {-128, -127, -60, 0, 127}) {
      runs.push_back(corners(hw::WeightFormat::kGroups, unit_->max_cols(), scale, 0, minimum));
    }
  }
  RtlCounts counts;
  check_weight_expander(*unit_, runs, 0, counts);
  EXPECT_EQ(counts.mismatches, 0U);
  EXPECT_EQ(counts.operations, runs.size());
}

TEST_P(WeightExpander, TakesEveryWidth) {
  std::mt19937_64 random(8);
  RtlCounts counts;
  std::vector<PackedRun> runs;
  for (std::uint32_t cols = 1; cols <= unit_->max_cols(); ++cols) {
    for (const hw::WeightFormat format :
         {hw::WeightFormat::kGroups, hw::WeightFormat::kMxInt8, hw::WeightFormat::kMxFp4}) {
      runs.push_back({format, cols, {}});
      runs.back().bytes.resize(hw::packed_group_bytes(format, cols));
      for (std::uint8_t& byte : runs.back().bytes) byte = static_cast<std::uint8_t>(random());
    }
  }
  check_weight_expander(*unit_, runs, 0, counts);
  EXPECT_EQ(counts.mismatches, 0U);
}

INSTANTIATE_TEST_SUITE_P(Lanes, WeightExpander, testing::Values(4U, 16U));

TEST(WeightExpanderProtocol, AssertionFiresForWhatIsNoRun) {
  const auto start = [](const char* assertion, unsigned format, unsigned cols) {
    VerilatedDut<Vweight_expander_4_checked> dut(RtlOptions{true, "", 3});
    dut->write_i = 0;
    dut->start_i = 0;
    dut->format_i = static_cast<CData>(format);
    dut->cols_i = static_cast<CData>(cols);
    dut.reset();
    const ExpectedAssertions expected({assertion});
    dut.tick();
    EXPECT_FALSE(dut.failed()) << "what is held is legal";
    dut->start_i = 1;
    dut.tick();
    dut->start_i = 0;
    dut.tick();
    EXPECT_TRUE(dut.failed());
  };
  start("FormatKnown_A", 0, 4);
  start("ColumnsFit_A", 1, 0);
  start("ColumnsFit_A", 1, 17);
}

TEST(WeightExpanderProtocol, AssertionFiresWhenARunBeginsTooEarly) {
  VerilatedDut<Vweight_expander_4_checked> dut(RtlOptions{true, "", 3});
  dut->write_i = dut->start_i = 0;
  dut->format_i = 1;
  dut->cols_i = 8;
  dut.reset();
  dut->start_i = 1;
  dut.tick();
  dut->start_i = 0;
  expect_assertion("StartTaken_A", dut, 5, [&] { dut->start_i = 1; });
}

}  // namespace
}  // namespace systole::testbench

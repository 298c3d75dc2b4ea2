// rtl/attention/systole_attention_softmax.sv against hw/function/softmax.h, bit by bit, and the
// cycles of hw/attention/timing/attention_cycles.h.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "Vattention_softmax_8_checked.h"
#include "base/error.h"
#include "hw/attention/timing/attention_cycles.h"
#include "testbench/rtl/attention/attention_softmax_rtl.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/engine/engines.h"
#include "tests/rtl/attention/head_case.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/drive/unit_test.h"

namespace systole::testbench {
namespace {

const RtlOptions kSoftmaxChecked{true, "", 5};

/// Constants that check_chain() accepts of an attention command, of any magnitude.
hw::SoftmaxConstants any_softmax_constants(std::mt19937_64& random) {
  const auto dyadic = [&random] {
    return hw::Dyadic{static_cast<std::int32_t>(random() >> (33 + random() % 31)),
                      static_cast<std::int8_t>(random() % 64)};
  };
  const hw::Dyadic score = dyadic(), code = dyadic();
  const auto fraction_bits = static_cast<unsigned>(
      hw::kMinExpFractionBits + random() % (hw::kMaxExpFractionBits - hw::kMinExpFractionBits + 1));
  return {hw::SoftmaxMode::kDeferred,
          score,
          hw::make_int_exp_constants(fraction_bits),
          code,
          static_cast<unsigned>(1 + random() % 8),
          32};
}

/// Rows of 0 to 40 scores of any magnitude, one or none in a third of them.
ScoreRows random_score_rows(std::mt19937_64& random) {
  ScoreRows rows;
  const std::size_t count = 1 + random() % 12;
  for (std::size_t row = 0; row < count; ++row) {
    const std::size_t length = random() % 3 == 0 ? random() % 2 : random() % 41;
    const auto narrow = static_cast<unsigned>(random() % 28);
    for (std::size_t i = 0; i < length; ++i) {
      rows.scores.push_back(random_word(random) >> narrow);
    }
    rows.ends.push_back(rows.scores.size());
  }
  return rows;
}

/// What hw::softmax_row() makes of the rows, and the beats that they are.
struct ExpectedCodes {
  ExpectedCodes(const ScoreRows& rows, const hw::SoftmaxConstants& constants)
      : codes(rows.scores.size()) {
    for (std::size_t row = 0, begin = 0; row < rows.ends.size(); begin = rows.ends[row++]) {
      const std::size_t length = rows.ends[row] - begin;
      sums.push_back(hw::softmax_row(rows.scores.data() + begin, nullptr, length, constants,
                                     codes.data() + begin));
      beats += (length + kSoftmaxLanes - 1) / kSoftmaxLanes;
    }
  }
  std::vector<std::uint8_t> codes;
  std::vector<std::uint32_t> sums;
  std::uint64_t beats = 0;
};

TEST(AttentionSoftmax, MatchesTheModelInTheCyclesOfTheContract) {
  std::mt19937_64 random(1);
  const auto unit = make_attention_softmax(kSoftmaxLanes, kSoftmaxChecked);
  std::uint64_t stalled = 0;
  for (int i = 0; i < 4000; ++i) {
    const ScoreRows rows = random_score_rows(random);
    const hw::SoftmaxConstants constants =
        i % 4 == 0 ? hw::make_softmax_constants(1e-4) : any_softmax_constants(random);
    const ExpectedCodes expected(rows, constants);
    const BackPressure pressure = i % 2 == 0 ? BackPressure{} : random_pressure(random);
    std::vector<std::uint8_t> codes;
    std::vector<std::uint32_t> sums;
    const RtlCycles cycles = unit->run(rows, constants, codes, sums, nullptr, pressure);
    ASSERT_EQ(codes, expected.codes) << i;
    ASSERT_EQ(sums, expected.sums) << i;
    expect_contract(expected.beats == 0 ? 0 : expected.beats + 21, cycles);
    ASSERT_FALSE(HasFailure()) << i;
    if (i % 2 == 0) ASSERT_EQ(cycles.stalled, 0U);
    stalled += cycles.stalled;
  }
  EXPECT_GT(stalled, 4000U) << "the back-pressure had no effect";
  EXPECT_FALSE(unit->failed());
}

TEST(AttentionSoftmax, MatchesTheModelAtTheEndsOfTheRange) {
  const auto unit = make_attention_softmax(kSoftmaxLanes, kSoftmaxChecked);
  ScoreRows rows;
  for (const std::int32_t first : {kLowest, -1, 0, kHighest}) {
    for (const std::int32_t second : {kLowest, kLowest + 1, 0, kHighest - 1, kHighest}) {
      for (const std::size_t length : {1, 8, 9, 16}) {
        rows.scores.insert(rows.scores.end(), length, second);
        rows.scores.back() = first;
        rows.ends.push_back(rows.scores.size());
      }
    }
  }
  for (const unsigned bits : {1U, 7U, 8U}) {
    hw::SoftmaxOptions options;
    options.output_bits = bits;
    const hw::SoftmaxConstants constants = hw::make_softmax_constants(1e-8, options);
    const ExpectedCodes expected(rows, constants);
    std::vector<std::uint8_t> codes;
    std::vector<std::uint32_t> sums;
    (void)unit->run(rows, constants, codes, sums);
    EXPECT_EQ(codes, expected.codes) << bits;
    EXPECT_EQ(sums, expected.sums) << bits;
  }
  EXPECT_FALSE(unit->failed());
}

TEST(AttentionSoftmax, InAnEngineHasTheModelsSumsForAnyHead) {
  std::mt19937 random(2);
  hw::Machine::Backends backends;
  backends.attention_softmax = hw::Backend::kRtl;
  const hw::Machine::Attention attention = hw::engines(7, 8);
  RtlReport report;
  const auto rtl = make_attention_engine(attention, backends, {}, report);
  hw::AttentionModel model;
  for (int i = 0; i < 60; ++i) {
    const HeadCase test(hw::split_anywhere(hw::random_mask(random, 30), random),
                        random_count(random, 1, 40), random_count(random, 1, 40), attention,
                        random);
    const hw::ScoreFunctions functions{hw::make_softmax_constants(i % 2 == 0 ? 1e-4 : 1e-2),
                                       std::nullopt};
    const hw::AttentionSums expected = model.sums(test.head, test.operands, functions);
    const hw::AttentionSums found = rtl->sums(test.head, test.operands, functions);
    ASSERT_EQ(found.sums, expected.sums);
    ASSERT_EQ(found.divisor, expected.divisor);
  }
  EXPECT_EQ(report.size(), 1U);
  EXPECT_GT(report["attention_softmax"].operations, 40U);
  EXPECT_GT(report["attention_softmax"].cycles, report["attention_softmax"].operations * 22);
  EXPECT_EQ(report["attention_softmax"].mismatches, 0U);
}

TEST(AttentionSoftmaxProtocol, AssertsThatNoScoreIsAboveTheMaximum) {
  VerilatedDut<Vattention_softmax_8_checked> dut(kSoftmaxChecked);
  dut->ready_i = 1;
  dut->valid_i = 1;
  dut->mask_i = 1;
  dut->last_i = 1;
  dut->out_bits_i = 8;
  dut->maximum_i = 5;
  dut->data_i[0] = 5;
  expect_assertion("NotAboveMaximum_A", dut, 5, [&] { dut->data_i[0] = 6; });
}

TEST(AttentionSoftmaxProtocol, AssertsThatABeatStays) {
  VerilatedDut<Vattention_softmax_8_checked> dut(kSoftmaxChecked);
  dut->ready_i = 0;
  dut->valid_i = 1;
  dut->mask_i = 1;
  dut->out_bits_i = 8;
  dut->maximum_i = dut->data_i[0] = 5;
  expect_assertion("InputHeld_A", dut, 40, [&] { dut->valid_i = 0; });
}

TEST(AttentionSoftmaxSizes, OthersThanThoseBuiltAreRefused) {
  EXPECT_THROW((void)make_attention_softmax(4), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench

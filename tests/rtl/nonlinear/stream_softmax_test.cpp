#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "Vstream_softmax_16_checked.h"
#include "hw/stream/stream_functions.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/nonlinear/stream_softmax_rtl.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/drive/unit_test.h"

namespace systole::testbench {
namespace {

using hw::stream::kGroup;
using hw::stream::kLongestRow;

const RtlOptions kAssertions{true, "", 5};

/// Scores of every spread, from equal ones to all of int8; now and then one far above.
std::vector<std::int8_t> random_scores(std::mt19937_64& random, std::size_t count) {
  std::vector<std::int8_t> scores(count);
  const auto narrow = static_cast<unsigned>(random() % 9);
  const auto offset = static_cast<int>(random() % 200) - 100;
  for (std::int8_t& score : scores) {
    const int spread = static_cast<std::int8_t>(random()) >> narrow;
    score =
        static_cast<std::int8_t>(std::clamp(random() % 50 == 0 ? 127 : spread + offset, -128, 127));
  }
  return scores;
}

std::uint64_t mismatches(StreamSoftmaxRtl& unit, const std::vector<std::int8_t>& scores,
                         std::size_t length, const BackPressure& pressure = {}) {
  RtlCounts counts;
  check_stream_softmax(unit, scores, length, counts, pressure);
  EXPECT_EQ(counts.operations, 1U);
  return counts.mismatches;
}

TEST(StreamSoftmaxRtl, MatchesTheModelOnRowsOfAnyLength) {
  std::mt19937_64 random(1);
  const auto unit = make_stream_softmax(kAssertions);
  for (int i = 0; i < 4000; ++i) {
    const std::size_t length = kGroup * (1 + random() % 8);
    ASSERT_EQ(mismatches(*unit, random_scores(random, length * (1 + random() % 5)), length), 0U);
  }
  for (std::size_t length = kGroup; length <= kLongestRow; length += 13 * kGroup) {
    ASSERT_EQ(mismatches(*unit, random_scores(random, 3 * length), length), 0U) << length;
  }
}

TEST(StreamSoftmaxRtl, MatchesTheModelWhereSumsAndInversesAreExtreme) {
  const auto unit = make_stream_softmax(kAssertions);
  const std::size_t longest = kLongestRow / kGroup * kGroup;
  for (const int score : {-128, 0, 127}) {
    for (const std::size_t length : {kGroup, 16 * kGroup, longest}) {
      ASSERT_EQ(mismatches(*unit, std::vector<std::int8_t>(length, static_cast<std::int8_t>(score)),
                           length),
                0U);
    }
  }
  // The maximum grows by every distance, once after a full sum and once after one of 256.
  for (int growth = 0; growth < 256; ++growth) {
    for (const bool equal : {true, false}) {
      std::vector<std::int8_t> scores(2 * kGroup, -128);
      if (!equal) scores[1] = 0;
      scores[kGroup + 5] = static_cast<std::int8_t>(growth - 128);
      ASSERT_EQ(mismatches(*unit, scores, 2 * kGroup), 0U) << growth;
    }
  }
}

TEST(StreamSoftmaxRtl, TakesTheCyclesOfTheContractUnderBackPressure) {
  std::mt19937_64 random(2);
  const auto unit = make_stream_softmax(kAssertions);
  std::uint64_t stalled = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t length = kGroup * (1 + random() % 6), rows = 1 + random() % 4;
    RtlCounts counts;
    const RtlCycles cycles = check_stream_softmax(*unit, random_scores(random, rows * length),
                                                  length, counts, random_pressure(random));
    ASSERT_EQ(counts.mismatches, 0U);
    expect_contract(hw::stream::softmax_cycles(rows, length / kGroup), cycles);
    stalled += cycles.stalled;
  }
  EXPECT_GT(stalled, 1000U);
}

TEST(StreamSoftmaxRtl, FastBuildHasTheSameValues) {
  std::mt19937_64 random(3);
  const auto unit = make_stream_softmax();
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(mismatches(*unit, random_scores(random, 12 * kGroup), 4 * kGroup), 0U);
  }
}

TEST(StreamSoftmaxRtl, AssertionFiresWhenAGroupIsWithdrawn) {
  VerilatedDut<Vstream_softmax_16_checked> dut(kAssertions);
  dut->ready_i = 1;
  dut->valid_i = 1;
  dut->last_i = 1;
  expect_assertion("InputHeld_A", dut, 10, [&] { dut->valid_i = 0; });
}

}  // namespace
}  // namespace systole::testbench

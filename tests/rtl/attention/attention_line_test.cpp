// rtl/attention/systole_sparser_line.sv and rtl/attention/systole_denser_line.sv against
// hw/attention/sparse_attention.h, bit by bit, and hw::line_cycles(), every cycle.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "Vdenser_line_8_checked.h"
#include "Vsparser_line_8_checked.h"
#include "base/error.h"
#include "hw/attention/timing/attention_cycles.h"
#include "testbench/rtl/attention/attention_line_rtl.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/attention/head_case.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/drive/unit_test.h"

namespace systole::testbench {
namespace {

constexpr std::uint32_t kMacs = 8;
constexpr std::int8_t kExtremeBytes[] = {-128, 127, -1, 0};
constexpr std::size_t kMostFeatures = AttentionLineRtl::kMaxWords * kMacs;

hw::Machine::Attention random_lines(std::mt19937& random) {
  return hw::engines(
      random_count(random, 2, 13), kMacs,
      random() % 2 == 0 ? hw::SparserMapping::kColumnPerLine : hw::SparserMapping::kBroadcast);
}

/// 1 to `most` features, with those around multiples of the MACs more often.
std::size_t random_features(std::mt19937& random, std::size_t most) {
  if (random() % 3 != 0) return 1 + random() % most;
  return std::min(kMacs * (1 + random() % (most / kMacs)) + random() % 3 - 1, most);
}

class AttentionLine : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static bool dense() { return std::string(GetParam()) == "denser_line"; }
  [[nodiscard]] static std::unique_ptr<AttentionLineRtl> make(const RtlOptions& options = {}) {
    return dense() ? make_denser_line(kMacs, options) : make_sparser_line(kMacs, options);
  }
  [[nodiscard]] static std::unique_ptr<AttentionLineRtl> checked() { return make({true, "", 7}); }

  /// Lines of the engine under test that have work.
  static std::vector<std::size_t> lines_of(const hw::LineRuns& runs) {
    std::vector<std::size_t> lines;
    for (std::size_t line = 0; line < runs.lines.size(); ++line) {
      if ((line < runs.split.dense) == dense() && !runs.lines[line].empty()) lines.push_back(line);
    }
    return lines;
  }

  void account(const std::vector<hw::LineRun>& runs, std::uint64_t step_cycles, std::uint64_t busy,
               const RtlCycles& cycles, const BackPressure& pressure) {
    const std::uint64_t contract = hw::line_cycles(runs, step_cycles);
    expect_contract(contract, cycles);
    EXPECT_EQ(contract, busy + hw::unit_depth::kWalk + hw::unit_depth::kMac);
    if (pressure.input_per_mille == 0 && pressure.output_per_mille == 0) {
      EXPECT_EQ(cycles.stalled, 0U);
    }
    ++operations_;
    steps_ += busy;
    stalled_ += cycles.stalled;
  }

  /// All lines of the engine, one after the other: both phases of the head.
  void run(AttentionLineRtl& unit, const HeadCase& test, std::mt19937& random, bool slow) {
    const auto pressure = [&] {
      std::mt19937_64 seed(random());
      return slow ? random_pressure(seed) : BackPressure{};
    };
    const hw::LineRuns scores = hw::sddmm_runs(test.head, test.operands.dim, test.attention);
    const auto sddmm = hw::sddmm_cycles(test.head, test.operands.dim, test.attention);
    auto found = hw::make_split_cells<std::int32_t>(test.head);
    for (const std::size_t line : lines_of(scores)) {
      const LineWork work = score_work(test.head, test.operands, scores, line);
      const BackPressure drawn = pressure();
      RtlCycles cycles;
      const auto results = unit.run(work, cycles, nullptr, drawn);
      auto& cells = dense() ? found.dense : found.sparse;
      for (std::size_t i = 0; i < results.size(); ++i) cells[work.steps[i].cell] = results[i];
      account(scores.lines[line], hw::line_passes(test.operands.dim, test.attention),
              sddmm.busy[line], cycles, drawn);
    }
    const hw::SplitCells<std::int32_t> expected = hw::attention_scores(test.head, test.operands);
    ASSERT_EQ(dense() ? found.dense : found.sparse, dense() ? expected.dense : expected.sparse);
    run_sums(unit, test, pressure);
  }

  template <typename Pressure>
  void run_sums(AttentionLineRtl& unit, const HeadCase& test, Pressure pressure) {
    const std::size_t width = test.operands.value_dim;
    const hw::LineRuns runs = hw::spmm_runs(test.head, test.rows, width, test.attention);
    const auto spmm = hw::spmm_cycles(test.head, width, test.attention);
    std::vector<std::int32_t> found(test.head.queries * width, 0);
    for (const std::size_t line : lines_of(runs)) {
      const LineWork work =
          sum_work(test.head, test.rows, test.operands, test.codes, runs, line, kMacs);
      const BackPressure drawn = pressure();
      RtlCycles cycles;
      const auto results = unit.run(work, cycles, nullptr, drawn);
      for (std::size_t i = 0; i < results.size(); ++i) {
        const LineWork::Item& item = work.items[i / kMacs];
        const std::size_t feature = item.group * kMacs + i % kMacs;
        if (feature < width) found[item.item * width + feature] += results[i];
      }
      account(runs.lines[line], 1, spmm.busy[line], cycles, drawn);
    }
    ASSERT_EQ(found, test.sums(dense()));
  }

  std::uint64_t operations_ = 0, steps_ = 0, stalled_ = 0;
};

TEST_P(AttentionLine, MatchesTheReferenceOnRandomHeads) {
  std::mt19937 random(1);
  const auto unit = checked();
  while (steps_ < 200'000) {
    const HeadCase test(hw::split_anywhere(hw::random_mask(random, 40), random),
                        random_features(random, kMostFeatures),
                        random_features(random, kMostFeatures), random_lines(random), random);
    ASSERT_NO_FATAL_FAILURE(run(*unit, test, random, false));
  }
  EXPECT_FALSE(unit->failed());
}

TEST_P(AttentionLine, FastBuildWorksAMillionCyclesExactly) {
  std::mt19937 random(2);
  const auto unit = make();
  while (steps_ < 1'000'000) {
    const HeadCase test(hw::split_anywhere(hw::random_mask(random, 90), random),
                        random_features(random, kMostFeatures),
                        random_features(random, kMostFeatures), random_lines(random), random);
    ASSERT_NO_FATAL_FAILURE(run(*unit, test, random, false));
  }
}

TEST_P(AttentionLine, MatchesTheReferenceInEveryCorner) {
  std::mt19937 random(3);
  const auto unit = checked();
  const hw::HeadMask masks[] = {
      {1, 1, {1}},                                   // one key
      {3, 2, {0, 1, 0, 1, 0, 1}},                    // an empty column
      {4, 3, {1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0}},  // rows without keys
      {2, 5, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
  };
  for (const hw::HeadMask& mask : masks) {
    for (const std::size_t features : {1, 7, 8, 9, 16, 127, 128}) {
      for (const std::int8_t q : kExtremeBytes) {
        for (const std::int8_t k : kExtremeBytes) {
          HeadCase test(hw::split_anywhere(mask, random), features, features, random_lines(random),
                        random);
          test.fill(q, k, k, static_cast<std::uint8_t>(q == -1 ? 0x80 : 0xff));
          ASSERT_NO_FATAL_FAILURE(run(*unit, test, random, false)) << features;
        }
      }
    }
  }
  EXPECT_GT(operations_, 500U);
  EXPECT_FALSE(unit->failed());
}

/// A head of which every cell is kept and belongs to one engine.
hw::SparseHead full_head(std::size_t queries, std::size_t keys, bool dense) {
  const hw::HeadMask mask{queries, keys, std::vector<std::uint8_t>(queries * keys, 1)};
  std::vector<std::uint16_t> columns(keys);
  std::iota(columns.begin(), columns.end(), std::uint16_t{0});
  const std::vector<std::uint16_t> none;
  return dense ? hw::split_in_order(mask, columns, none) : hw::split_in_order(mask, none, columns);
}

TEST_P(AttentionLine, WalksAsManyQueriesAsThereCanBe) {
  std::mt19937 random(8);
  const auto unit = checked();
  const HeadCase test(full_head(hw::kMaxSparseTokens, 1, dense()), 1, 1, hw::engines(9, kMacs),
                      random);
  ASSERT_NO_FATAL_FAILURE(run(*unit, test, random, false));
  EXPECT_FALSE(unit->failed());
}

TEST_P(AttentionLine, HoldsTheSumOfAsManyKeysAsThereCanBe) {
  std::mt19937 random(4);
  const auto unit = checked();
  HeadCase test(full_head(1, hw::kMaxSparseTokens, dense()), 1, 1, hw::engines(2, kMacs), random);
  for (const std::int8_t value : kExtremeBytes) {
    test.fill(0, 0, value, 0xff);
    ASSERT_NO_FATAL_FAILURE(run_sums(*unit, test, [] { return BackPressure{}; }));
    EXPECT_EQ(test.sums(dense()).front(), value * 255 * 65535);
  }
  EXPECT_FALSE(unit->failed());
}

TEST_P(AttentionLine, TakesTheCyclesOfTheContract) {
  std::mt19937 random(5);
  const auto unit = checked();
  for (int i = 0; operations_ < 10'000; ++i) {
    const HeadCase test(hw::split_anywhere(hw::random_mask(random, 12), random),
                        random_features(random, 40), random_features(random, 40),
                        random_lines(random), random);
    run(*unit, test, random, i % 2 != 0);
    if (HasFailure()) FAIL() << "head " << i;
  }
  EXPECT_GT(stalled_, operations_) << "the back-pressure had no effect";
  EXPECT_FALSE(unit->failed());
}

TEST_P(AttentionLine, NamesRowsThatAreTooLong) {
  std::mt19937 random(6);
  const HeadCase test(dense() ? hw::split({1, 1, {1}}, {0}) : hw::split({1, 1, {1}}, {}),
                      kMostFeatures + 1, 1, hw::engines(2, kMacs), random);
  const hw::LineRuns runs = hw::sddmm_runs(test.head, test.operands.dim, test.attention);
  const LineWork work = score_work(test.head, test.operands, runs, lines_of(runs).front());
  RtlCycles cycles;
  try {
    (void)make()->run(work, cycles);
    FAIL();
  } catch (const hw::InputError& error) {
    EXPECT_EQ(error.what(),
              std::string(GetParam()) + " RTL: rows of 129 features, expected at most 128");
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, AttentionLine, testing::Values("sparser_line", "denser_line"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(AttentionLineBuilds, OthersThanThoseBuiltAreRefused) {
  EXPECT_THROW((void)make_sparser_line(4), hw::InputError);
  EXPECT_THROW((void)make_denser_line(16), hw::InputError);
}

/// Waits for the first word of an operation.
template <typename Model>
void expect_word_to_be_held(VerilatedDut<Model>& dut) {
  dut->spmm_i = 1;
  dut->words_i = 1;
  dut->tail_mask_i = 1;
  dut->result_ready_i = 0;
  dut->word_valid_i = 0;
  dut.tick();
  while (!dut->word_request_o) dut.tick();
  dut->word_valid_i = 1;
  while (!dut->result_valid_o) dut.tick();
  expect_assertion("WordHeld_A", dut, 4, [&] { dut->code_i = 1; });
}

TEST(SparserLineProtocol, AssertionFiresWhenABeatChanges) {
  VerilatedDut<Vsparser_line_8_checked> dut(RtlOptions{true, "", 3});
  dut->step_i = 1;
  dut->item_valid_i = dut->index_valid_i = 1;
  dut->item_last_i = 0;
  dut->item_begin_i = 0;
  dut->item_end_i = 1;
  dut->code_i = 0;
  expect_word_to_be_held(dut);
}

TEST(SparserLineProtocol, AssertionFiresOnAnEmptyItem) {
  VerilatedDut<Vsparser_line_8_checked> dut(RtlOptions{true, "", 3});
  dut->step_i = 1;
  dut->item_begin_i = dut->item_end_i = 5;
  expect_assertion("ItemNotEmpty_A", dut, 0, [&] { dut->item_valid_i = 1; });
}

TEST(DenserLineProtocol, AssertionFiresWhenABeatChanges) {
  VerilatedDut<Vdenser_line_8_checked> dut(RtlOptions{true, "", 3});
  dut->columns_i = dut->rows_i = 8;
  dut->groups_i = 1;
  dut->step_row_i = 1;
  dut->first_row_i = 0;
  dut->first_group_i = dut->step_group_i = 0;
  dut->walk_valid_i = 1;
  dut->code_i = 0;
  expect_word_to_be_held(dut);
}

}  // namespace
}  // namespace systole::testbench

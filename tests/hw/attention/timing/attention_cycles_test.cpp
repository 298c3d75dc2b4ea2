#include "hw/attention/timing/attention_cycles.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "hw/attention/timing/attention_schedule.h"
#include "hw/attention/timing/global_columns.h"
#include "tests/hw/attention/sparse_heads.h"
#include "tests/hw/attention/timing/attention_reference.h"

namespace systole::hw {
namespace {

constexpr std::size_t kAnyDim = 20;

Machine::Attention small_array(SparserMapping mapping = SparserMapping::kColumnPerLine) {
  Machine::Attention array = engines(4, 2, mapping);
  array.softmax_lanes = 2;
  return array;
}

/// Key 0 is kept by all queries but 2, key 1 by 0 and 1, key 2 by 4, key 3 by none.
HeadMask small_mask() {
  return {5, 4, {1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0}};
}

Machine::Attention random_array(std::mt19937& random) {
  Machine::Attention array;
  array.lines = static_cast<std::uint32_t>(random_size(random, 2, 12));
  array.macs_per_line = static_cast<std::uint32_t>(random_size(random, 1, 9));
  array.mapping =
      random_size(random, 0, 1) == 0 ? SparserMapping::kColumnPerLine : SparserMapping::kBroadcast;
  return array;
}

std::vector<std::uint16_t> random_keys(std::mt19937& random, std::size_t keys) {
  std::vector<std::uint16_t> order(keys);
  std::iota(order.begin(), order.end(), std::uint16_t{0});
  std::shuffle(order.begin(), order.end(), random);
  order.resize(random_size(random, 0, keys));
  return order;
}

TEST(SplitLines, SharesInProportionAndLeavesEachEngineALine) {
  const auto dense = [](std::uint64_t dense_cells, std::uint64_t sparse_cells) {
    const LineSplit split = split_lines(64, dense_cells, sparse_cells);
    EXPECT_EQ(split.dense + split.sparse, 64U);
    return split.dense;
  };
  EXPECT_EQ(dense(100, 100), 32U);
  EXPECT_EQ(dense(197, 1103), 10U);  // 9.70
  EXPECT_EQ(dense(3, 125), 2U);      // 1.5 rounds up
  EXPECT_EQ(dense(1, 100000), 1U);
  EXPECT_EQ(dense(100000, 1), 63U);
  EXPECT_EQ(dense(7, 0), 64U);
  EXPECT_EQ(dense(0, 7), 0U);
  EXPECT_EQ(dense(0, 0), 0U);
}

TEST(LineSchedule, PlacesTheLongestItemFirstAndBreaksTiesByIndex) {
  const LineSchedule schedule = schedule_longest_first({3, 5, 0, 3, 4}, 2);
  EXPECT_EQ(schedule.items, (std::vector<std::vector<std::uint32_t>>{{1, 3}, {4, 0}}));
  EXPECT_EQ(schedule.busy, (Counts{8, 7}));
  EXPECT_EQ(schedule.cycles(), 8U);
  EXPECT_EQ(schedule_longest_first({2, 2, 2}, 4).busy, (Counts{2, 2, 2, 0}));
}

TEST(LineSchedule, PlacesEveryItemOnceWithinTheBoundOfListScheduling) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Counts costs(random_size(random, 0, 60));
    for (auto& cost : costs) cost = random_size(random, 0, 30);
    const std::size_t lines = random_size(random, 1, 9);
    const LineSchedule schedule = schedule_longest_first(costs, lines);
    Counts placed(costs.size(), 0);
    for (std::size_t line = 0; line < lines; ++line) {
      std::uint64_t busy = 0;
      for (const std::uint32_t item : schedule.items[line]) {
        busy += costs[item];
        ++placed[item];
      }
      EXPECT_EQ(schedule.busy[line], busy);
    }
    std::uint64_t sum = 0, longest = 0;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      EXPECT_EQ(placed[i], costs[i] > 0 ? 1U : 0U);
      sum += costs[i];
      longest = std::max(longest, costs[i]);
    }
    EXPECT_GE(schedule.cycles(), std::max(longest, (sum + lines - 1) / lines));
    EXPECT_LE(schedule.cycles() * lines, sum + (lines - 1) * longest);
  }
}

TEST(LineSchedule, NeedsALineForItems) {
  EXPECT_THROW((void)schedule_longest_first({1}, 0), std::invalid_argument);
  EXPECT_EQ(schedule_longest_first({}, 0).cycles(), 0U);
}

TEST(AttentionCycles, SddmmOfASplitHead) {
  // 5 dense and 3 sparse cells: 3 and 1 lines. 4 features on 2 MACs: 2 cycles for a score.
  const PhaseCycles phase = sddmm_cycles(split(small_mask(), {0}), 4, small_array());
  EXPECT_EQ(phase.split.dense, 3U);
  EXPECT_EQ(phase.split.sparse, 1U);
  EXPECT_EQ(phase.dense, 4U);
  EXPECT_EQ(phase.sparse, 6U);
  EXPECT_EQ(phase.total(), 6U);
  EXPECT_EQ(phase.busy, (Counts{4, 4, 2, 6}));
  EXPECT_EQ(phase.idle_cycles(), 8U);
}

TEST(AttentionCycles, SddmmOfTwoGlobalColumnsHoldsOneAfterTheOther) {
  // 10 and 1 cells: 4 lines would round to all; one remains for the sparser engine.
  const PhaseCycles phase = sddmm_cycles(split(small_mask(), {1, 0}), 3, small_array());
  EXPECT_EQ(phase.split.dense, 3U);
  EXPECT_EQ(phase.dense, 8U);
  EXPECT_EQ(phase.busy, (Counts{8, 8, 4, 2}));
}

TEST(AttentionCycles, SddmmWithoutGlobalColumnsWaitsForTheLongestColumn) {
  const PhaseCycles phase = sddmm_cycles(split(small_mask(), {}), 4, small_array());
  EXPECT_EQ(phase.dense, 0U);
  EXPECT_EQ(phase.busy, (Counts{8, 4, 2, 0}));
  EXPECT_EQ(phase.total(), 8U);
}

TEST(AttentionCycles, BroadcastSharesOneColumnAfterTheOther) {
  const auto array = small_array(SparserMapping::kBroadcast);
  HeadMask mask = small_mask();
  mask.keep[2 * 4] = 1;  // key 0 now kept by all five queries: two rounds of four lines
  const PhaseCycles phase = sddmm_cycles(split(mask, {}), 4, array);
  EXPECT_EQ(phase.busy, (Counts{8, 4, 2, 2}));
  EXPECT_EQ(phase.total(), 8U);
}

TEST(AttentionCycles, SpmmOfASplitHead) {
  // 5 features on 2 MACs: 3 groups for each of 5 tokens, 15 in the denser engine; the sparser one
  // has three tokens of a single kept key.
  const PhaseCycles phase = spmm_cycles(split(small_mask(), {0}), 5, small_array());
  EXPECT_EQ(phase.dense, 5U);
  EXPECT_EQ(phase.sparse, 9U);
  EXPECT_EQ(phase.busy, (Counts{5, 5, 5, 9}));
}

TEST(AttentionCycles, SpmmSpreadsTheGroupsOfALongRow) {
  // One query keeps all 6 keys: 4 groups, one for each line.
  const HeadMask mask{2, 6, {1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0}};
  const PhaseCycles phase = spmm_cycles(split(mask, {}), 8, small_array());
  EXPECT_EQ(phase.busy, (Counts{6, 6, 6, 6}));
  EXPECT_EQ(phase.total(), 6U);
  EXPECT_EQ(spmm_group_schedule(split(mask, {}), 8, small_array()).items,
            (std::vector<std::vector<std::uint32_t>>{{0}, {1}, {2}, {3}}));
}

TEST(AttentionCycles, SoftmaxCountsKeptCellsRowByRow) {
  Machine::Attention array = small_array();
  const SparseHead head = split(small_mask(), {0});
  EXPECT_EQ(softmax_cycles(head, array), 4U);  // 2, 2, 0, 1 and 2 kept cells on 2 lanes
  array.softmax_lanes = 1;
  EXPECT_EQ(softmax_cycles(head, array), 7U);
}

TEST(AttentionCycles, AnEmptyHeadCostsNothing) {
  for (const SparserMapping mapping :
       {SparserMapping::kColumnPerLine, SparserMapping::kBroadcast}) {
    for (const HeadMask& mask : {HeadMask{}, HeadMask{3, 2, HeadMask{3, 2, {}}.keep}}) {
      HeadMask empty = mask;
      empty.keep.assign(mask.queries * mask.keys, 0);
      const SparseHead head = split(empty, {});
      EXPECT_EQ(sddmm_cycles(head, 4, small_array(mapping)).total(), 0U);
      EXPECT_EQ(spmm_cycles(head, 4, small_array(mapping)).total(), 0U);
      EXPECT_EQ(softmax_cycles(head, small_array(mapping)), 0U);
    }
  }
}

TEST(AttentionCycles, BusyLineCyclesAreTheWorkAndNoPhaseBeatsAllMacs) {
  std::mt19937 random(2);
  for (int round = 0; round < 400; ++round) {
    const Machine::Attention array = random_array(random);
    const HeadMask mask = random_mask(random, 24);
    const SparseHead head = split(mask, random_keys(random, mask.keys));
    const std::size_t dim = random_size(random, 1, kAnyDim);
    const std::uint64_t passes = (dim + array.macs_per_line - 1) / array.macs_per_line;
    const std::uint64_t cells = head.dense_cells() + head.sparse_kept();
    for (const PhaseCycles& phase :
         {sddmm_cycles(head, dim, array), spmm_cycles(head, dim, array)}) {
      EXPECT_EQ(phase.split.dense + phase.split.sparse, array.lines);
      EXPECT_EQ(phase.busy.size(), array.lines);
      EXPECT_EQ(phase.busy_cycles(), cells * passes);
      EXPECT_EQ(phase.busy_cycles() + phase.idle_cycles(), array.lines * phase.total());
      EXPECT_GE(phase.total() * array.lines * array.macs_per_line, head.kept() * dim);
      for (std::uint32_t line = 0; line < array.lines; ++line) {
        EXPECT_LE(phase.busy[line], line < phase.split.dense ? phase.dense : phase.sparse);
      }
    }
  }
}

TEST(AttentionCycles, SchedulesAreThoseOfThePhases) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    Machine::Attention array = random_array(random);
    array.mapping = SparserMapping::kColumnPerLine;
    const HeadMask mask = random_mask(random, 24);
    const SparseHead head = split(mask, random_keys(random, mask.keys));
    const std::size_t dim = random_size(random, 1, kAnyDim);
    EXPECT_EQ(sddmm_column_schedule(head, dim, array).cycles(),
              sddmm_cycles(head, dim, array).sparse);
    EXPECT_EQ(spmm_group_schedule(head, dim, array).cycles(), spmm_cycles(head, dim, array).sparse);
    EXPECT_EQ(spmm_group_schedule(head, dim, array).busy.size(),
              allocate_lines(head, array).sparse);
  }
}

TEST(GlobalColumns, PicksTheBestCountAndIsNeverSlowerThanNoReordering) {
  std::mt19937 random(4);
  int reordered = 0;
  for (int round = 0; round < 400; ++round) {
    const Machine::Attention array = random_array(random);
    const HeadMask mask = random_mask(random, 20);
    const std::size_t dim = random_size(random, 1, kAnyDim);
    const auto counts = column_kept(mask);
    const GlobalColumns best = best_global_columns(counts, mask.queries, dim, array);
    EXPECT_EQ(sddmm_cycles(split(mask, best.keys), dim, array).total(), best.sddmm_cycles);
    EXPECT_LE(best.sddmm_cycles, sddmm_cycles(split(mask, {}), dim, array).total());
    EXPECT_TRUE(std::is_sorted(best.keys.begin(), best.keys.end()));
    for (std::uint32_t threshold = 0; threshold <= mask.queries; ++threshold) {
      std::vector<std::uint16_t> global;
      for (std::uint16_t key = 0; key < mask.keys; ++key) {
        if (counts[key] > threshold) global.push_back(key);
      }
      const auto cycles = sddmm_cycles(split(mask, global), dim, array).total();
      EXPECT_LE(best.sddmm_cycles, cycles);
      EXPECT_TRUE(best.sddmm_cycles < cycles || best.keys.size() <= global.size());
    }
    reordered += best.keys.empty() ? 0 : 1;
  }
  EXPECT_GT(reordered, 50);
}

TEST(GlobalColumns, TakesTheLowerKeyOfEqualColumnsAndTheFewestOfEqualCounts) {
  // Two full columns of 8 queries on 4 lines: 16 cycles with none or one of them on all lines of
  // its own, 8 dealt out to all.
  const GlobalColumns both = best_global_columns({8, 8}, 8, 4, small_array());
  EXPECT_EQ(both.keys, (std::vector<std::uint16_t>{0, 1}));
  EXPECT_EQ(both.sddmm_cycles, 8U);
  // A column for each line is balanced as it is.
  const GlobalColumns none = best_global_columns({2, 2, 2, 2}, 2, 4, small_array());
  EXPECT_TRUE(none.keys.empty());
  EXPECT_EQ(none.sddmm_cycles, 4U);
  // 24 of 24 and 2 x 1 cells: one of the two equal long columns stays where it is.
  EXPECT_EQ(best_global_columns({1, 24, 1}, 24, 2, small_array()).keys,
            (std::vector<std::uint16_t>{1}));
}

TEST(AttentionCycles, RefusesAnArrayOrSizesThatCannotBe) {
  const SparseHead head = split(small_mask(), {0});
  const auto refused = [&](auto change) {
    Machine::Attention array = engines();
    change(array);
    EXPECT_THROW((void)sddmm_cycles(head, 4, array), std::invalid_argument);
    EXPECT_THROW((void)spmm_cycles(head, 4, array), std::invalid_argument);
    EXPECT_THROW((void)softmax_cycles(head, array), std::invalid_argument);
    EXPECT_THROW((void)allocate_lines(head, array), std::invalid_argument);
    EXPECT_THROW((void)schedule_sddmm(head, 4, array), std::invalid_argument);
    EXPECT_THROW((void)schedule_spmm(head, 4, 4, array), std::invalid_argument);
  };
  refused([](Machine::Attention& array) { array.lines = 0; });
  refused([](Machine::Attention& array) { array.lines = 1; });
  refused([](Machine::Attention& array) { array.macs_per_line = 0; });
  refused([](Machine::Attention& array) { array.softmax_lanes = 0; });
  refused([](Machine::Attention& array) { array.line_rows = 0; });
  refused([](Machine::Attention& array) { array.ports = 0; });
  refused([](Machine::Attention& array) { array.banks = 0; });
  refused([](Machine::Attention& array) { array.banks = 48; });
  EXPECT_THROW((void)sddmm_cycles(head, 0, small_array()), std::invalid_argument);
  EXPECT_THROW((void)spmm_cycles(head, 0, small_array()), std::invalid_argument);
  EXPECT_THROW((void)best_global_columns({1}, 65536, 4, small_array()), std::invalid_argument);
  EXPECT_THROW((void)best_global_columns(std::vector<std::uint32_t>(65536), 1, 4, small_array()),
               std::invalid_argument);
}

}  // namespace
}  // namespace systole::hw

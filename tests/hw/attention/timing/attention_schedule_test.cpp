#include "hw/attention/timing/attention_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "hw/attention/timing/attention_cycles.h"
#include "tests/hw/attention/sparse_heads.h"
#include "tests/hw/attention/timing/attention_reference.h"

namespace systole::hw {
namespace {

Setting random_setting(std::mt19937& random, std::size_t largest) {
  Setting setting{
      random_mask(random, largest), {}, random_size(random, 1, 30), random_size(random, 1, 30), {}};
  std::vector<std::uint16_t> keys(setting.mask.keys);
  std::iota(keys.begin(), keys.end(), std::uint16_t{0});
  std::shuffle(keys.begin(), keys.end(), random);
  const auto middle =
      keys.begin() + static_cast<std::ptrdiff_t>(random_size(random, 0, setting.mask.keys));
  setting.head = split_in_order(setting.mask, {keys.begin(), middle}, {middle, keys.end()});
  setting.attention = engines(
      static_cast<std::uint32_t>(random_size(random, 2, 12)),
      static_cast<std::uint32_t>(random_size(random, 1, 9)),
      random_size(random, 0, 1) == 0 ? SparserMapping::kColumnPerLine : SparserMapping::kBroadcast);
  setting.attention.line_rows = static_cast<std::uint32_t>(random_size(random, 1, 5));
  setting.attention.banks = 1U << random_size(random, 0, 5);
  setting.attention.ports = static_cast<std::uint32_t>(random_size(random, 1, 4));
  return setting;
}

/// Ports that never make a line wait.
Machine::Attention plenty(Machine::Attention attention) {
  attention.ports = 1'000'000;
  return attention;
}

AttentionPhase schedule(const Setting& setting, bool spmm) {
  return spmm ? schedule_spmm(setting.head, setting.dim, setting.value_dim, setting.attention)
              : schedule_sddmm(setting.head, setting.dim, setting.attention);
}

std::vector<Access> accesses_of(const AttentionPhase& phase) {
  std::vector<Access> accesses;
  for (const RowAccess& access : phase.accesses) {
    accesses.emplace_back(access.cycle, access.operand, access.sparse, access.row);
  }
  return accesses;
}

/// Key 0 is kept by queries 0 and 2, key 1 by query 1; a score takes 2 cycles.
Setting small_setting(std::uint32_t line_rows, std::uint32_t banks) {
  const HeadMask mask{3, 2, {1, 0, 0, 1, 1, 0}};
  Setting setting{mask, split(mask, {}), 8, 4, engines(2, 4)};
  setting.attention.line_rows = line_rows;
  setting.attention.banks = banks;
  return setting;
}

TEST(AttentionSchedule, AWindowLastsAsLongAsItsMostWantedBank) {
  const AttentionPhase one = schedule(small_setting(2, 1), false);
  EXPECT_EQ(one.cycles, 6U);  // three Q rows of two words
  EXPECT_EQ(one.busy, (Counts{4, 2}));
  EXPECT_EQ(one.conflict, (Counts{2, 2}));
  EXPECT_EQ(one.idle_cycles(), 2U);
  const AttentionPhase two = schedule(small_setting(2, 2), false);
  EXPECT_EQ(two.cycles, 4U);  // rows 0 and 2 in one bank
  EXPECT_EQ(two.conflict, (Counts{0, 0}));
  EXPECT_EQ(two.idle_cycles(), 2U);
}

TEST(AttentionSchedule, AConflictMovesWhatFollowsButNotALineThatIsDone) {
  const AttentionPhase phase = schedule(small_setting(1, 1), false);
  EXPECT_EQ(phase.cycles, 6U);
  EXPECT_EQ(phase.conflict, (Counts{2, 2}));
  constexpr auto kQuery = AttentionOperand::kQuery;
  constexpr auto kKey = AttentionOperand::kKey;
  EXPECT_EQ(accesses_of(phase), (std::vector<Access>{{0, kKey, true, 0},
                                                     {0, kQuery, true, 0},
                                                     {0, kKey, true, 1},
                                                     {0, kQuery, true, 1},
                                                     {4, kQuery, true, 2}}));
  EXPECT_TRUE(phase.codes.empty());
}

TEST(AttentionSchedule, SpmmReadsAValueOnceForAllLinesOfAWindow) {
  // Two cycles of work, V words 0 and 1, three codes.
  const AttentionPhase phase = schedule(small_setting(1, 1), true);
  EXPECT_EQ(phase.cycles, 3U);
  EXPECT_EQ(phase.busy, (Counts{2, 1}));
  EXPECT_EQ(phase.conflict, (Counts{1, 1}));
  EXPECT_EQ(phase.idle_cycles(), 1U);
  EXPECT_EQ(accesses_of(phase), (std::vector<Access>{{0, AttentionOperand::kValue, true, 0},
                                                     {0, AttentionOperand::kValue, true, 1}}));
  ASSERT_EQ(phase.codes.size(), 3U);
}

TEST(AttentionSchedule, BothEnginesShareTheReadOfARow) {
  // One query, one global and one other key: the engines want Q row 0 in the same window.
  const HeadMask mask{1, 2, {1, 1}};
  Setting setting{mask, split(mask, {0}), 4, 4, engines(2, 4)};
  setting.attention.banks = 2;
  const AttentionPhase phase = schedule(setting, false);
  EXPECT_EQ(phase.cycles, 1U);  // one word of Q for both, a word of K and a score in each bank
  EXPECT_EQ(phase.accesses.size(), 4U);
  setting.attention.banks = 1;
  EXPECT_EQ(schedule(setting, false).cycles, 2U);  // two words of K, two scores
}

TEST(AttentionSchedule, TheDenserEngineTakesABlockOfQueriesThroughAllColumns) {
  // Two global columns and two lines: queries 0 and 1 meet keys 1 and 0, then query 2 does.
  const HeadMask mask{3, 2, {1, 1, 1, 1, 1, 1}};
  Setting setting{mask, split(mask, {1, 0}), 4, 4, engines(2, 4)};
  setting.attention.line_rows = 1;
  setting.attention.banks = 4;
  const AttentionPhase phase = schedule(setting, false);
  EXPECT_EQ(phase.cycles, 4U);
  EXPECT_EQ(phase.busy, (Counts{4, 2}));
  constexpr auto kQuery = AttentionOperand::kQuery;
  constexpr auto kKey = AttentionOperand::kKey;
  EXPECT_EQ(accesses_of(phase), (std::vector<Access>{{0, kKey, false, 1},
                                                     {0, kQuery, false, 0},
                                                     {0, kQuery, false, 1},
                                                     {1, kKey, false, 0},
                                                     {1, kQuery, false, 0},
                                                     {1, kQuery, false, 1},
                                                     {2, kKey, false, 1},
                                                     {2, kQuery, false, 2},
                                                     {3, kKey, false, 0},
                                                     {3, kQuery, false, 2}}));
}

TEST(AttentionSchedule, ScoresOfOneDiagonalShareABank) {
  // Cells (0, 1) and (1, 0) on a line each: keys and queries are in different banks, the scores in
  // bank 1 both.
  const HeadMask mask{2, 2, {0, 1, 1, 0}};
  Setting setting{mask, split(mask, {}), 4, 4, engines(2, 4)};
  setting.attention.banks = 2;
  EXPECT_EQ(schedule(setting, false).cycles, 2U);
  setting.attention.ports = 2;
  EXPECT_EQ(schedule(setting, false).cycles, 1U);
}

TEST(AttentionSchedule, CodesAreNeededOnceFromTheFirstWindowOfTheirQuery) {
  // A global key and 2 lines: queries 0 and 1 in the first cycle, 2 and 3 in the second. Query 2
  // keeps no key.
  const HeadMask mask{4, 2, {1, 0, 1, 0, 0, 0, 1, 0}};
  Setting setting{mask, split(mask, {0}), 4, 4, engines(2, 4)};
  setting.attention.line_rows = 1;
  const AttentionPhase phase = schedule(setting, true);
  EXPECT_EQ(phase.cycles, 2U);
  std::vector<std::pair<std::uint16_t, std::uint64_t>> codes;
  for (const CodesNeed& need : phase.codes) codes.emplace_back(need.query, need.cycle);
  EXPECT_EQ(codes, (std::vector<std::pair<std::uint16_t, std::uint64_t>>{{0, 0}, {1, 0}, {3, 1}}));
}

TEST(AttentionSchedule, AnEmptyHeadTakesNoTime) {
  for (const HeadMask& mask : {HeadMask{}, HeadMask{2, 3, std::vector<std::uint8_t>(6, 0)}}) {
    Setting setting{mask, split(mask, {}), 4, 4, engines()};
    for (const bool spmm : {false, true}) {
      const AttentionPhase phase = schedule(setting, spmm);
      EXPECT_EQ(phase.cycles, 0U);
      EXPECT_EQ(phase.idle_cycles(), 0U);
      EXPECT_TRUE(phase.accesses.empty());
      EXPECT_TRUE(phase.codes.empty());
    }
  }
}

TEST(AttentionSchedule, EqualsTheRulesAppliedWindowByWindow) {
  std::mt19937 random(1);
  int conflicts = 0;
  for (int round = 0; round < 500; ++round) {
    const Setting setting = random_setting(random, 20);
    for (const bool spmm : {false, true}) {
      const AttentionPhase phase = schedule(setting, spmm);
      const Reference expected(setting, spmm);
      ASSERT_EQ(phase.cycles, expected.cycles) << round;
      ASSERT_EQ(phase.busy, expected.busy) << round;
      ASSERT_EQ(phase.conflict, expected.conflict) << round;
      ASSERT_EQ(phase.operand_words, expected.operand_words) << round;
      ASSERT_EQ(phase.score_words, expected.score_words) << round;
      const std::vector<Access> accesses = accesses_of(phase);
      ASSERT_EQ(accesses.size(), expected.accesses.size()) << round;
      for (const RowAccess& access : phase.accesses) {
        ASSERT_EQ(access.end, expected.windows.at(access.cycle)) << round;
      }
      ASSERT_EQ(std::set<Access>(accesses.begin(), accesses.end()), expected.accesses) << round;
      std::map<std::size_t, std::uint64_t> codes;
      for (const CodesNeed& need : phase.codes) codes.emplace(need.query, need.cycle);
      ASSERT_EQ(codes, expected.codes) << round;
      ASSERT_EQ(codes.size(), phase.codes.size());
      const auto by_cycle = [](const auto& a, const auto& b) { return a.cycle < b.cycle; };
      EXPECT_TRUE(std::is_sorted(phase.accesses.begin(), phase.accesses.end(), by_cycle));
      EXPECT_TRUE(std::is_sorted(phase.codes.begin(), phase.codes.end(), by_cycle));
      for (std::size_t l = 0; l < phase.busy.size(); ++l) {
        EXPECT_LE(phase.busy[l] + phase.conflict[l], phase.cycles);
      }
      conflicts += phase.conflict == Counts(phase.conflict.size(), 0) ? 0 : 1;
    }
  }
  EXPECT_GT(conflicts, 100);
}

TEST(AttentionSchedule, TakesTheCyclesOfTheContractWithPlentyOfPorts) {
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    Setting setting = random_setting(random, 30);
    setting.attention = plenty(setting.attention);
    for (const bool spmm : {false, true}) {
      const AttentionPhase phase = schedule(setting, spmm);
      const PhaseCycles contract =
          spmm ? spmm_cycles(setting.head, setting.value_dim, setting.attention)
               : sddmm_cycles(setting.head, setting.dim, setting.attention);
      EXPECT_EQ(phase.cycles, contract.total());
      EXPECT_EQ(phase.busy, contract.busy);
      EXPECT_EQ(phase.conflict, Counts(setting.attention.lines, 0));
      EXPECT_EQ(phase.idle_cycles(), contract.idle_cycles());
      EXPECT_EQ(phase.split.dense, contract.split.dense);
    }
  }
}

TEST(AttentionSchedule, EveryKeptCellsRowsAreAccessedBeforeTheyAreUsed) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Setting setting = random_setting(random, 20);
    setting.attention = plenty(setting.attention);  // a step's cycle is then known
    for (const bool spmm : {false, true}) {
      std::map<std::tuple<AttentionOperand, bool, std::size_t>, std::uint64_t> first;
      for (const RowAccess& access : schedule(setting, spmm).accesses) {
        first.emplace(std::tuple{access.operand, access.sparse, access.row}, access.cycle);
      }
      std::set<std::pair<std::size_t, std::size_t>> cells;
      const std::uint64_t step_cycles = spmm ? 1 : setting.passes(setting.dim);
      for (const auto& line : spmm ? spmm_lines(setting) : sddmm_lines(setting)) {
        for (const Work& work : line) {
          cells.emplace(work.query, work.key);
          const auto accessed = [&](AttentionOperand operand, std::size_t row) {
            const auto found = first.find({operand, work.sparse, row});
            return found != first.end() && found->second <= work.step * step_cycles;
          };
          EXPECT_TRUE(spmm ? accessed(AttentionOperand::kValue, work.key)
                           : accessed(AttentionOperand::kQuery, work.query) &&
                                 accessed(AttentionOperand::kKey, work.key));
        }
      }
      for (std::size_t q = 0; q < setting.mask.queries; ++q) {
        for (std::size_t k = 0; k < setting.mask.keys; ++k) {
          EXPECT_TRUE(!setting.mask.kept(q, k) || cells.count({q, k}) == 1);
        }
      }
    }
  }
}

TEST(AttentionSchedule, FewerBanksOrPortsNeverMakeAPhaseShorter) {
  std::mt19937 random(4);
  int longer = 0;
  for (int round = 0; round < 600; ++round) {
    Setting setting = random_setting(random, 30);
    for (const bool spmm : {false, true}) {
      setting.attention.ports = 1;
      std::uint64_t fewer_banks = ~std::uint64_t{0};
      for (setting.attention.banks = 1; setting.attention.banks <= 64;
           setting.attention.banks *= 2) {
        const std::uint64_t cycles = schedule(setting, spmm).cycles;
        EXPECT_LE(cycles, fewer_banks);
        longer += cycles < fewer_banks ? 1 : 0;
        fewer_banks = cycles;
      }
      setting.attention.banks = 1U << random_size(random, 0, 4);
      std::uint64_t fewer_ports = ~std::uint64_t{0};
      for (const std::uint32_t ports : {1U, 2U, 3U, 4U, 8U}) {
        setting.attention.ports = ports;
        const std::uint64_t cycles = schedule(setting, spmm).cycles;
        EXPECT_LE(cycles, fewer_ports);
        fewer_ports = cycles;
      }
    }
  }
  EXPECT_GT(longer, 2000);
}

}  // namespace
}  // namespace systole::hw

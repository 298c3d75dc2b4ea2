/// How a flip meets the uses of a byte, from uses written down by hand.

#include "testbench/inject/use_log.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>

namespace systole::testbench {
namespace {

using Fate = FlipPlan::Fate;
using tlm_model::StoredUse;

constexpr hw::Space kSpace = hw::Space::kAccumulator;

/// Rows of 8 bytes, 16 apart from address 64 on; row r is used in cycle `cycle` + r.
StoredUse tile_use(bool write, std::uint64_t step, std::int64_t cycle) {
  StoredUse use;
  use.space = kSpace;
  use.write = write;
  use.first_step = use.last_step = step;
  use.address = 64;
  use.pitch = 16;
  use.rows = 4;
  use.bytes = 8;
  use.cycle = cycle;
  use.per_row = 1;
  return use;
}

/// Byte 3 of row 2.
constexpr std::uint64_t kByte = 64 + 2 * 16 + 3;

void take_steps(UseLog& log, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) EXPECT_EQ(log.step(), i);
  EXPECT_EQ(log.last_step(), count - 1);
}

TEST(UseLog, FlipsBeforeTheFirstReadAtOrAfterTheCycleAndNotWhatIsReplaced) {
  UseLog log;
  take_steps(log, 10);
  log.use(tile_use(true, 2, 100));   // the byte: cycle 102
  log.use(tile_use(false, 5, 200));  // 202
  log.use(tile_use(true, 7, 300));   // 302
  EXPECT_EQ(log.resolve(kSpace, kByte, 102).fate, Fate::kOverwritten);
  for (const std::uint64_t cycle : {103U, 150U, 202U}) {
    const FlipPlan plan = log.resolve(kSpace, kByte, cycle);
    EXPECT_EQ(plan.fate, Fate::kRead) << cycle;
    ASSERT_EQ(plan.toggles, 1) << cycle;
    EXPECT_EQ(plan.toggle[0].step, 5U);
    EXPECT_EQ(plan.toggle[0].split.tiles, hw::ArrayTiles::kNone);
    EXPECT_EQ(plan.earliest, 3U);
  }
  EXPECT_EQ(log.resolve(kSpace, kByte, 203).fate, Fate::kOverwritten);
  EXPECT_EQ(log.resolve(kSpace, kByte, 203).earliest, 6U);
  EXPECT_EQ(log.resolve(kSpace, kByte, 302).fate, Fate::kOverwritten);
  EXPECT_EQ(log.resolve(kSpace, kByte, 303).fate, Fate::kUnused);
}

TEST(UseLog, KnowsWhichBytesATileCovers) {
  UseLog log;
  take_steps(log, 1);
  log.use(tile_use(false, 0, 10));
  for (std::uint64_t address = 0; address < 160; ++address) {
    const bool covered = address >= 64 && address < 64 + 4 * 16 && address % 16 < 8;
    EXPECT_EQ(log.resolve(kSpace, address, 0).fate == Fate::kRead, covered) << address;
  }
  EXPECT_EQ(log.resolve(hw::Space::kScratchpad, kByte, 0).fate, Fate::kUnused);
}

TEST(UseLog, SplitsAProductAtTheTileThatSeesTheFlipFirst) {
  UseLog log;
  take_steps(log, 3);
  StoredUse sums = tile_use(true, 1, 100);  // written in 102, added to in 122 and 142
  sums.tiles = hw::ArrayTiles::kDepth;
  sums.repeats = 3;
  sums.repeat_cycles = 20;
  log.use(sums);
  log.use(tile_use(false, 2, 200));
  const auto tile_at = [&](std::uint64_t cycle) {
    const FlipPlan plan = log.resolve(kSpace, kByte, cycle);
    EXPECT_EQ(plan.fate, Fate::kRead) << cycle;
    EXPECT_EQ(plan.toggles, 1) << cycle;
    EXPECT_EQ(plan.toggle[0].split.tiles, hw::ArrayTiles::kDepth) << cycle;
    return plan.toggle[0].split.tile;
  };
  EXPECT_EQ(log.resolve(kSpace, kByte, 102).fate, Fate::kOverwritten);
  EXPECT_EQ(tile_at(103), 1U);
  EXPECT_EQ(tile_at(122), 1U);
  EXPECT_EQ(tile_at(123), 2U);
  EXPECT_EQ(tile_at(142), 2U);
  EXPECT_EQ(log.resolve(kSpace, kByte, 143).toggle[0].step, 2U);
}

TEST(UseLog, HidesAFlipFromAReadThatIsLaterInStepsAndEarlierInTime) {
  UseLog log;
  take_steps(log, 6);
  log.use(tile_use(false, 1, 100));
  log.use(tile_use(false, 3, 50));
  log.use(tile_use(false, 5, 200));
  const FlipPlan plan = log.resolve(kSpace, kByte, 80);
  ASSERT_EQ(plan.toggles, 3);
  EXPECT_EQ(plan.toggle[0].step, 1U);
  EXPECT_EQ(plan.toggle[1].step, 3U);
  EXPECT_EQ(plan.toggle[2].step, 5U);
}

/// A read of eight bytes of a word, and writes of it in part and as a whole.
TEST(UseLog, AsksTheCodeOfTheWordAtItsFirstRead) {
  UseLog log;
  take_steps(log, 10);
  const auto add = [&](bool write, std::uint64_t address, std::uint64_t bytes, std::int64_t cycle) {
    StoredUse use;
    use.space = hw::Space::kScratchpad;
    use.write = write;
    use.address = address;
    use.pitch = use.bytes = bytes;
    use.cycle = cycle;
    log.use(use);
  };
  constexpr std::uint64_t kWord = 4096;
  add(true, kWord, 8, 100);
  add(false, kWord + 5, 1, 200);  // another byte of the word
  add(true, kWord, 4, 300);       // a part of it
  add(true, kWord, 8, 400);
  const hw::WordCode parity{hw::Protection::kParity, 1, 1}, secded{hw::Protection::kSecded, 8, 8};
  const auto fate = [&](std::uint64_t cycle, const hw::WordCode& code, std::uint32_t flips) {
    return log.resolve(hw::Space::kScratchpad, kWord + 2, cycle, code, flips).fate;
  };
  EXPECT_EQ(fate(50, secded, 1), Fate::kOverwritten);
  EXPECT_EQ(fate(150, secded, 1), Fate::kCorrected);
  EXPECT_EQ(fate(150, secded, 2), Fate::kDetected);
  EXPECT_EQ(fate(250, secded, 1), Fate::kCorrected);  // the part reads the rest
  EXPECT_EQ(fate(350, secded, 2), Fate::kOverwritten);
  EXPECT_EQ(fate(450, secded, 2), Fate::kUnused);
  // A parity bit belongs to a byte, and does not see two flips.
  EXPECT_EQ(fate(150, parity, 1), Fate::kOverwritten);
  EXPECT_EQ(log.resolve(hw::Space::kScratchpad, kWord + 5, 150, parity, 1).fate, Fate::kDetected);
  EXPECT_EQ(log.resolve(hw::Space::kScratchpad, kWord + 5, 150, parity, 2).fate, Fate::kRead);
}

}  // namespace
}  // namespace systole::testbench

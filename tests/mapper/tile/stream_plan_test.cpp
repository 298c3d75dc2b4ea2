#include "mapper/tile/stream_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/random/random_machine.h"

namespace systole::mapper {
namespace {

TEST(TileRing, TheLeastRecentlyUsedTileIsOverwrittenFirst) {
  TileRing ring({100, 200}, 50, {});
  EXPECT_TRUE(ring.take({0, 0}).is_new);
  EXPECT_EQ(ring.take({0, 1}).address, 200U);
  EXPECT_FALSE(ring.take({0, 0}).is_new) << "still there";
  EXPECT_EQ(ring.take({0, 2}).address, 200U) << "the first was used after the second";
  EXPECT_FALSE(ring.take({0, 0}).is_new);
  const TileRing::Place again = ring.take({0, 1});
  EXPECT_TRUE(again.is_new) << "overwritten";
  EXPECT_EQ(again.address, 200U);
}

// Back and forth through more tiles than slots, each sweep finds as many as there are slots.
TEST(TileRing, EverySweepFindsWhatTheLastOneEndedWith) {
  for (std::uint32_t slots = 1; slots < 7; ++slots) {
    std::vector<std::uint64_t> addresses(slots);
    for (std::uint32_t i = 0; i < slots; ++i) addresses[i] = 50 * i;
    TileRing ring(addresses, 50, {});
    for (std::uint32_t sweep = 0; sweep < 5; ++sweep) {
      std::uint32_t loaded = 0;
      for (std::uint32_t i = 0; i < 7; ++i) {
        loaded += ring.take({sweep % 2 == 0 ? i : 6 - i, 0}).is_new ? 1 : 0;
      }
      EXPECT_EQ(loaded, sweep == 0 ? 7 : 7 - slots) << slots << " slots, sweep " << sweep;
    }
  }
}

TEST(TileRing, BeginsOffWhatIsInUse) {
  EXPECT_EQ(TileRing({0, 50, 100}, 50, {{40, 60}}).take({0, 0}).address, 100U);
  EXPECT_EQ(TileRing({0, 50}, 50, {{0, 100}}).take({0, 0}).address, 0U) << "no slot is free of it";
}

TEST(StreamPlan, TwoSlotsOrAsManyAsThereAreTiles) {
  const hw::Machine machine;  // 16 x 16
  TilingProblem problem;
  problem.m = 100;
  problem.n = 64;
  problem.k = 48;
  problem.parameter_words = 2;
  Tiling t;
  t.m = 50;
  t.n = t.c_cols = 32;
  t.k = 48;
  StreamPlan plan = stream_plan(machine, problem, t);
  EXPECT_EQ(plan.a.count, 2U);
  EXPECT_EQ(plan.a.bytes, 50U * 48);
  EXPECT_EQ(plan.b.bytes, 48U * 32);
  EXPECT_EQ(plan.parameters.bytes, 2U * 4 * 32);
  EXPECT_EQ(plan.pre.count, 0U);
  t.k = 16;
  t.a_stays = true;
  plan = stream_plan(machine, problem, t);
  EXPECT_EQ(plan.a.count, 2U * 3) << "rows times depth";
  EXPECT_EQ(plan.b.count, 2U);
  t.a_stays = false;
  t.double_buffered = false;
  EXPECT_EQ(stream_plan(machine, problem, t).a.count, 1U);
  problem.b_on_chip = true;
  EXPECT_EQ(stream_plan(machine, problem, t).b.count, 0U);
}

/// All places of a ring, by taking more tiles than it has slots.
std::vector<Span> spans_of(TileRing ring, std::uint64_t bytes) {
  std::vector<Span> spans;
  for (std::uint32_t i = 0; i < ring.size(); ++i) {
    const std::uint64_t at = ring.take({0, i}).address;
    spans.push_back({at, at + bytes});
  }
  return spans;
}

TEST(StreamPlan, SlotsAreApartAndInsideOnEveryMachine) {
  test::Random random(3);
  int placed = 0;
  for (int i = 0; i < 2000; ++i) {
    hw::Machine machine = test::random_machine(random);
    const std::uint64_t aligned =
        std::max({machine.array.rows, machine.array.cols, std::uint32_t{4}});
    const std::uint64_t end = std::uint64_t{machine.scratchpad.kib} * 1024;
    const std::uint64_t begin = test::between(random, 0, 20) * aligned;
    StreamPlan plan;
    for (Slots* slots : {&plan.a, &plan.b, &plan.parameters, &plan.pre}) {
      *slots = {test::between(random, 0, 3), test::between(random, 1, 60) * aligned};
    }
    if (begin + plan.bytes() > end / aligned * aligned) continue;
    ++placed;
    const StreamRings rings = place_slots(plan, machine, {begin, end}, false, i % 2 == 0, {});
    std::vector<Span> all;
    for (const auto& [ring, slots] : {std::pair{&rings.a, &plan.a},
                                      {&rings.b, &plan.b},
                                      {&rings.parameters, &plan.parameters},
                                      {&rings.pre, &plan.pre}}) {
      EXPECT_EQ(ring->size(), slots->count);
      for (const Span& span : spans_of(*ring, slots->bytes)) all.push_back(span);
    }
    std::sort(all.begin(), all.end(),
              [](const Span& x, const Span& y) { return x.begin < y.begin; });
    for (std::size_t j = 0; j < all.size(); ++j) {
      EXPECT_EQ(all[j].begin % aligned, 0U);
      EXPECT_GE(all[j].begin, j == 0 ? begin : all[j - 1].end);
      EXPECT_LE(all[j].end, end);
    }
  }
  EXPECT_GT(placed, 500);
}

TEST(StreamPlan, TilesHaveBanksOfTheirOwnWhereThereIsRoom) {
  hw::Machine machine;
  machine.scratchpad = {64, 4, 1};
  StreamPlan plan;
  plan.a = {2, 10'000};
  plan.b = {2, 12'000};
  const StreamRings rings = place_slots(plan, machine, {0, 64 * 1024}, false, false, {});
  std::vector<std::uint64_t> banks;
  for (const TileRing* ring : {&rings.a, &rings.b}) {
    const std::uint64_t bytes = ring == &rings.a ? plan.a.bytes : plan.b.bytes;
    for (const Span& span : spans_of(*ring, bytes)) {
      EXPECT_EQ(span.begin / 16384, (span.end - 1) / 16384);
      banks.push_back(span.begin / 16384);
    }
  }
  std::sort(banks.begin(), banks.end());
  EXPECT_EQ(banks, (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace systole::mapper

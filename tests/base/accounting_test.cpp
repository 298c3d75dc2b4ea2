#include "base/accounting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "base/calendar.h"

namespace systole::hw {
namespace {

BlockAccount two_causes() {
  return {"cycles", {{"operands", "waiting for operands"}, {"bank", "bank conflict"}}};
}

/// Work that arrived at `arrival`, held up by `cause` until `start`.
void serve(BlockAccount& account, std::uint64_t arrival, std::uint64_t start, std::uint64_t end,
           std::size_t cause) {
  account.idle_until(arrival);
  account.stall_until(start, cause);
  account.busy_until(end);
}

TEST(BlockAccount, SplitsTimeIntoBusyStalledAndIdle) {
  BlockAccount account = two_causes();
  serve(account, 10, 15, 20, 0);  // idle to 10, stalled to 15
  serve(account, 12, 22, 30, 1);  // arrived early: stalled from 20 to 22
  serve(account, 40, 40, 41, 1);  // idle from 30
  account.finish(50);
  EXPECT_EQ(account.time().busy, 5U + 8U + 1U);
  EXPECT_EQ(account.time().stalled[0].time, 5U);
  EXPECT_EQ(account.time().stalled[1].time, 2U);
  EXPECT_EQ(account.time().idle, 10U + 10U + 9U);
  EXPECT_EQ(account.now(), 50U);
}

TEST(BlockAccount, SplitsOneGapAmongSeveralCauses) {
  BlockAccount account = two_causes();
  account.idle_until(10);
  account.stall_until(13, 0);
  account.stall_until(12, 1);  // already accounted
  account.stall_until(20, 1);
  account.busy_until(21);
  EXPECT_EQ(account.time().stalled[0].time, 3U);
  EXPECT_EQ(account.time().stalled[1].time, 7U);
}

TEST(BlockAccount, RefusesAnEndBeforeItsLastWork) {
  BlockAccount account = two_causes();
  account.busy_until(10);
  EXPECT_THROW(account.finish(9), std::logic_error);
  EXPECT_NO_THROW(account.finish(10));
  EXPECT_NO_THROW(account.finish(11));
}

TEST(BlockAccount, SumsToTheTotalForRandomWork) {
  std::mt19937_64 random(1);
  BlockAccount account = two_causes();
  std::uint64_t busy = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t arrival =
        account.now() + random() % 20 - std::min<std::uint64_t>(account.now(), 10);
    const std::uint64_t start = std::max(arrival, account.now()) + random() % 5;
    const std::uint64_t length = random() % 7;
    serve(account, arrival, start, start + length, random() % 2);
    busy += length;
  }
  const std::uint64_t total = account.now() + 3;
  account.finish(total);
  EXPECT_EQ(account.time().busy, busy);
  EXPECT_EQ(account.time().busy + account.time().stalled[0].time + account.time().stalled[1].time +
                account.time().idle,
            total);
}

TEST(BlockAccount, LeavesOutTimeThatDoesNotCount) {
  BlockAccount account = two_causes();
  account.set_counting(false, 0);
  serve(account, 5, 7, 9, 0);
  account.set_counting(true, 20);   // nothing so far
  serve(account, 22, 25, 30, 1);    // idle to 22, stalled to 25
  account.set_counting(false, 35);  // idle from 30
  serve(account, 36, 40, 45, 1);
  account.set_counting(true, 50);
  account.busy_until(53);
  account.set_counting(false, 52);  // 53 was busy before that became known
  account.finish(60);
  EXPECT_EQ(account.time().busy, 5U + 3U);
  EXPECT_EQ(account.time().stalled[0].time, 0U);
  EXPECT_EQ(account.time().stalled[1].time, 3U);
  EXPECT_EQ(account.time().idle, 2U + 5U);
  EXPECT_EQ(account.time().total, 15U + 3U);
  EXPECT_EQ(account.now(), 60U);
}

TEST(BlockAccount, ServesInOneStepAsInThree) {
  std::mt19937_64 random(3);
  for (int run = 0; run < 300; ++run) {
    BlockAccount three = two_causes(), one = two_causes();
    for (int i = 0; i < 50; ++i) {
      const auto near = [&] {
        return three.now() + random() % 40 - std::min<std::uint64_t>(three.now(), 20);
      };
      if (random() % 10 == 0) {
        const bool on = random() % 2 == 0;
        const std::uint64_t at = near();
        three.set_counting(on, at);
        one.set_counting(on, at);
      }
      const std::uint64_t arrival = near(), begin = near(), end = near(), cause = random() % 2;
      serve(three, arrival, begin, end, cause);
      one.serve(arrival, begin, end, cause);
      ASSERT_EQ(three.now(), one.now());
      ASSERT_EQ(three.time().total, one.time().total);
      ASSERT_EQ(three.time().idle, one.time().idle);
      ASSERT_EQ(three.time().busy, one.time().busy);
      for (std::size_t of = 0; of < 2; ++of) {
        ASSERT_EQ(three.time().stalled[of].time, one.time().stalled[of].time);
      }
    }
  }
}

TEST(BlockAccount, ReportsItsTimeUntilTheEnd) {
  BlockAccount account = two_causes();
  serve(account, 1, 3, 6, 1);
  const BlockReport report = account.report("x", 10, {{"work", "things", "done", 7}});
  EXPECT_EQ(account.now(), 6U) << "a copy was closed";
  EXPECT_EQ(report.name, "x");
  ASSERT_TRUE(report.time);
  EXPECT_EQ(report.time->unit, "cycles");
  EXPECT_EQ(report.time->busy, 3U);
  ASSERT_EQ(report.time->stalled.size(), 2U);
  EXPECT_EQ(report.time->stalled[0].cause, "operands");
  EXPECT_EQ(report.time->stalled[1].meaning, "bank conflict");
  EXPECT_EQ(report.time->stalled[1].time, 2U);
  EXPECT_EQ(report.time->stalled_total(), 2U);
  EXPECT_EQ(report.time->idle, 5U);
  EXPECT_EQ(report.time->total, 10U);
  ASSERT_EQ(report.counters.size(), 1U);
  EXPECT_EQ(report.counters[0].value, 7U);
}

TEST(BlockReport, AccountsAreOfBlocksAndOfTheirParts) {
  TimeAccount time;
  time.total = 10;
  const BlockReport array{"array", time, {{"work", "things", "done", 7}}, {}};
  const BlockReport dram{
      "dram",
      {},
      {{"reads", "requests", "of all channels", 3}},
      {{"channel0", time, {{"refreshes", "refreshes", "of one", 2}}, {}}, {"nobody", {}, {}, {}}}};
  const std::vector<BlockReport> accounts = accounts_of({array, dram});
  ASSERT_EQ(accounts.size(), 2U);
  EXPECT_EQ(accounts[0].name, "array");
  EXPECT_EQ(accounts[0].counters.at(0).name, "work");
  EXPECT_EQ(accounts[1].name, "dram.channel0");
  EXPECT_EQ(accounts[1].time->total, 10U);
  EXPECT_EQ(accounts[1].counters.at(0).name, "refreshes");
}

TEST(Calendar, GivesTheFirstGapThatIsLongEnough) {
  Calendar c("cycles");
  EXPECT_EQ(c.reserve(10, 5), 10U);
  EXPECT_EQ(c.reserve(20, 5), 20U);
  EXPECT_EQ(c.reserve(8, 3), 15U);   // 8 .. 10 is too short, 15 .. 20 is not
  EXPECT_EQ(c.reserve(0, 10), 0U);   // ends where the next begins
  EXPECT_EQ(c.reserve(16, 3), 25U);  // 18 .. 20 is too short
  EXPECT_EQ(c.reserve(0, 2), 18U);
  EXPECT_EQ(c.reserve(0, 1), 28U);  // all of 0 .. 28 is taken
  c.finish(40);
  EXPECT_EQ(c.account().time().busy, 29U);
  EXPECT_EQ(c.account().time().idle, 11U);
}

TEST(Calendar, AgreesWithATableOfSlots) {
  std::mt19937_64 random(7);
  Calendar c("cycles");
  std::vector<bool> taken(60000, false);
  std::uint64_t busy = 0;
  std::uint64_t now = 0;
  for (int i = 0; i < 10000; ++i) {
    now += random() % 6;
    c.retire(now);
    const std::uint64_t earliest = now + random() % 40;
    const std::uint64_t length = 1 + random() % 4;
    std::uint64_t expected = earliest;
    for (std::uint64_t run = 0; run < length;) {
      run = taken[expected + run] ? (expected += run + 1, 0) : run + 1;
    }
    ASSERT_EQ(c.reserve(earliest, length), expected) << "reservation " << i;
    for (std::uint64_t at = expected; at < expected + length; ++at) taken[at] = true;
    busy += length;
  }
  c.finish(taken.size());
  EXPECT_EQ(c.account().time().busy, busy);
  EXPECT_EQ(c.account().time().busy + c.account().time().idle, taken.size());
}

TEST(Calendar, DividesAReservationWhereTimeBeginsOrEndsToCount) {
  Calendar c("cycles");
  c.set_counting(false, 0);
  c.reserve(8, 4);
  c.set_counting(true, 10);  // 10 .. 12 count
  c.reserve(15, 10);
  c.set_counting(false, 20);  // 12 .. 15 idle, 15 .. 20 count
  EXPECT_EQ(c.reserve(20, 2), 25U) << "what is reserved stays so";
  c.set_counting(true, 40);
  c.finish(43);
  EXPECT_EQ(c.account().time().busy, 2U + 5U);
  EXPECT_EQ(c.account().time().idle, 3U + 3U);
  EXPECT_EQ(c.account().time().total, 10U + 3U);
}

// Like reservations at once are what they are one by one, whatever comes before, between and after.
TEST(Calendar, ReservesManyAsOneByOne) {
  std::mt19937_64 random(3);
  std::size_t at_once = 0;
  for (int run = 0; run < 300; ++run) {
    Calendar many("cycles"), single("cycles");
    std::uint64_t now = 0;
    for (int i = 0; i < 80; ++i) {
      now += random() % 30;
      if (random() % 3 == 0) {
        many.retire(now);
        single.retire(now);
      }
      if (random() % 40 == 0) {
        const bool on = random() % 2 == 0;
        many.set_counting(on, now);
        single.set_counting(on, now);
      }
      const std::uint64_t length = 1 + random() % 5;
      const std::uint64_t earliest =
          (random() % 3 == 0 ? now : std::max(now, single.last_end())) + random() % 20;
      const std::uint64_t count = random() % 3 == 0 ? 1 : 1 + random() % 12;
      const std::uint64_t step = random() % 2 == 0 ? length : random() % 9;
      std::vector<std::uint64_t> expected;
      for (std::uint64_t k = 0; k < count; ++k) {
        expected.push_back(single.reserve(earliest + k * step, length));
      }
      std::vector<std::uint64_t> begins;
      // Some are taken back.
      const std::uint64_t gone = random() % 3;
      const auto range = many.earliest_for(expected.front(), step, length);
      const bool within = range && earliest >= range->first && earliest <= range->second;
      if (const auto first = many.reserve_each(earliest, step, count + gone, length)) {
        if (gone != 0) many.give_back(gone, length);
        ASSERT_TRUE(within) << "run " << run << ", " << i;
        for (std::uint64_t k = 0; k < count; ++k) begins.push_back(*first + k * step);
        if (count > 1) ++at_once;
      } else {
        ASSERT_FALSE(within) << "run " << run << ", " << i;
        for (std::uint64_t k = 0; k < count; ++k) {
          begins.push_back(many.reserve(earliest + k * step, length));
        }
      }
      ASSERT_EQ(begins, expected) << "run " << run << ", " << i;
      ASSERT_EQ(many.last_end(), single.last_end());
    }
    const std::uint64_t end = many.last_end() + 10;
    many.finish(end);
    single.finish(end);
    ASSERT_EQ(many.account().time().busy, single.account().time().busy);
    ASSERT_EQ(many.account().time().idle, single.account().time().idle);
    ASSERT_EQ(many.account().time().total, single.account().time().total);
  }
  EXPECT_GT(at_once, 1'000U);
}

}  // namespace
}  // namespace systole::hw

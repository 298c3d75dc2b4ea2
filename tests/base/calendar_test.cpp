#include "base/calendar.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace systole::hw {
namespace {

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

}  // namespace
}  // namespace systole::hw

#include "mapper/stream_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/random_machine.h"

namespace systole::mapper {
namespace {

TileKey key(std::uint32_t owner) { return {TileKey::Kind::kA, owner, 0, 0, 1, 1, 1}; }

TEST(StreamBuffer, GoesAroundAsARing) {
  StreamBuffer buffer(100, 200, 10, 1);
  EXPECT_EQ(buffer.allocate(key(0), 35, {}, {})->begin, 100U);
  EXPECT_EQ(buffer.allocate(key(1), 35, {}, {})->begin, 140U) << "aligned";
  EXPECT_EQ(buffer.allocate(key(2), 35, {}, {})->begin, 100U) << "20 bytes are left: begins anew";
  EXPECT_FALSE(buffer.find(key(0))) << "overwritten";
  EXPECT_EQ(buffer.find(key(1))->begin, 140U);
  EXPECT_EQ(buffer.find(key(2))->end, 135U);
}

TEST(StreamBuffer, ForgetsEveryTileThatItTouches) {
  StreamBuffer buffer(0, 100, 1, 1);
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(buffer.allocate(key(i), 25, {}, {}));
  EXPECT_EQ(buffer.allocate(key(9), 26, {}, {})->begin, 0U);
  EXPECT_FALSE(buffer.find(key(0)));
  EXPECT_FALSE(buffer.find(key(1))) << "one byte of it is gone";
  EXPECT_TRUE(buffer.find(key(2)));
}

TEST(StreamBuffer, KeepsClearOfPinnedTiles) {
  StreamBuffer buffer(0, 100, 10, 1);
  const Span first = *buffer.allocate(key(0), 30, {}, {});
  const Span second = *buffer.allocate(key(1), 30, {first}, {});
  EXPECT_EQ(second.begin, 30U);
  EXPECT_EQ(buffer.allocate(key(2), 40, {first, second}, {})->begin, 60U);
  EXPECT_EQ(buffer.allocate(key(3), 41, {first, second}, {}), std::nullopt) << "no gap of 41";
  EXPECT_TRUE(buffer.find(key(2))) << "a refusal forgets nothing";
  EXPECT_EQ(buffer.allocate(key(4), 30, {second}, {})->begin, 0U);
  EXPECT_EQ(buffer.allocate(key(5), 101, {}, {}), std::nullopt) << "larger than the ring";
  EXPECT_EQ(buffer.allocate(key(6), 100, {}, {})->begin, 0U) << "as large as the ring";
}

TEST(StreamBuffer, TilesDifferInEveryPartOfTheirKey) {
  StreamBuffer buffer(0, 1000, 1, 1);
  const TileKey whole{TileKey::Kind::kB, 1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(buffer.allocate(whole, 10, {}, {}));
  EXPECT_TRUE(buffer.find(whole));
  for (int part = 0; part < 7; ++part) {
    TileKey other = whole;
    if (part == 0) other.kind = TileKey::Kind::kA;
    std::uint32_t* const fields[] = {&other.owner, &other.row,  &other.col,
                                     &other.rows,  &other.cols, &other.pitch};
    if (part > 0) ++*fields[part - 1];
    EXPECT_FALSE(buffer.find(other)) << part;
  }
}

TEST(StreamBuffer, ClearForgetsAllAndBeginsAtTheFront) {
  StreamBuffer buffer(8, 100, 8, 1);
  ASSERT_TRUE(buffer.allocate(key(0), 10, {}, {}));
  buffer.clear();
  EXPECT_FALSE(buffer.find(key(0)));
  EXPECT_EQ(buffer.allocate(key(1), 10, {}, {})->begin, 8U);
}

TEST(StreamBuffer, HeldTilesNeverOverlapAndAFreePlaceIsAlwaysFound) {
  test::Random random(1);
  for (int run = 0; run < 100; ++run) {
    const std::uint64_t begin = test::between(random, 0, 50);
    const std::uint64_t end = begin + test::between(random, 100, 600);
    const std::uint32_t alignment = test::power_of_two(random, 0, 5);
    StreamBuffer buffer(begin, end, alignment, 1);
    std::vector<std::pair<TileKey, Span>> known;
    std::vector<Span> pinned;
    for (std::uint32_t i = 0; i < 100; ++i) {
      if (pinned.size() > 2 || random() % 4 == 0) pinned.clear();
      const std::uint64_t bytes = test::between(random, 1, 150);
      const auto span = buffer.allocate(key(i), bytes, pinned, {});
      const auto meets = [](const Span& a, const Span& b) {
        return a.begin < b.end && b.begin < a.end;
      };
      if (!span) {
        // Behind each pinned tile, and at the front, there is really no room.
        std::vector<std::uint64_t> starts{begin};
        for (const Span& pin : pinned) {
          starts.push_back((pin.end + alignment - 1) / alignment * alignment);
        }
        for (const std::uint64_t start : starts) {
          const Span place{start, start + bytes};
          ASSERT_TRUE(place.end > end ||
                      std::any_of(pinned.begin(), pinned.end(),
                                  [&](const Span& p) { return meets(p, place); }));
        }
        continue;
      }
      ASSERT_EQ(span->end - span->begin, bytes);
      ASSERT_TRUE(span->begin >= begin && span->end <= end);
      ASSERT_TRUE(span->begin == begin || span->begin % alignment == 0);
      for (const Span& pin : pinned) ASSERT_FALSE(meets(pin, *span));
      for (const auto& [other, place] : known) {
        ASSERT_FALSE(buffer.find(other) && meets(place, *span)) << "a stale tile";
      }
      known.emplace_back(key(i), *span);
      if (random() % 2 == 0) pinned.push_back(*span);
    }
  }
}

TEST(StreamBuffer, KeepsOutOfBusyTilesAndOfTheBanksOfPinnedOnesWhileItCan) {
  StreamBuffer buffer(0, 64, 1, 16);
  const Span a = *buffer.allocate(key(1), 8, {}, {});
  EXPECT_EQ(a.begin, 0U);
  // Bytes 8 .. 16 are free, but in the bank of A.
  EXPECT_EQ(buffer.allocate(key(2), 8, {a}, {})->begin, 16U);
  EXPECT_EQ(buffer.allocate(key(3), 8, {a}, {{20, 40}})->begin, 40U) << "busy";
  // Only that bank has room beside the busy bytes: sharing it beats waiting.
  EXPECT_EQ(buffer.allocate(key(4), 8, {a}, {{16, 64}})->begin, 8U);
  EXPECT_EQ(buffer.allocate(key(5), 50, {a}, {{16, 64}})->begin, 8U) << "waiting beats failing";
}

}  // namespace
}  // namespace systole::mapper

#include "mapper/place/live_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/random/random_machine.h"

namespace systole::mapper {
namespace {

TEST(LiveAllocator, BlocksThatLiveAtOnceStandSideBySide) {
  LiveAllocator allocator(100, 1000, 8);
  EXPECT_EQ(allocator.allocate(10, 0, 5), 104U) << "aligned, though the range is not";
  EXPECT_EQ(allocator.allocate(10, 5, 6), 120U) << "both live in step 5";
  EXPECT_EQ(allocator.allocate(1, 3, 3), 120U) << "beside the first, over the second";
  EXPECT_EQ(allocator.high_water(), 130U);
}

TEST(LiveAllocator, KeepsRoomBetweenBothEnds) {
  LiveAllocator allocator(0, 100, 1, 30);
  EXPECT_EQ(allocator.allocate_high(20, 0, 4), 80U);
  EXPECT_EQ(allocator.allocate(51, 4, 5), std::nullopt) << "30 stay free in step 4";
  EXPECT_EQ(allocator.allocate(50, 4, 5), 0U);
  EXPECT_EQ(allocator.allocate_high(21, 5, 6), std::nullopt);
  EXPECT_EQ(allocator.allocate_high(20, 5, 6), 80U);
  EXPECT_EQ(allocator.allocate(70, 7, 9), 0U) << "nothing at the end";
  EXPECT_EQ(allocator.allocate(71, 10, 10), std::nullopt);
  EXPECT_EQ(allocator.allocate_high(70, 11, 11), 30U);
  EXPECT_EQ(allocator.top_at(4), 100U);
  EXPECT_EQ(allocator.top_at(8), 70U);
  EXPECT_EQ(allocator.end_at(4), 50U);
  EXPECT_EQ(allocator.begin_at(4), 80U);
  EXPECT_EQ(allocator.end_at(3), 0U);
  EXPECT_EQ(allocator.begin_at(8), 100U);
}

TEST(LiveAllocator, BlocksOfDifferentTimesShareAddresses) {
  LiveAllocator allocator(0, 64, 1);
  EXPECT_EQ(allocator.allocate(64, 0, 1), 0U);
  EXPECT_EQ(allocator.allocate(64, 2, 2), 0U);
  EXPECT_EQ(allocator.high_water(), 64U);
}

TEST(LiveAllocator, TakesTheLowestGapThatIsLargeEnough) {
  LiveAllocator allocator(0, 100, 1);
  ASSERT_EQ(allocator.allocate(10, 0, 0), 0U);
  ASSERT_EQ(allocator.allocate(20, 0, 9), 10U);
  ASSERT_EQ(allocator.allocate(30, 0, 0), 30U);
  ASSERT_EQ(allocator.allocate(20, 0, 9), 60U);
  EXPECT_EQ(allocator.allocate(31, 5, 5), std::nullopt) << "gaps of 10, 30 and 20";
  EXPECT_EQ(allocator.allocate(30, 5, 5), 30U);
  EXPECT_EQ(allocator.allocate(11, 5, 5), 80U);
  EXPECT_EQ(allocator.allocate(10, 5, 5), 0U);
}

TEST(LiveAllocator, FillsItsCapacityToTheLastByte) {
  LiveAllocator allocator(16, 32, 16);
  EXPECT_EQ(allocator.allocate(33, 0, 0), std::nullopt);
  EXPECT_EQ(allocator.allocate(32, 0, 0), 16U);
  EXPECT_EQ(allocator.allocate(1, 0, 0), std::nullopt);
  EXPECT_EQ(allocator.high_water(), 48U) << "a refusal leaves no trace";
}

TEST(LiveAllocator, NeverOverlapsLiveBlocks) {
  struct Block {
    std::uint64_t begin, end;
    std::size_t first, last;
  };
  test::Random random(1);
  for (int run = 0; run < 200; ++run) {
    const std::uint64_t begin = test::between(random, 0, 100);
    const std::uint64_t capacity = test::between(random, 1, 4000);
    const std::uint64_t alignment = test::power_of_two(random, 0, 6);
    LiveAllocator allocator(begin, capacity, alignment);
    std::vector<Block> blocks;
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t bytes = test::between(random, 1, 300);
      const std::size_t first = test::between(random, 0, 30);
      const std::size_t last = first + test::between(random, 0, 10);
      const auto at = allocator.allocate(bytes, first, last);
      const auto is_free = [&](std::uint64_t from) {
        return from + bytes <= begin + capacity &&
               std::none_of(blocks.begin(), blocks.end(), [&](const Block& block) {
                 return block.first <= last && first <= block.last && block.begin < from + bytes &&
                        from < block.end;
               });
      };
      // The first free place of all, or none anywhere.
      std::uint64_t lowest = (begin + alignment - 1) / alignment * alignment;
      while (lowest + bytes <= begin + capacity && !is_free(lowest)) lowest += alignment;
      if (!is_free(lowest)) {
        ASSERT_EQ(at, std::nullopt);
        continue;
      }
      ASSERT_EQ(at, lowest);
      blocks.push_back({*at, *at + bytes, first, last});
    }
    std::uint64_t high_water = begin;
    for (const Block& block : blocks) high_water = std::max(high_water, block.end);
    EXPECT_EQ(allocator.high_water(), high_water);
  }
}

TEST(LiveAllocator, ABlockMayHaveAnAlignmentOfItsOwn) {
  LiveAllocator allocator(0, 100, 4);
  EXPECT_EQ(allocator.allocate(10, 0, 1, 32), 0U);
  EXPECT_EQ(allocator.allocate(10, 0, 1, 32), 32U);
  EXPECT_EQ(allocator.allocate(10, 0, 1), 12U);
  EXPECT_EQ(allocator.allocate(40, 0, 1, 32), std::nullopt) << "64 is too late";
  EXPECT_EQ(allocator.allocate(40, 0, 1), 44U);
}

TEST(LiveAllocator, ABlockMayTakeTheHighestFreeAddress) {
  LiveAllocator allocator(0, 100, 4);
  EXPECT_EQ(allocator.allocate_high(10, 0, 1), 88U);
  EXPECT_EQ(allocator.allocate_high(10, 1, 2), 76U);
  EXPECT_EQ(allocator.allocate_high(10, 2, 2), 88U) << "the first one is gone";
  EXPECT_EQ(allocator.allocate(77, 1, 1), std::nullopt);
  EXPECT_EQ(allocator.allocate(76, 1, 1), 0U);
  EXPECT_EQ(allocator.allocate_high(1, 1, 1), std::nullopt) << "no aligned byte is left";
}

}  // namespace
}  // namespace systole::mapper

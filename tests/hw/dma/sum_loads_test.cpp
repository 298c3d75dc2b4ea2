#include "hw/dma/sum_loads.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace systole::hw {
namespace {

constexpr SumMemories kSums{4, 2, 8};  // rows 0 to 7 and 8 to 15, of four sums

std::vector<std::uint64_t> cycles_of(const SumLoads& loads) {
  std::vector<std::uint64_t> cycles;
  for (const LoadedSums& write : loads.writes()) cycles.push_back(write.cycle);
  return cycles;
}

TEST(SumLoads, WriteABeatInTheCycleAfterItsOwn) {
  const std::vector<SumWrite> none;
  const SumLoads loads(kSums, none, {{100, 28, 31}, {101, 2, 5}, {107, 40, 40}});
  EXPECT_EQ(cycles_of(loads), (std::vector<std::uint64_t>{101, 102, 108}));
  EXPECT_EQ(loads.writes()[1].first, 2U);
  EXPECT_EQ(loads.writes()[1].last, 5U);
  EXPECT_EQ(loads.placed({107, 40, 40}), 109U);
  EXPECT_EQ(loads.placed({107, 40, 40}), 107 + kSumLoadCycles);
}

TEST(SumLoads, WaitForTheArrayInTheirMemoriesAndForEachOther) {
  const std::vector<SumWrite> array = {{101, 0, false}, {102, 0, false}, {104, 4, true}};
  const SumLoads loads(kSums, array, {{100, 24, 27}, {101, 28, 31}});
  EXPECT_EQ(cycles_of(loads), (std::vector<std::uint64_t>{103, 105}))
      << "rows 0 and 6, rows 1 and 7";
  EXPECT_EQ(loads.placed({100, 24, 27}), 104U);
  EXPECT_EQ(loads.placed({101, 28, 31}), 106U);
}

TEST(SumLoads, GoOnBesideTheArrayInOtherMemories) {
  const std::vector<SumWrite> array = {{101, 0, false}, {102, 0, true}, {103, 2, false}};
  const SumLoads loads(kSums, array, {{100, 4, 7}, {101, 40, 43}, {102, 7, 8}});
  EXPECT_EQ(cycles_of(loads), (std::vector<std::uint64_t>{101, 102, 104}))
      << "another row, another bank, and two rows beside a vector of two";
}

// Of a beat that is none of them: only those before it count.
TEST(SumLoads, SayWhenAnotherBeatWouldBeThere) {
  const std::vector<SumWrite> array = {{101, 0, false}, {102, 0, false}};
  const SumLoads loads(kSums, array, {{100, 24, 27}, {105, 4, 7}});
  EXPECT_EQ(loads.placed({99, 4, 7}), 101U);
  EXPECT_EQ(loads.placed({102, 4, 7}), 105U) << "after the beat of cycle 100, written in 103";
  EXPECT_EQ(loads.placed({104, 4, 7}), 106U);
}

}  // namespace
}  // namespace systole::hw

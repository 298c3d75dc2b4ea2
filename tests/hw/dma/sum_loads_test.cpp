#include "hw/dma/sum_loads.h"

#include <gtest/gtest.h>

#include <vector>

namespace systole::hw {
namespace {

// Two rows of six sums, two vectors each, from the second cycle after the last byte on.
TEST(SumLoads, WriteAVectorACycle) {
  SumLoads loads({}, 4);
  EXPECT_EQ(loads.run(100, 2, 6, 28, 12), 106U);
  const std::vector<SumWrite>& writes = loads.writes();
  ASSERT_EQ(writes.size(), 4U);
  const std::uint64_t sums[] = {28, 32, 40, 44};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(writes[i].cycle, 102 + i);
    EXPECT_EQ(writes[i].at, sums[i]);
    EXPECT_FALSE(writes[i].accumulate);
  }
}

TEST(SumLoads, WaitForTheArray) {
  SumLoads loads({{101, 0, false}, {102, 0, false}, {104, 4, true}}, 4);
  EXPECT_EQ(loads.run(100, 1, 8, 0, 8), 106U);
  EXPECT_EQ(loads.writes()[0].cycle, 103U);
  EXPECT_EQ(loads.writes()[1].cycle, 105U);
}

}  // namespace
}  // namespace systole::hw

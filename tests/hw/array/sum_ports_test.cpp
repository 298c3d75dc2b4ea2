#include "hw/array/sum_ports.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace systole::hw {
namespace {

constexpr SumMemories kSize{4, 2, 8};  // rows 0 to 7 and 8 to 15, of four sums

/// Two vectors that are written one after the other, the second one is added to what is there.
std::vector<SumWrite> pair_of(std::uint64_t first, std::uint64_t second) {
  return {{10, first, true}, {11, second, true}};
}

TEST(SumPorts, HaveNoneWhereOneMemoryWritesAndReadsForTheArray) {
  const SumPorts ports(kSize, pair_of(0, 8), {});  // rows 0 and 2
  EXPECT_TRUE(ports.none(11, 16)) << "an even row of that bank";
  EXPECT_TRUE(ports.none(11, 6)) << "rows 1 and 2";
  EXPECT_FALSE(ports.none(11, 4)) << "row 1";
  EXPECT_FALSE(ports.none(11, 32)) << "row 8: another bank";
  EXPECT_TRUE(ports.none(11, 30 + 32)) << "rows 15 and 0";
  EXPECT_FALSE(ports.none(10, 16));
  EXPECT_FALSE(ports.none(12, 16));
}

TEST(SumPorts, HaveOneWhereTheRowsAreInDifferentMemories) {
  const SumPorts ports(kSize, pair_of(0, 4), {});
  for (std::uint64_t at = 0; at < 64; ++at) EXPECT_FALSE(ports.none(11, at));
}

TEST(SumPorts, CountBothRowsOfAVector) {
  const SumPorts ports(kSize, pair_of(29, 32), {});  // rows 7 and 8; row 8
  EXPECT_TRUE(ports.none(11, 32));
  EXPECT_FALSE(ports.none(11, 0));
  EXPECT_FALSE(ports.none(11, 36));
}

TEST(SumPorts, AreFreeWithoutAddition) {
  const SumPorts ports(kSize, {{10, 0, true}, {11, 8, false}, {13, 8, true}}, {});
  EXPECT_FALSE(ports.none(11, 0));
  EXPECT_FALSE(ports.none(13, 0)) << "nothing is written in that cycle";
}

// What was loaded in the cycle before is written, too: row 2, or row 1 and row 2.
TEST(SumPorts, CountWhatLoadsWrite) {
  const std::vector<SumWrite> array = {{11, 0, true}};
  EXPECT_TRUE(SumPorts(kSize, array, {{9, 0, 0}, {10, 8, 9}}).none(11, 0));
  EXPECT_TRUE(SumPorts(kSize, array, {{10, 7, 8}}).none(11, 0));
  EXPECT_FALSE(SumPorts(kSize, array, {{10, 5, 7}}).none(11, 0));
  EXPECT_FALSE(SumPorts(kSize, array, {{10, 32, 35}}).none(11, 0));
  EXPECT_FALSE(SumPorts(kSize, array, {{9, 8, 9}, {11, 8, 9}}).none(11, 0));
}

}  // namespace
}  // namespace systole::hw

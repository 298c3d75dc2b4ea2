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
  const SumPorts ports(kSize, pair_of(0, 24), {});  // rows 0 and 6
  EXPECT_TRUE(ports.none(11, kSize.vector(24))) << "a row of that memory";
  EXPECT_TRUE(ports.none(11, kSize.vector(21))) << "rows 5 and 6";
  EXPECT_FALSE(ports.none(11, kSize.vector(20))) << "row 5";
  EXPECT_FALSE(ports.none(11, kSize.vector(40))) << "row 10: another bank";
  EXPECT_TRUE(ports.none(11, kSize.vector(30 + 32))) << "rows 15 and 0";
  EXPECT_FALSE(ports.none(10, kSize.vector(24)));
  EXPECT_FALSE(ports.none(12, kSize.vector(24)));
}

TEST(SumPorts, HaveOneWhereTheRowsAreInDifferentMemories) {
  for (const std::uint64_t other : {4U, 8U, 12U, 16U, 20U, 28U}) {
    const SumPorts ports(kSize, pair_of(0, other), {});
    for (std::uint64_t at = 0; at < 64; ++at)
      EXPECT_FALSE(ports.none(11, kSize.vector(at))) << other;
  }
}

// So a vector that reaches into a second row takes a cycle.
TEST(SumMemories, OfRowsThatFollowEachOtherAreDifferent) {
  const SumMemories size{4, 2, 2048};
  for (std::uint64_t row = 0; row < 4095; ++row) {
    EXPECT_NE(size.of(row), size.of(row + 1)) << row;
    EXPECT_LT(size.of(row), 8U);
  }
}

// And a tile with a row in every fourth, sixth or so row of the accumulator leaves most memories to
// others.
TEST(SumMemories, OfRowsAtAPitchAreDifferentAsARule) {
  constexpr std::uint64_t kRows = 2048;
  for (std::uint64_t apart = 1; apart <= 128; ++apart) {
    std::uint64_t same = 0;
    for (std::uint64_t row = 0; row + apart < kRows; ++row) {
      same += SumMemories::of_row(row) == SumMemories::of_row(row + apart) ? 1 : 0;
    }
    std::uint64_t odd = apart;
    while (odd % 2 == 0) odd /= 2;
    const bool is_usual = apart > 2 && (odd == 1 || (odd == 3 && apart != 6));
    EXPECT_LE(same * 1000, (is_usual ? 150 : 520) * (kRows - apart)) << apart;
  }
}

TEST(SumPorts, CountBothRowsOfAVector) {
  const SumPorts ports(kSize, pair_of(29, 32), {});  // rows 7 and 8; row 8
  EXPECT_TRUE(ports.none(11, kSize.vector(32)));
  EXPECT_FALSE(ports.none(11, kSize.vector(0)));
  EXPECT_FALSE(ports.none(11, kSize.vector(36)));
}

TEST(SumPorts, AreFreeWithoutAddition) {
  const SumPorts ports(kSize, {{10, 0, true}, {11, 24, false}, {13, 24, true}}, {});
  EXPECT_FALSE(ports.none(11, kSize.vector(0)));
  EXPECT_FALSE(ports.none(13, kSize.vector(0))) << "nothing is written in that cycle";
}

// What was loaded in the cycle before is written, too: row 6, or row 5 and row 6.
TEST(SumPorts, CountWhatLoadsWrite) {
  const std::vector<SumWrite> array = {{11, 0, true}};
  EXPECT_TRUE(SumPorts(kSize, array, {{9, 0, 0}, {10, 24, 25}}).none(11, kSize.vector(0)));
  EXPECT_TRUE(SumPorts(kSize, array, {{10, 23, 24}}).none(11, kSize.vector(0)));
  EXPECT_FALSE(SumPorts(kSize, array, {{10, 21, 23}}).none(11, kSize.vector(0)));
  EXPECT_FALSE(SumPorts(kSize, array, {{10, 40, 43}}).none(11, kSize.vector(0)));
  EXPECT_FALSE(SumPorts(kSize, array, {{9, 24, 25}, {11, 24, 25}}).none(11, kSize.vector(0)));
}

TEST(SumPorts, AreOfFewerMemories) {
  SumMemories size = kSize;
  size.memories = 1;
  EXPECT_TRUE(SumPorts(size, pair_of(0, 4), {}).none(11, size.vector(8))) << "any row of the bank";
  EXPECT_FALSE(SumPorts(size, pair_of(0, 4), {}).none(11, size.vector(32))) << "another bank";
  EXPECT_FALSE(SumPorts(size, pair_of(0, 32), {}).none(11, size.vector(8))) << "one bank each";
  size.memories = 2;
  for (std::uint64_t row = 0; row < 8; ++row) {
    EXPECT_EQ(SumPorts(size, pair_of(4, 12), {}).none(11, size.vector(4 * row)),
              size.of(row) == size.of(1))
        << row;
  }
}

TEST(SumPorts, CountAllRowsOfAVector) {
  const SumPorts ports(kSize, pair_of(0, 24), {});  // rows 0 and 6
  EXPECT_FALSE(ports.none(11, {4, 15})) << "rows 1 to 3";
  EXPECT_TRUE(ports.none(11, {4, 27})) << "rows 1 to 6";
}

}  // namespace
}  // namespace systole::hw

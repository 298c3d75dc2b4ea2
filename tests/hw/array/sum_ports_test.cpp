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
  const SumPorts ports(kSize, pair_of(0, 28), {});  // rows 0 and 7
  EXPECT_TRUE(ports.none(11, 28)) << "a row of that memory";
  EXPECT_TRUE(ports.none(11, 25)) << "rows 6 and 7";
  EXPECT_FALSE(ports.none(11, 24)) << "row 6";
  EXPECT_FALSE(ports.none(11, 40)) << "row 10: another bank";
  EXPECT_TRUE(ports.none(11, 30 + 32)) << "rows 15 and 0";
  EXPECT_FALSE(ports.none(10, 28));
  EXPECT_FALSE(ports.none(12, 28));
}

TEST(SumPorts, HaveOneWhereTheRowsAreInDifferentMemories) {
  for (const std::uint64_t other : {4U, 8U, 12U, 16U, 20U, 24U}) {
    const SumPorts ports(kSize, pair_of(0, other), {});
    for (std::uint64_t at = 0; at < 64; ++at) EXPECT_FALSE(ports.none(11, at)) << other;
  }
}

// So one that reaches into a second row takes a cycle, and a tile with a row in every fourth or
// sixteenth row of the accumulator leaves three memories of four to others.
TEST(SumMemories, OfRowsNearEachOtherAreDifferent) {
  const SumMemories size{4, 2, 256};
  for (std::uint64_t row = 0; row < 511; ++row) {
    const SumMemories::Pair two = size.of_vector(row * 4 + 1);
    EXPECT_NE(two[0], two[1]) << row;
    EXPECT_LT(two[0], 8U);
  }
  for (const std::uint64_t apart : {1U, 4U, 16U}) {
    for (std::uint64_t row = 0; row + apart < 256; ++row) {
      EXPECT_NE(size.of_vector(row * 4)[0], size.of_vector((row + apart) * 4)[0]) << row;
    }
  }
}

TEST(SumPorts, CountBothRowsOfAVector) {
  const SumPorts ports(kSize, pair_of(29, 32), {});  // rows 7 and 8; row 8
  EXPECT_TRUE(ports.none(11, 32));
  EXPECT_FALSE(ports.none(11, 0));
  EXPECT_FALSE(ports.none(11, 36));
}

TEST(SumPorts, AreFreeWithoutAddition) {
  const SumPorts ports(kSize, {{10, 0, true}, {11, 28, false}, {13, 28, true}}, {});
  EXPECT_FALSE(ports.none(11, 0));
  EXPECT_FALSE(ports.none(13, 0)) << "nothing is written in that cycle";
}

// What was loaded in the cycle before is written, too: row 7, or row 6 and row 7.
TEST(SumPorts, CountWhatLoadsWrite) {
  const std::vector<SumWrite> array = {{11, 0, true}};
  EXPECT_TRUE(SumPorts(kSize, array, {{9, 0, 0}, {10, 28, 29}}).none(11, 0));
  EXPECT_TRUE(SumPorts(kSize, array, {{10, 27, 28}}).none(11, 0));
  EXPECT_FALSE(SumPorts(kSize, array, {{10, 25, 27}}).none(11, 0));
  EXPECT_FALSE(SumPorts(kSize, array, {{10, 40, 43}}).none(11, 0));
  EXPECT_FALSE(SumPorts(kSize, array, {{9, 28, 29}, {11, 28, 29}}).none(11, 0));
}

}  // namespace
}  // namespace systole::hw

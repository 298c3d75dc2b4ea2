#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/round.h"
#include "mapper/place/sharing.h"
#include "mapper/tile/tiling.h"
#include "mapper/tile/tiling_strategies.h"

namespace systole::mapper {
namespace {

/// A 16 x 16 array with these memories, as the library sees it.
hw::Machine gemmini(std::uint32_t scratchpad_kib, std::uint32_t accumulator_kib) {
  hw::Machine machine;
  machine.mapper.strategy = hw::MappingStrategy::kGemmini;
  machine.scratchpad.kib = scratchpad_kib;
  machine.accumulator.kib = accumulator_kib;
  return machine;
}
TilingProblem product(const hw::Machine& machine, std::uint32_t m, std::uint32_t n,
                      std::uint32_t k) {
  TilingProblem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.out_bytes = 1;
  problem.stream_bytes = whole_share(machine).stream_end;
  problem.sums = whole_share(machine).sums_end;
  return problem;
}
/// "5x5x48": blocks of m, n and k.
std::string blocks(const hw::Machine& machine, const TilingProblem& problem) {
  const Tiling t = Tiler(machine).choose(problem, "c");
  EXPECT_TRUE(t.unrolled && t.m_outer);
  EXPECT_EQ(t.c_cols, t.n);
  return std::to_string(ceil_div(t.m, 16)) + "x" + std::to_string(ceil_div(t.n, 16)) + "x" +
         std::to_string(ceil_div(t.k, 16));
}
std::string blocks(std::uint32_t scratchpad_kib, std::uint32_t accumulator_kib, std::uint32_t m,
                   std::uint32_t n, std::uint32_t k) {
  const hw::Machine machine = gemmini(scratchpad_kib, accumulator_kib);
  return blocks(machine, product(machine, m, n, k));
}

// The first three are known of the library itself; the others follow from its rule by hand.
TEST(GemminiTiling, GivesTheTilesOfTheLibrary) {
  EXPECT_EQ(blocks(256, 64, 512, 768, 768), "5x5x48");
  EXPECT_EQ(blocks(64, 256, 512, 768, 768), "11x11x5");
  EXPECT_EQ(blocks(256, 128, 512, 768, 768), "8x8x32");
  EXPECT_EQ(blocks(64, 64, 512, 768, 768), "5x5x12");
  EXPECT_EQ(blocks(256, 256, 512, 768, 768), "11x11x23");
  EXPECT_EQ(blocks(256, 64, 128, 768, 3072), "5x5x51") << "deeper than a quarter: 51 fits";
}

TEST(GemminiTiling, GrowsColumnsThenRowsThenDepthOfSmallProducts) {
  EXPECT_EQ(blocks(256, 64, 128, 128, 64), "5x6x4") << "a column more fits, then no row";
  EXPECT_EQ(blocks(256, 64, 128, 64, 128), "8x4x8") << "one loop does all";
  EXPECT_EQ(blocks(256, 64, 1, 1, 1), "1x1x1");
  EXPECT_EQ(blocks(1, 64, 128, 128, 64), "1x1x1") << "5 x 5 do not fit, however flat";
}

TEST(GemminiTiling, TilesOfWholeRowsBeginWithOneBlockOfRows) {
  const hw::Machine machine = gemmini(256, 256);
  TilingProblem problem = product(machine, 512, 768, 768);
  problem.row_wise = true;
  EXPECT_EQ(blocks(machine, problem), "2x48x10");
  problem.n = 2064;  // 129 blocks, and half the accumulator holds 128
  EXPECT_TRUE(gemmini_tilings(machine, problem).empty());
}

TEST(GemminiTiling, LeavesPassesWithoutAMatmulToTheCostModel) {
  const hw::Machine machine = gemmini(256, 64);
  const TilingProblem problem = product(machine, 512, 768, 0);
  const Tiling t = Tiler(machine).choose(problem, "c"),
               cost = cost_tilings(machine, problem).front();
  EXPECT_FALSE(t.unrolled);
  EXPECT_EQ(t.m, cost.m);
  EXPECT_EQ(t.n, cost.n);
}

TEST(GemminiTiling, FindsNothingForAPassThatDoesNotFit) {
  const hw::Machine machine = gemmini(256, 64);
  TilingProblem problem = product(machine, 512, 768, 0);
  problem.row_wise = true;
  problem.parameter_words = 2;
  problem.stream_bytes = 2 * 4 * 768;
  EXPECT_EQ(gemmini_tilings(machine, problem).size(), 1U);
  EXPECT_EQ(smallest_gemmini_tiles(machine, problem).scratchpad, problem.stream_bytes);
  --problem.stream_bytes;
  EXPECT_TRUE(gemmini_tilings(machine, problem).empty());
}

TEST(GemminiTiling, IsLessDeepWhereArraysAreHigherThanWide) {
  hw::Machine machine = gemmini(6, 6);
  machine.array.rows = 32;
  // Half the scratchpad: 6 blocks of B, but 2 of A and B.
  EXPECT_EQ(Tiler(machine).choose(product(machine, 4, 225, 75), "c").k, 64U);
}

TEST(GemminiTiling, KeepsTensorOperandsOfSixteenRowsInTheirBuffer) {
  hw::Machine machine = gemmini(256, 64);
  machine.postop.operand_kib = 1;
  TilingProblem problem = product(machine, 512, 768, 768);
  problem.tensor_bytes = 2;
  EXPECT_EQ(blocks(machine, problem), "8x2x48") << "1024 bytes: 32 columns of 16 rows";
  problem.tensor_bytes = 4;
  EXPECT_EQ(gemmini_tilings(machine, problem).front().c_cols, 16U);
  EXPECT_EQ(smallest_gemmini_tiles(machine, problem).operands, 1024U);
  problem.tensor_bytes = 5;
  EXPECT_TRUE(gemmini_tilings(machine, problem).empty());
  problem.tensor_bytes = 0;
  problem.pre_tensor_bytes = 2;
  EXPECT_EQ(gemmini_tilings(machine, problem).front().k, 32U);
}

TEST(GemminiTiling, FitsItsSmallestTilesAndNoLess) {
  hw::Machine machine = gemmini(256, 64);
  TilingProblem problem = product(machine, 512, 768, 768);
  problem.parameter_words = 2;
  problem.stream_bytes = 2 * (16 * 16 + 16 * 16);
  EXPECT_EQ(smallest_gemmini_tiles(machine, problem).scratchpad, problem.stream_bytes);
  EXPECT_EQ(smallest_gemmini_tiles(machine, problem).accumulator, 2U * 4 * 16 * 16);
  EXPECT_FALSE(gemmini_tilings(machine, problem).empty());
  --problem.stream_bytes;
  EXPECT_TRUE(gemmini_tilings(machine, problem).empty());
}

TEST(GemminiTiling, ExpectsEveryLoopToLoadItsOperandsAnew) {
  const hw::Machine machine = gemmini(256, 64);
  const Tiling t = Tiler(machine).choose(product(machine, 128, 768, 768), "c");
  // Two rows of ten tiles: A ten times, B twice.
  EXPECT_EQ(t.load_bytes, 10U * 128 * 768 + 2U * 768 * 768);
  EXPECT_EQ(t.compute_cycles, 8U * 48 * 48 * 16);
}

}  // namespace
}  // namespace systole::mapper

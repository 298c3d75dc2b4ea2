#include "hw/array/array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace systole::hw {
namespace {

constexpr Dataflow kDataflows[] = {Dataflow::kWeightStationary, Dataflow::kOutputStationary};
constexpr ArrayOverlap kOverlaps[] = {ArrayOverlap::kNone, ArrayOverlap::kPreload,
                                      ArrayOverlap::kFull};

Machine::Array array_of(std::uint32_t rows, std::uint32_t cols, ArrayOverlap overlap,
                        Dataflow dataflow = Dataflow::kWeightStationary) {
  Machine::Array array;
  array.rows = rows;
  array.cols = cols;
  array.overlap = overlap;
  array.dataflow = dataflow;
  return array;
}

TEST(ArrayCycles, WithoutOverlapEqualTheScaleSimCounts) {
  const auto lone = [](std::uint32_t size) {
    return lone_matmul_cycles(array_of(size, size, ArrayOverlap::kNone), 128, 768, 768);
  };
  EXPECT_EQ(lone(16), 400895U);
  EXPECT_EQ(lone(32), 127871U);
  EXPECT_EQ(lone(128), 18359U);
}

TEST(ArrayCycles, WithFullOverlapAreWithinATenthOfAPercentOfOnnxim) {
  const std::uint64_t cycles =
      lone_matmul_cycles(array_of(16, 16, ArrayOverlap::kFull), 128, 768, 768);
  EXPECT_NEAR(static_cast<double>(cycles), 295070.0, 295.0);
}

TEST(ArrayCycles, OfSteadyTilesAreSixteenEach) {
  const ArrayCycles tile = array_cycles(array_of(16, 16, ArrayOverlap::kFull), 16, 16, 16, true);
  EXPECT_EQ(tile.interval, 16U);
  EXPECT_EQ(tile.preload, 0U);
  EXPECT_EQ(tile.drain, 0U);
}

TEST(ArrayCycles, OfALoneTileCountEveryPhase) {
  // 16 rows of weights, 16 of operands, 30 cycles of skew: the first edge to the 62nd.
  const Machine::Array array = array_of(16, 16, ArrayOverlap::kFull);
  EXPECT_EQ(array_cycles(array, 16, 16, 16, false).latency, 62U);
  EXPECT_EQ(lone_matmul_cycles(array, 16, 16, 16), 61U);
}

TEST(ArrayCycles, OfShortStreamsWaitForTheNextWeights) {
  const ArrayCycles one_row = array_cycles(array_of(16, 16, ArrayOverlap::kFull), 1, 64, 64, true);
  EXPECT_EQ(one_row.folds, 16U);
  EXPECT_EQ(one_row.interval, 16U * 16U);
  EXPECT_EQ(one_row.stream, 16U);
  EXPECT_EQ(one_row.preload, 16U * 15U);
}

TEST(ArrayCycles, OfStationaryOutputsShiftThemOut) {
  const ArrayCycles none = array_cycles(
      array_of(8, 4, ArrayOverlap::kNone, Dataflow::kOutputStationary), 16, 8, 100, false);
  EXPECT_EQ(none.folds, 4U);
  EXPECT_EQ(none.interval, 4U * (2 * 8 + 4 + 100 - 2));
  const ArrayCycles full = array_cycles(
      array_of(8, 4, ArrayOverlap::kFull, Dataflow::kOutputStationary), 16, 8, 100, false);
  EXPECT_EQ(full.interval, 400U);
  EXPECT_EQ(full.latency, 400U + 10U + 8U);
}

TEST(ArrayCycles, OfNoWorkAreZero) {
  for (const ArrayOverlap overlap : kOverlaps) {
    const Machine::Array array = array_of(16, 16, overlap);
    EXPECT_EQ(array_cycles(array, 0, 16, 16, false).latency, 0U);
    EXPECT_EQ(array_cycles(array, 16, 0, 16, false).interval, 0U);
    EXPECT_EQ(lone_matmul_cycles(array, 16, 16, 0), 0U);
    EXPECT_EQ(array_reads(array, 16, 16, 0).a, 0U);
  }
}

struct ArrayCase {
  Machine::Array array;
  std::uint64_t m, n, k;
};

std::vector<ArrayCase> random_cases() {
  std::mt19937 random(5);
  const auto pick = [&](std::uint32_t hi) {
    return std::uniform_int_distribution<std::uint32_t>(1, hi)(random);
  };
  std::vector<ArrayCase> cases;
  for (int i = 0; i < 400; ++i) {
    const std::uint32_t rows = pick(i % 2 == 0 ? 8 : 128);
    const std::uint32_t cols = pick(i % 3 == 0 ? 8 : 128);
    for (const ArrayOverlap overlap : kOverlaps) {
      for (const Dataflow dataflow : kDataflows) {
        cases.push_back({array_of(rows, cols, overlap, dataflow), pick(200), pick(300), pick(400)});
      }
    }
  }
  return cases;
}

TEST(ArrayCycles, SplitIntoTheirPhasesExactly) {
  for (const ArrayCase& c : random_cases()) {
    for (const bool preloaded : {false, true}) {
      const ArrayCycles cycles = array_cycles(c.array, c.m, c.n, c.k, preloaded);
      EXPECT_EQ(cycles.stream + cycles.preload + cycles.drain, cycles.interval);
      EXPECT_LE(cycles.interval, cycles.latency);
    }
  }
}

TEST(ArrayCycles, NeverBeatThePeakOfTheArray) {
  for (const ArrayCase& c : random_cases()) {
    const ArrayCycles cycles = array_cycles(c.array, c.m, c.n, c.k, true);
    EXPECT_GE(cycles.interval * c.array.rows * c.array.cols, c.m * c.n * c.k);
  }
}

// Two int4 weights take a step, and no more of anything than two of int8.
TEST(ArrayCycles, OfInt4WeightsTakeHalfOfTheStepsAndReadAllOfTheActivations) {
  for (const ArrayCase& c : random_cases()) {
    const std::uint64_t steps = array_steps(c.k, {false, true});
    EXPECT_EQ(steps, (c.k + 1) / 2);
    EXPECT_EQ(array_steps(c.k, {}), c.k);
    for (const bool preloaded : {false, true}) {
      const ArrayCycles whole = array_cycles(c.array, c.m, c.n, c.k, preloaded);
      const ArrayCycles split = array_cycles(c.array, c.m, c.n, steps, preloaded);
      EXPECT_LE(split.interval, whole.interval);
      EXPECT_LE(split.latency, whole.latency);
      EXPECT_GE(split.interval * c.array.rows * c.array.cols * 2, c.m * c.n * c.k);
    }
    const ArrayReads whole = array_reads(c.array, c.m, c.n, c.k);
    const ArrayReads split = array_reads(c.array, c.m, c.n, c.k, {false, true});
    EXPECT_EQ(split.a, whole.a);
    EXPECT_EQ(split.b, whole.b / c.k * steps);
  }
}

// Four int4 by int4 take a step; pairs of either are read as often as bytes of half the depth.
TEST(ArrayCycles, OfInt4ByInt4TakeAQuarterOfTheStepsAndReadHalfOfBothOperands) {
  for (const ArrayCase& c : random_cases()) {
    const Int4Operands both{true, true};
    const std::uint64_t steps = array_steps(c.k, both);
    EXPECT_EQ(steps, (c.k + 3) / 4);
    const ArrayCycles quarter = array_cycles(c.array, c.m, c.n, steps, false);
    EXPECT_LE(quarter.interval,
              array_cycles(c.array, c.m, c.n, array_steps(c.k, {false, true}), false).interval);
    EXPECT_GE(quarter.interval * c.array.rows * c.array.cols * 4, c.m * c.n * c.k);
    const ArrayReads reads = array_reads(c.array, c.m, c.n, c.k, both);
    const ArrayReads pairs = array_reads(c.array, c.m, c.n, (c.k + 1) / 2);
    EXPECT_EQ(reads.a, pairs.a);
    EXPECT_EQ(reads.b, pairs.b);
  }
}

TEST(ArrayCycles, NeverFallWhenTheMatmulGrows) {
  for (const ArrayCase& c : random_cases()) {
    const ArrayCycles base = array_cycles(c.array, c.m, c.n, c.k, false);
    for (const ArrayCycles& larger : {array_cycles(c.array, c.m + 1, c.n, c.k, false),
                                      array_cycles(c.array, c.m, c.n + 1, c.k, false),
                                      array_cycles(c.array, c.m, c.n, c.k + 1, false)}) {
      EXPECT_LE(base.interval, larger.interval);
      EXPECT_LE(base.latency, larger.latency);
    }
  }
}

TEST(ArrayCycles, FallWithEveryStepOfOverlap) {
  for (ArrayCase c : random_cases()) {
    std::vector<std::uint64_t> intervals;
    for (const ArrayOverlap overlap : kOverlaps) {
      c.array.overlap = overlap;
      intervals.push_back(array_cycles(c.array, c.m, c.n, c.k, false).interval);
    }
    EXPECT_TRUE(std::is_sorted(intervals.rbegin(), intervals.rend()));
  }
}

TEST(ArrayCycles, OfSplitSumsAddUp) {
  for (const ArrayCase& c : random_cases()) {
    if (c.array.dataflow != Dataflow::kWeightStationary) continue;
    const std::uint64_t half = 3 * std::uint64_t{c.array.rows};
    const std::uint64_t whole = array_cycles(c.array, c.m, c.n, 2 * half, false).interval;
    const std::uint64_t first = array_cycles(c.array, c.m, c.n, half, false).interval;
    const std::uint64_t second = array_cycles(c.array, c.m, c.n, half, true).interval;
    EXPECT_EQ(first + second, whole);
  }
}

TEST(ArrayCycles, SaveOnlyTheFirstPreloadWhenPreloaded) {
  for (const ArrayCase& c : random_cases()) {
    const std::uint64_t cold = array_cycles(c.array, c.m, c.n, c.k, false).interval;
    const std::uint64_t warm = array_cycles(c.array, c.m, c.n, c.k, true).interval;
    const bool hides =
        c.array.dataflow == Dataflow::kWeightStationary && c.array.overlap != ArrayOverlap::kNone;
    EXPECT_EQ(cold - warm, hides ? c.array.rows : 0);
  }
}

TEST(ArrayCycles, OfAFoldAreItsPartOfAllButTheFirstPreload) {
  for (const ArrayCase& c : random_cases()) {
    const ArrayCycles cycles = array_cycles(c.array, c.m, c.n, c.k, true);
    EXPECT_EQ(cycles.preload, cycles.folds * cycles.fold_preload);
    EXPECT_EQ(cycles.drain, cycles.folds * cycles.fold_drain);
  }
}

TEST(ArrayReads, CountRealRowsOnly) {
  const Machine::Array weights = array_of(16, 16, ArrayOverlap::kFull);
  const ArrayReads reads = array_reads(weights, 5, 40, 20);
  EXPECT_EQ(reads.a, 2U * 3U * 5U);
  EXPECT_EQ(reads.b, 3U * 20U);
  const Machine::Array outputs = array_of(16, 16, ArrayOverlap::kFull, Dataflow::kOutputStationary);
  EXPECT_EQ(array_reads(outputs, 5, 40, 20).a, 3U * 20U);
  EXPECT_EQ(array_reads(outputs, 5, 40, 20).b, 3U * 20U);
}

}  // namespace
}  // namespace systole::hw

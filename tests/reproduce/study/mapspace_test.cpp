#include "reproduce/study/mapspace.h"

#include <gtest/gtest.h>

#include "reproduce/published.h"
#include "support/input_error.h"

namespace systole::analysis {
namespace {

TEST(Mapspace, OfASingleProductIsOneMapping) {
  const hw::Machine machine;
  const MapspaceStatistics statistics = sample_mapspace({1, 1, 1}, machine, 100, 1);
  EXPECT_EQ(statistics.mappings, 100U);
  EXPECT_EQ(statistics.drawn, 100U);
  // A MAC, a byte of A and B in and out of the scratchpad, a sum in and out of the accumulator,
  // three bytes of DRAM; a cycle of 1 ns.
  EXPECT_NEAR(statistics.best, (0.3 + 4 * 1.25 + 8 * 1.25 + 3 * 160) * 1e-12 * 1e-9, 1e-30);
  EXPECT_DOUBLE_EQ(statistics.tenth_percentile, 1);
  EXPECT_DOUBLE_EQ(statistics.below_three, 1);
  EXPECT_DOUBLE_EQ(statistics.decades, 0);
}

TEST(Mapspace, TheBestOfATinyOneIsFoundAndKnown) {
  // 32 x 16 x 16 fits as a whole: each byte crosses DRAM once, each weight enters its PE once.
  const hw::Machine machine;
  const MapspaceStatistics statistics = sample_mapspace({32, 16, 16}, machine, 5000, 1);
  const double bytes = 32 * 16 + 16 * 16 + 32 * 16;
  const double picojoules = 8192 * 0.3 + 2 * (512 + 256) * 1.25 + 8 * 512 * 1.25 + bytes * 160;
  EXPECT_NEAR(statistics.best, picojoules * 1e-12 * (bytes / 16) * 1e-9, 1e-6 * statistics.best);
  EXPECT_GT(statistics.decades, 1);
}

TEST(Mapspace, TheSeedAloneDecides) {
  const hw::Machine machine;
  const ProductShape shape = survey_mapspace_operators().front().shape;
  const MapspaceStatistics first = sample_mapspace(shape, machine, 2000, 1);
  EXPECT_EQ(sample_mapspace(shape, machine, 2000, 1).tenth_percentile, first.tenth_percentile);
  EXPECT_NE(sample_mapspace(shape, machine, 2000, 2).tenth_percentile, first.tenth_percentile);
}

TEST(Mapspace, DrawsWhatFitsAlone) {
  hw::Machine machine;
  const ProductShape shape = survey_mapspace_operators().front().shape;
  const std::uint64_t drawn = sample_mapspace(shape, machine, 2000, 1).drawn;
  machine.scratchpad.kib = 8;
  machine.accumulator.kib = 4;
  EXPECT_GT(sample_mapspace(shape, machine, 2000, 1).drawn, drawn);
}

// The survey: one mapping of ten within 7 to 12 times the best, 1.5 to 2.6 % within 3 times, up to
// four decades.
TEST(Mapspace, OfTheSurveysOperatorsSpreadsOverDecades) {
  const hw::Machine machine;
  const auto& published = testbench::PublishedPaper::load("survey").table("mapspace");
  for (const MapspaceOperator& op : survey_mapspace_operators()) {
    const MapspaceStatistics statistics = sample_mapspace(op.shape, machine, 20'000, 1);
    const double tenth = published.value(op.name, "tenth");
    EXPECT_GT(statistics.tenth_percentile, tenth) << op.name;
    EXPECT_LT(statistics.tenth_percentile, 3 * tenth) << op.name;
    EXPECT_NEAR(100 * statistics.below_three, published.value(op.name, "below 3 x"), 2.5)
        << op.name;
    EXPECT_GT(statistics.decades, 4) << op.name;
    EXPECT_LT(statistics.decades, 5) << op.name;
  }
}

}  // namespace
}  // namespace systole::analysis

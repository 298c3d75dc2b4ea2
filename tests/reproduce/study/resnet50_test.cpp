#include "reproduce/study/resnet50.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "reproduce/published.h"
#include "reproduce/study/fusion_study.h"
#include "reproduce/study/mapspace.h"
#include "support/input_error.h"
#include "tests/analysis/survey_shapes.h"

namespace systole::analysis {
namespace {

/// A row of the survey's Tab. 12. It tells the result's channels, not the input's.
struct LayerRow {
  std::uint32_t kernel, inputs, outputs, size;
  std::uint32_t count;  ///< that its totals count
  double gflops, gmops, intensity;
};

// The survey counts three 1 x 1 convolutions of 256 to 64 channels, but the first block's is one of
// 64 to 64.
constexpr LayerRow kTable12[] = {
    {1, 256, 64, 56, 3, .31, .0031, 100.76},   {3, 64, 64, 56, 3, .69, .0013, 527.55},
    {1, 64, 256, 56, 3, .31, .0031, 100.76},   {1, 512, 128, 28, 3, .31, .0017, 181.14},
    {3, 128, 128, 28, 4, .92, .0014, 664.09},  {1, 128, 512, 28, 4, .41, .0023, 181.14},
    {1, 1024, 256, 14, 5, .51, .0026, 200.30}, {3, 256, 256, 14, 6, 1.39, .0041, 335.00},
    {1, 256, 1024, 14, 6, .62, .0031, 200.30}, {1, 2048, 512, 7, 2, .21, .0023, 87.53},
    {3, 512, 512, 7, 3, .69, .0072, 95.96},    {1, 512, 2048, 7, 3, .31, .0035, 87.53},
};

TEST(Resnet50, HasTheLayersOfTable12) {
  const std::vector<Convolution> layers = resnet50();
  for (const LayerRow& row : kTable12) {
    SCOPED_TRACE(std::to_string(row.kernel) + " " + std::to_string(row.outputs));
    const auto layer = std::find_if(layers.rbegin(), layers.rend(), [&](const Convolution& c) {
      return c.kernel == row.kernel && c.inputs == row.inputs && c.outputs == row.outputs &&
             c.size == row.size && c.stride == 1;
    });
    ASSERT_NE(layer, layers.rend());
    EXPECT_EQ(layer->count, row.inputs == 256 && row.outputs == 64 ? 2U : row.count);
    EXPECT_EQ(giga(row.count * layer->flops(), 2), row.gflops);
    EXPECT_EQ(giga(row.count * layer->bytes(), 4), row.gmops);
    EXPECT_EQ(printed(layer->intensity(), 2), row.intensity);
  }
}

TEST(Resnet50, Has53ConvolutionsOf7Point7GigaFlops) {
  double flops = 0, bytes = 0;
  std::uint32_t count = 0;
  for (const Convolution& layer : resnet50()) {
    flops += layer.count * layer.flops();
    bytes += layer.count * layer.bytes();
    count += layer.count;
  }
  EXPECT_EQ(count, 53U);
  // The survey's Tab. 4 has 7.26 GFLOP and 183.36 FLOPs per byte, and does not say which layers it
  // leaves out.
  EXPECT_EQ(giga(flops, 2), 7.71);
  EXPECT_EQ(giga(bytes, 2), 0.04);
  EXPECT_NEAR(flops / bytes, 183.36, 0.06 * 183.36);
}

TEST(Resnet50, HasElementwiseOperatorsOfItsShape) {
  const std::vector<OperatorCost> costs = resnet50_elementwise();
  ASSERT_EQ(costs.size(), 3U);
  // By hand: 64 x 112^2, then (2 x 64 + 256) x 56^2 three times and so on, and the shortcuts.
  const double blocks = 3.0 * 384 * 3136 + 4.0 * 768 * 784 + 6.0 * 1536 * 196 + 3.0 * 3072 * 49;
  const double shortcuts = 256.0 * 3136 + 512.0 * 784 + 1024.0 * 196 + 2048.0 * 49;
  const double first = 64.0 * 112 * 112;
  EXPECT_EQ(costs[0].name, "BatchNorm");
  EXPECT_EQ(costs[0].elements, first + blocks + shortcuts);
  EXPECT_EQ(costs[0].intensity(), 1);
  EXPECT_EQ(giga(costs[0].bytes, 2), 0.03);  // Tab. 4
  EXPECT_EQ(costs[1].name, "ReLU");
  EXPECT_EQ(costs[1].elements, first + blocks);
  EXPECT_EQ(costs[1].intensity(), 0.5);
  EXPECT_EQ(giga(costs[1].bytes, 2), 0.02);  // Tab. 4
  EXPECT_EQ(costs[2].name, "other");
  EXPECT_EQ(costs[2].macs, 2048 * 1000);
  EXPECT_EQ(giga(costs[2].flops, 2), 0.01);  // Tab. 4
  EXPECT_EQ(giga(costs[2].bytes, 2), 0.02);  // Tab. 4
}

/// A byte of either memory at the survey's price, whatever their sizes.
hw::Machine with_byte_prices() {
  hw::Machine machine;
  machine.energy.scratchpad_byte_pj = machine.energy.accumulator_byte_pj = 1.25;
  return machine;
}

TEST(Mapspace, OfASingleProductIsOneMapping) {
  const hw::Machine machine = with_byte_prices();
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
  const hw::Machine machine = with_byte_prices();
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

// 32 x 16 results of 16 products each, by hand: 5.12 bytes a cycle, 256 MACs at 90 %.
const FusionPair kSmall{"small", 1, 32, 16, 16, 5};

TEST(FusionStudy, OfASmallPairByHand) {
  // The product: 512 + 256 bytes in, 512 out; longer than 8192 MACs. The pass: 512 x 5 bytes.
  EXPECT_DOUBLE_EQ(unfused_cycles(kSmall, 256), (1280 + 2560) / 5.12);
  EXPECT_DOUBLE_EQ(fused_cycles(kSmall, 256), 1280 / 5.12);
  FusionPair heads = kSmall;
  heads.products = 3;
  EXPECT_DOUBLE_EQ(unfused_cycles(heads, 256), 3 * unfused_cycles(kSmall, 256));
  EXPECT_DOUBLE_EQ(fused_cycles(heads, 256), 3 * fused_cycles(kSmall, 256));
}

TEST(FusionStudy, TheLongestOfArrayMemoryAndPassesCounts) {
  const FusionPair array{"deep", 1, 4096, 512, 256, 0};
  EXPECT_DOUBLE_EQ(fused_cycles(array, 256), 4096.0 * 512 * 256 / 256 / 0.90);
  EXPECT_DOUBLE_EQ(fused_cycles(array, 128), 4096.0 * 512 * 256 / 256 / 0.88);
  const FusionPair memory{"shallow", 1, 4096, 1024, 1, 0};
  const double product = (4096 + 1024 + 4096.0 * 1024) / 5.12;
  EXPECT_DOUBLE_EQ(fused_cycles(memory, 256), product);
  // Of its own it moves nothing, but passes three times; its tiles are 176 x 176.
  EXPECT_NEAR(unfused_cycles(memory, 256),
              product + (5 * 4096 + 23 * 1024) / 5.12 + 3 * 4096.0 * 1024 / 16, 1);
}

TEST(FusionStudy, WholeRowsLoadALargeOperandForEveryTile) {
  // Half of 128 KiB holds 21 rows of 768 sums: 16 of them. Of 256 KiB 32, and half as many loads.
  const FusionPair pair = projection_and_layer_norm(512);
  const double weights = 768.0 * 768 / 5.12, rest = 2 * 512 * 768 / 5.12;
  EXPECT_NEAR(fused_cycles(pair, 128), 32 * weights + rest, 1);
  EXPECT_NEAR(fused_cycles(pair, 256), 16 * weights + rest, 1);
  // Half of it holds 8 rows of 4096: so the whole holds one tile of 16.
  EXPECT_NEAR(fused_cycles(scores_and_softmax(4096), 256),
              12 * (256 * 4096.0 * 64 + 4096 * 64 + 4096.0 * 4096) / 5.12, 1);
  EXPECT_THROW((void)fused_cycles(scores_and_softmax(4096), 128), std::invalid_argument);
}

TEST(FusionStudy, EqualsThePublishedChangesInSignAndWithinEightPoints) {
  ASSERT_EQ(survey_fusion_cases().size(), 10U);
  const auto& published = testbench::PublishedPaper::load("survey").table("fusion");
  for (const FusionCase& study : survey_fusion_cases()) {
    const double change = published.value(study.text(), "change");
    EXPECT_NEAR(study.change(), change, 8) << study.text();
    EXPECT_EQ(study.change() < 0, change < 0) << study.text();
  }
}

}  // namespace
}  // namespace systole::analysis

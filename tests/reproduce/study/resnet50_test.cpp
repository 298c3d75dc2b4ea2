#include "reproduce/study/resnet50.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/analysis/survey_shapes.h"

namespace systole::analysis {
namespace {

/// A row of the survey's Tab. 12. It tells the result's channels, not the input's.
struct LayerRow {
  std::uint32_t kernel, inputs, outputs, size;
  std::uint32_t count;  ///< that its totals stand for
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

}  // namespace
}  // namespace systole::analysis

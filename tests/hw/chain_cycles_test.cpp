#include <gtest/gtest.h>

#include "hw/postop.h"
#include "tests/hw/random_chain.h"
#include "tests/hw/stage_sketch.h"

namespace systole::hw {
namespace {

using test::pick;
using test::Random;
using test::stage;

TEST(ChainCycles, OfElementwiseStagesArePipelined) {
  const Chain chain{{stage(StageOp::kAdd), stage(StageOp::kRequantise), stage(StageOp::kRelu)},
                    DType::kS8};
  const ChainCycles cycles = chain_cycles(chain, 10, 40, 16);
  EXPECT_EQ(cycles.fill, 1U + 5U + 1U);
  EXPECT_EQ(cycles.per_row, 3U);
  EXPECT_EQ(cycles.reads, 30U);
  EXPECT_EQ(cycles.total(10), 37U);
  EXPECT_EQ(chain_cycles(chain, 10, 48, 16).per_row, 3U);
  EXPECT_EQ(chain_cycles(chain, 10, 49, 16).per_row, 4U);
}

TEST(ChainCycles, OfSoftmaxReadTheRowThreeTimesOrDeferredTwice) {
  // All heads of 12 x 512 x 512 scores: the published 0.59 million cycles per layer.
  const std::uint32_t latency = stage_info(StageOp::kSoftmax).latency;
  const Chain normalised{{stage(StageOp::kSoftmax, {1})}, DType::kU8};
  const ChainCycles three = chain_cycles(normalised, 12 * 512, 512, 16);
  EXPECT_EQ(three.reads, 3U * 12U * 512U * 512U / 16U);
  EXPECT_EQ(three.total(12 * 512) - three.fill, three.reads);
  EXPECT_EQ(three.fill, latency + 6U * 32U);  // the first row's output is in the third interval
  const Chain deferred{{stage(StageOp::kSoftmax, {0})}, DType::kU8};
  const ChainCycles two = chain_cycles(deferred, 12 * 512, 512, 16);
  EXPECT_EQ(two.reads, 2U * 12U * 512U * 512U / 16U);
  EXPECT_EQ(two.fill, latency);
}

TEST(ChainCycles, OfShortRowsAreBoundByTheSerialUnits) {
  // One vector a row, and the last length that the division, or root and reciprocal, bind.
  const std::uint64_t softmax = stage_info(StageOp::kSoftmax).latency;
  const Chain normalised{{stage(StageOp::kSoftmax, {2})}, DType::kU8};
  EXPECT_EQ(chain_cycles(normalised, 1, 16, 16).total(1), 2U * 17U + 3U + softmax);
  EXPECT_EQ(chain_cycles(normalised, 9, 5 * 16, 16).per_row, 17U);
  EXPECT_EQ(chain_cycles(normalised, 9, 6 * 16, 16).per_row, 3U * 6U);

  const std::uint64_t layer_norm = stage_info(StageOp::kLayerNorm).latency;
  const Chain norm{{stage(StageOp::kLayerNorm)}, DType::kS8};
  EXPECT_EQ(chain_cycles(norm, 1, 16, 16).total(1), 2U * 37U + 3U + layer_norm);
  EXPECT_EQ(chain_cycles(norm, 4, 16, 16).total(4), 5U * 37U + 3U + layer_norm);
  EXPECT_EQ(chain_cycles(norm, 9, 17 * 16, 16).per_row, 17U + 36U);
  EXPECT_EQ(chain_cycles(norm, 9, 18 * 16, 16).per_row, 3U * 18U);
  EXPECT_EQ(chain_cycles(norm, 4, 768, 16).total(4), 6U * 3U * 48U + layer_norm);

  const std::uint64_t division = stage_info(StageOp::kDivideRowSum).latency;
  const Chain divide{{stage(StageOp::kDivideRowSum)}, DType::kS16};
  EXPECT_EQ(chain_cycles(divide, 4, 64, 16).total(4), 4U * 13U + 4U + division);
  EXPECT_EQ(chain_cycles(divide, 4, 320, 16).total(4), 13U + 4U * 20U + division);
}

TEST(ChainCycles, ShowADivisionOnlyInFrontOfTheRowWiseStage) {
  const Stage divide = stage(StageOp::kDivideRowSum);
  const Stage norm = stage(StageOp::kLayerNorm);
  const std::uint64_t alone = chain_cycles({{norm}, DType::kS8}, 4, 256, 16).total(4);
  const std::uint64_t latency = stage_info(StageOp::kDivideRowSum).latency;
  EXPECT_EQ(chain_cycles({{norm, divide}, DType::kS8}, 4, 256, 16).total(4), alone + latency);
  EXPECT_EQ(chain_cycles({{divide, norm}, DType::kS8}, 4, 256, 16).total(4), alone + latency + 13U);
}

TEST(ChainCycles, OfNothingAreZero) {
  const Chain chain{{stage(StageOp::kLayerNorm)}, DType::kS8};
  EXPECT_EQ(chain_cycles(chain, 0, 16, 16).total(0), 0U);
  EXPECT_EQ(chain_cycles(chain, 4, 0, 16).total(4), 0U);
}

TEST(ChainCycles, NeverFallWhenTheTileGrows) {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    const Chain chain = test::random_chain(random, 8);
    const auto rows = static_cast<std::uint64_t>(pick(random, 1, 100));
    const auto cols = static_cast<std::uint64_t>(pick(random, 1, 500));
    const std::uint64_t total = chain_cycles(chain, rows, cols, 16).total(rows);
    EXPECT_LE(total, chain_cycles(chain, rows + 1, cols, 16).total(rows + 1));
    EXPECT_LE(total, chain_cycles(chain, rows, cols + 1, 16).total(rows));
    EXPECT_GE(total, chain_cycles(chain, rows, cols, 32).total(rows));
    EXPECT_GE(total * 16, rows * cols);
  }
}

}  // namespace
}  // namespace systole::hw

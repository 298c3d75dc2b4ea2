#include <gtest/gtest.h>

#include <algorithm>

#include "hw/number/unit_depths.h"
#include "hw/postop/postop.h"
#include "tests/hw/postop/random_chain.h"
#include "tests/hw/postop/stage_sketch.h"

namespace systole::hw {
namespace {

using test::pick;
using test::Random;
using test::stage;
using test::with_operand;

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
  EXPECT_EQ(chain_cycles(divide, 4, 64, 16).total(4), 4U * 15U + 4U + division);
  EXPECT_EQ(chain_cycles(divide, 4, 320, 16).total(4), 15U + 4U * 20U + division);
}

TEST(ChainCycles, ShowADivisionOnlyInFrontOfTheRowWiseStage) {
  const Stage divide = stage(StageOp::kDivideRowSum);
  const Stage norm = stage(StageOp::kLayerNorm);
  const std::uint64_t alone = chain_cycles({{norm}, DType::kS8}, 4, 256, 16).total(4);
  const std::uint64_t latency = stage_info(StageOp::kDivideRowSum).latency;
  EXPECT_EQ(chain_cycles({{norm, divide}, DType::kS8}, 4, 256, 16).total(4), alone + latency);
  EXPECT_EQ(chain_cycles({{divide, norm}, DType::kS8}, 4, 256, 16).total(4), alone + latency + 15U);
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

/// A chain of stages of which each takes a vector per cycle.
Chain elementwise_chain(Random& random, std::size_t stages) {
  Chain chain{{}, DType::kS8};
  while (chain.stages.size() < stages) {
    const Stage next =
        test::random_stage(random, static_cast<StageOp>(pick(random, 0, kStageOps - 1)), true);
    const bool vectors = stage_interval(next, 1) == 1 && next.op != StageOp::kTranspose;
    if (vectors && test::fits_after(chain, next)) chain.stages.push_back(next);
  }
  return chain;
}

TEST(ChainCycles, OfTheInnerLoopDoNotDependOnWhatElementwiseStagesDo) {
  Random random(21);
  for (int i = 0; i < 500; ++i) {
    const Chain chain = elementwise_chain(random, static_cast<std::size_t>(pick(random, 1, 8)));
    const auto rows = static_cast<std::uint64_t>(pick(random, 1, 100));
    const auto cols = static_cast<std::uint64_t>(pick(random, 1, 1000));
    const auto lanes = std::uint32_t{1} << pick(random, 0, 8);
    const std::uint64_t vectors = (cols + lanes - 1) / lanes;
    const ChainCycles cycles = chain_cycles(chain, rows, cols, lanes);
    EXPECT_EQ(cycles.total(rows) - cycles.fill, rows * vectors);
    EXPECT_EQ(cycles.reads, rows * vectors);
    std::uint64_t latency = 0;
    for (const Stage& stage : chain.stages) latency += stage_latency(stage);
    EXPECT_EQ(cycles.fill, latency);
  }
}

TEST(ChainCycles, OfTheInnerLoopAreThoseOfTheSlowestStage) {
  Random random(22);
  for (int i = 0; i < 1000; ++i) {
    const Chain chain = test::random_chain(random, 8);
    const auto rows = static_cast<std::uint64_t>(pick(random, 1, 100));
    const auto cols = static_cast<std::uint64_t>(pick(random, 1, 1000));
    const std::uint64_t vectors = (cols + 15) / 16;
    std::uint64_t slowest = vectors;
    for (const Stage& stage : chain.stages) {
      slowest = std::max(slowest, stage_interval(stage, vectors));
    }
    const ChainCycles cycles = chain_cycles(chain, rows, cols, 16);
    EXPECT_EQ(cycles.total(rows) - cycles.fill, rows * slowest);
    EXPECT_EQ(cycles.total(rows) - chain_cycles(chain, 1, cols, 16).total(1), (rows - 1) * slowest);
  }
}

TEST(ChainCycles, OfNormsOfPartedRowsAreBoundByDividerAndRoot) {
  using unit_depth::kAdd;
  using unit_depth::kMultiply;
  const Stage layer_norm = stage(StageOp::kLayerNormApply);
  const Stage rms_norm = stage(StageOp::kRmsNormApply);
  // A division of 24 bits, the squares about the mean; a root of 32 bits, a division of 32. Two
  // bits a cycle, two cycles to read, one to hand over.
  constexpr std::uint32_t kMean = 2U + 12U + 1U + 2 * kMultiply + 2 * kAdd;
  EXPECT_EQ(stage_interval(layer_norm, 1), kMean);
  EXPECT_EQ(stage_interval(layer_norm, 29), 29U);
  EXPECT_EQ(stage_interval(rms_norm, 1), 16U);
  EXPECT_EQ(stage_interval(rms_norm, 17), 17U);
  EXPECT_EQ(stage_lead(layer_norm), kMean + 17U + 17U);
  EXPECT_EQ(stage_lead(rms_norm), 16U + 16U);
  // Of a row of 64 elements in 16 lanes: the lead, four vectors, the depth.
  EXPECT_EQ(chain_cycles({{rms_norm}, DType::kS8}, 1, 64, 16).total(1),
            32U + 4U + stage_latency(rms_norm));
  EXPECT_EQ(chain_cycles({{layer_norm}, DType::kS8}, 10, 64, 16).total(10),
            57U + 4U + 9U * 23U + stage_latency(layer_norm));
}

TEST(ChainCycles, OfATranspositionHaveTheColumnsAfterThem) {
  const Stage relu = stage(StageOp::kRelu);
  const Stage transpose = stage(StageOp::kTranspose);
  const ChainCycles straight = chain_cycles({{relu}, DType::kS8}, 32, 100, 16);
  const ChainCycles transposed = chain_cycles({{relu, transpose}, DType::kS8}, 32, 100, 16);
  EXPECT_EQ(transposed.total(32), straight.total(32) + 100U + stage_latency(transpose));
  EXPECT_EQ(transposed.per_row, straight.per_row);
}

TEST(StageLatency, CountsTheRequantiserOfAnOperand) {
  using unit_depth::kAdd;
  using unit_depth::kClamp;
  using unit_depth::kRequantise;
  const auto latency = [](StageOp op, Operand operand, std::int64_t multiplier) {
    Stage result = with_operand(op, operand);
    result.imm[0] = multiplier;
    return stage_latency(result);
  };
  for (const StageOp op : {StageOp::kAdd, StageOp::kSub}) {
    EXPECT_EQ(latency(op, Operand::kImmediate, 0), kAdd);
    EXPECT_EQ(latency(op, Operand::kChannel, 0), kAdd);
    EXPECT_EQ(latency(op, Operand::kSaved, 3), kAdd + kRequantise);
    EXPECT_EQ(latency(op, Operand::kTensor, 0), kAdd + kRequantise);
    EXPECT_EQ(latency(op, Operand::kTensor, 3), kAdd + kRequantise);
  }
  EXPECT_EQ(latency(StageOp::kMul, Operand::kTensor, 0), kRequantise);
  EXPECT_EQ(latency(StageOp::kMask, Operand::kTensor, 0), kClamp);
  EXPECT_EQ(latency(StageOp::kRope, Operand::kTensor, 0), kClamp + kAdd + kRequantise);
}

TEST(StageLatency, DoesNotDependOnTheSideOutput) {
  Stage relu = stage(StageOp::kRelu);
  const std::uint32_t latency = stage_latency(relu);
  relu.side = Reduction::kSumSquares;
  EXPECT_EQ(stage_latency(relu), latency);
  EXPECT_EQ(stage_interval(relu, 7), 7U);
}

}  // namespace
}  // namespace systole::hw

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "testbench/rtl/postop/chain_rtl.h"
#include "tests/rtl/drive/unit_test.h"
#include "tests/rtl/postop/pipeline_case.h"

namespace systole::testbench {
namespace {

std::string describe(const hw::Chain& chain) {
  std::string text;
  for (const hw::Stage& stage : chain.stages) {
    text += std::string(hw::stage_info(stage.op).name) + "." +
            std::string(hw::name_of(stage.operand)) + " ";
  }
  return text;
}

class PostopPipeline : public testing::TestWithParam<std::uint32_t> {
 protected:
  /// Runs a tile and compares values and cycles with hw/; false at a difference.
  static bool agree(ChainRtl& unit, const hw::Chain& chain, const PipelineTile& tile,
                    const BackPressure& pressure = {}) {
    std::vector<std::int32_t> actual(tile.elements());
    const RtlCycles cycles = unit.run(chain, tile.operands(), actual.data(), nullptr, pressure);
    EXPECT_EQ(actual, tile.expected());
    expect_contract(hw::chain_cycles(chain, tile.operands().rows, tile.operands().cols, GetParam())
                        .total(tile.operands().rows),
                    cycles);
    return !HasFailure();
  }

  const std::unique_ptr<ChainRtl> unit_ = make_postop_pipeline(GetParam(), RtlOptions{true, "", 7});
};

TEST_P(PostopPipeline, MatchesTheModelInEveryStageWithEveryOperand) {
  std::mt19937_64 random(21);
  std::size_t kinds = 0;
  for (const hw::StageOp op : kPipelineOps) {
    for (const hw::Operand operand : kPipelineOperands) {
      if (!hw::stage_info(op).takes(operand)) continue;
      hw::Stage stage = pipeline_stage(random, op, operand);
      if (!unit_->serves({{stage}, hw::DType::kS32})) continue;
      ++kinds;
      for (int tries = 0; tries < 60; ++tries) {
        stage = pipeline_stage(random, op, operand);
        const hw::Chain chain{{stage}, hw::DType::kS32};
        ASSERT_NO_THROW(hw::check_chain(chain, {}));
        ASSERT_TRUE(agree(*unit_, chain, PipelineTile(chain, 3, 1 + random() % 150, random)))
            << describe(chain) << tries;
      }
    }
  }
  EXPECT_EQ(kinds, 23U) << "stages and operands that the pipeline serves";
  EXPECT_FALSE(unit_->failed());
}

TEST_P(PostopPipeline, MatchesTheModelInEveryCorner) {
  const std::int32_t words[] = {
      kLowest, kLowest + 1, -32769, -32768, -3,    -2,    -1,           0,
      1,       2,           3,      5,      32767, 32768, kHighest - 1, kHighest};
  constexpr std::size_t kWords = std::size(words);
  std::vector<std::int32_t> x, y;
  for (const std::int32_t left : words) x.insert(x.end(), kWords, left);
  for (std::size_t i = 0; i < kWords; ++i) y.insert(y.end(), words, words + kWords);
  hw::ChainOperands operands;
  operands.accumulator = x.data();
  operands.accumulator_pitch = kWords;
  operands.tensors[0] = {y.data(), kWords * sizeof(std::int32_t)};
  operands.rows = operands.cols = kWords;
  std::vector<std::int32_t> expected(x.size()), actual(x.size());
  operands.out = expected.data();
  operands.out_pitch = kWords * sizeof(std::int32_t);
  for (const hw::StageOp op : {hw::StageOp::kAdd, hw::StageOp::kSub, hw::StageOp::kMul}) {
    const bool multiplies = op == hw::StageOp::kMul;
    for (const int rounding : {0, 1, 2}) {
      for (const std::int64_t shift : {0, 1, 2, 16, 31, 32, 61, 62, 63}) {
        for (const std::int64_t multiplier : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-3},
                                              std::int64_t{kHighest}, -std::int64_t{kHighest}}) {
          if (multiplies && multiplier != 0) continue;
          hw::Stage stage;
          stage.op = op;
          stage.operand = hw::Operand::kTensor;
          stage.tensor = hw::DType::kS32;
          stage.rounding = static_cast<hw::Rounding>(rounding);
          if (multiplies) {
            stage.imm = {shift, kLowest, kHighest};
          } else {
            stage.imm = {multiplier, shift, kLowest, kHighest};
          }
          const hw::Chain chain{{stage}, hw::DType::kS32};
          hw::apply_chain(chain, operands);
          unit_->run(chain, operands, actual.data());
          ASSERT_EQ(actual, expected) << describe(chain) << multiplier << ' ' << shift;
        }
      }
    }
  }
  EXPECT_FALSE(unit_->failed());
}

TEST_P(PostopPipeline, RunsAnyChainInTheCyclesOfItsContract) {
  std::mt19937_64 random(22);
  for (int i = 0; i < 600; ++i) {
    const hw::Chain chain = pipeline_chain(random, random() % 9);
    const PipelineTile tile(chain, 1 + random() % 4, 1 + random() % 70, random);
    const BackPressure pressure = i % 2 == 0 ? BackPressure{} : random_pressure(random);
    ASSERT_TRUE(agree(*unit_, chain, tile, pressure)) << i << ": " << describe(chain);
  }
  EXPECT_FALSE(unit_->failed());
}

// The first slot changes its latency between tiles, and must not give what it held before.
TEST_P(PostopPipeline, ForgetsTheChainBefore) {
  std::mt19937_64 random(23);
  for (const hw::StageOp before : kPipelineOps) {
    for (const hw::StageOp after : kPipelineOps) {
      for (const hw::StageOp op : {before, after}) {
        const hw::Operand operand =
            op == hw::StageOp::kMask ? hw::Operand::kRow : hw::Operand::kImmediate;
        const hw::Chain chain{{pipeline_stage(random, op, operand)}, hw::DType::kS32};
        ASSERT_TRUE(agree(*unit_, chain, PipelineTile(chain, 1, 40, random))) << describe(chain);
      }
    }
  }
  EXPECT_FALSE(unit_->failed());
}

TEST_P(PostopPipeline, IsHeldUpByEachStreamAlone) {
  std::mt19937_64 random(24);
  const hw::Chain chain{{pipeline_stage(random, hw::StageOp::kAdd, hw::Operand::kChannel),
                         pipeline_stage(random, hw::StageOp::kGelu, hw::Operand::kImmediate),
                         pipeline_stage(random, hw::StageOp::kMul, hw::Operand::kTensor)},
                        hw::DType::kS32};
  const PipelineTile tile(chain, 4, 200, random);
  std::vector<std::int32_t> out(tile.elements());
  for (const BackPressure pressure : {BackPressure{300, 0, 1}, BackPressure{0, 300, 1}}) {
    EXPECT_TRUE(agree(*unit_, chain, tile, pressure));
    EXPECT_GT(unit_->run(chain, tile.operands(), out.data(), nullptr, pressure).stalled, 10U);
  }
  EXPECT_FALSE(unit_->failed());
}

TEST_P(PostopPipeline, FastBuildHasTheSameValues) {
  std::mt19937_64 random(25);
  const std::unique_ptr<ChainRtl> fast = make_postop_pipeline(GetParam());
  for (int i = 0; i < 100; ++i) {
    const hw::Chain chain = pipeline_chain(random, 1 + random() % 8);
    ASSERT_TRUE(agree(*fast, chain, PipelineTile(chain, 2, 1 + random() % 100, random)))
        << describe(chain);
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, PostopPipeline, testing::ValuesIn(kLaneBuilds));

TEST(PostopPipelineSizes, OthersThanThoseBuiltAreRefused) {
  EXPECT_THROW((void)make_postop_pipeline(8), hw::InputError);
}

TEST(PostopPipelineStages, ThoseOutsideTheSubsetAreNotServed) {
  const std::unique_ptr<ChainRtl> pipeline = make_postop_pipeline(4);
  const auto serves = [&](std::vector<hw::Stage> stages) {
    return pipeline->serves({std::move(stages), hw::DType::kS8});
  };
  hw::Stage stage;
  EXPECT_TRUE(serves({stage}));
  stage.side = hw::Reduction::kRowMax;
  EXPECT_FALSE(serves({stage}));
  stage.side = hw::Reduction::kNone;
  stage.op = hw::StageOp::kMask;
  EXPECT_FALSE(serves({stage})) << "a causal mask";
  stage.operand = hw::Operand::kRow;
  EXPECT_TRUE(serves({stage}));
  stage.op = hw::StageOp::kDivideRowSum;
  EXPECT_FALSE(serves({stage}));
  EXPECT_TRUE(serves(std::vector<hw::Stage>(8)));
  EXPECT_FALSE(serves(std::vector<hw::Stage>(9)));
}

}  // namespace
}  // namespace systole::testbench

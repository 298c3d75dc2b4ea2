#include <gtest/gtest.h>

#include <cmath>

#include "hw/number/softmax_mode.h"
#include "model/graph/graph_builder.h"
#include "model/graph/reference.h"
#include "model/graph/stages.h"
#include "model/seeded/shapes.h"

/// What the reference gives a stage to read and where it stores what the stage leaves. The stages
/// themselves: tests/hw/postop/plain_stage_test.cpp.
namespace systole::model {
namespace {

/// A graph of one stage on an input of two rows.
class OneStage : public ::testing::Test {
 protected:
  std::vector<std::int32_t> run(const std::vector<std::int32_t>& in, const hw::Stage& stage,
                                hw::DType out, StageOperands operands = {}) {
    const auto cols = static_cast<std::uint32_t>(in.size() / 2);
    GraphBuilder builder("one stage");
    const View input = add(builder, "in", cols, hw::DType::kS32);
    const bool has_tensor = stage.operand == hw::Operand::kTensor;
    if (has_tensor) operands.tensor = add(builder, "t", cols, stage.tensor);
    const std::uint32_t reads = hw::statistics_read(stage);
    const std::uint32_t writes = hw::statistics_written(stage);
    if (const std::uint32_t words = std::max(reads, writes); words != 0) {
      operands.statistics = add(builder, "statistics", words, hw::DType::kS32).tensor;
    }
    if (stage.op == hw::StageOp::kTranspose) {
      Tensor turned;
      turned.name = "out";
      turned.rows = cols;
      turned.cols = 2;
      turned.type = out;
      const View view = builder.whole(builder.add_tensor(turned));
      builder.stage_to("out", input, stage, view, std::move(operands));
    } else {
      builder.stage("out", input, stage, out, std::move(operands));
    }
    const Graph graph = std::move(builder).take();
    Reference reference(graph);
    reference.set_input("in", in);
    if (has_tensor) reference.set_input("t", tensor_);
    if (reads != 0) reference.set_input("statistics", statistics_);
    reference.run();
    if (writes != 0) statistics_ = reference.values("statistics");
    return reference.values("out");
  }

  std::vector<std::int32_t> tensor_ = std::vector<std::int32_t>(6, 0);
  std::vector<std::int32_t> statistics_;

 private:
  static View add(GraphBuilder& builder, const std::string& name, std::uint32_t cols,
                  hw::DType type) {
    Tensor tensor;
    tensor.name = name;
    tensor.rows = 2;
    tensor.cols = cols;
    tensor.type = type;
    tensor.kind = Tensor::Kind::kInput;
    return builder.whole(builder.add_tensor(tensor));
  }
};

using Values = std::vector<std::int32_t>;

hw::Stage stage_of(hw::StageOp op, hw::Operand operand,
                   std::array<std::int64_t, hw::kStageImmediates> imm = {}) {
  hw::Stage stage = hw::default_stage(op);
  stage.operand = operand;
  stage.imm = imm;
  return stage;
}

hw::Stage with_side(hw::Reduction side) {
  hw::Stage relu = hw::default_stage(hw::StageOp::kRelu);
  relu.side = side;
  return relu;
}

TEST_F(OneStage, Bias) {
  EXPECT_EQ(run({1, 2, 3, 4, 5, 6}, bias_stage(), hw::DType::kS32, {{10, -20, 0}, {}}),
            (Values{11, -18, 3, 14, -15, 6}));
  EXPECT_EQ(
      run({2147483647, -2147483647, 0, 0, 0, 0}, bias_stage(), hw::DType::kS32, {{1, -2, 0}, {}}),
      (Values{2147483647, -2147483648, 0, 1, -2, 0}));
}

TEST_F(OneStage, RequantisePerChannel) {
  EXPECT_EQ(run({8, 8, 8, -8, -8, -8}, channel_requantise_stage(8, hw::Rounding::kHalfUp),
                hw::DType::kS8, {{1, 3, 5, 0, 1, 3}, {}}),
            (Values{8, 12, 5, -8, -12, -5}));
}

TEST_F(OneStage, AddTensor) {
  tensor_ = {100, -100, 7, 1, 2, 3};
  EXPECT_EQ(run({1, 1, 1, -1, -1, -1},
                add_tensor_stage(hw::DType::kS16, {}, 31, hw::Rounding::kHalfUp), hw::DType::kS32),
            (Values{101, -99, 8, 0, 1, 2}));
  EXPECT_EQ(
      run({1, 1, 1, -1, -1, -1}, add_tensor_stage(hw::DType::kS8, {1, 1}, 6, hw::Rounding::kHalfUp),
          hw::DType::kS32),
      (Values{32, -30, 5, 0, 0, 1}));
}

TEST_F(OneStage, SoftmaxLeavesItsRowSums) {
  // A score step is 1/256; the largest of a row becomes 255.
  const hw::Dyadic exp_to_code{46858, 25};
  const Values out =
      run({0, 0, -100000, 256, 0, 256},
          softmax_stage({}, {1, 0}, hw::kScoreFractionBits, exp_to_code), hw::DType::kU8);
  EXPECT_EQ(Values(out.begin(), out.begin() + 3), (Values{255, 255, 0}));
  EXPECT_EQ(out[3], 255);
  EXPECT_NEAR(out[4], 255 * std::exp(-1.0), 1.0);
  EXPECT_EQ(statistics_, (Values{510, 510 + out[4]}));
}

TEST_F(OneStage, DivideRowSumAddsEightFractionBits) {
  statistics_ = {255, 2 * 255};
  EXPECT_EQ(
      run({255, 255 * 100, -255 * 100, 255, 255 * 100, 0}, divide_row_sum_stage(), hw::DType::kS32),
      (Values{256, 25600, -25600, 128, 12800, 0}));
}

TEST_F(OneStage, ResultThatDoesNotFitIsAnError) {
  EXPECT_THROW(run({128, 0, 0, 0, 0, 0}, clamp_stage(9), hw::DType::kS8), std::overflow_error);
}

TEST_F(OneStage, MaskByATensorOrByPosition) {
  tensor_ = {1, 0, -1, 0, 0, 7};
  hw::Stage stage = stage_of(hw::StageOp::kMask, hw::Operand::kTensor, {-100});
  stage.tensor = hw::DType::kS8;
  EXPECT_EQ(run({1, 2, 3, 4, 5, 6}, stage, hw::DType::kS8), (Values{1, -100, 3, -100, -100, 6}));
  stage = stage_of(hw::StageOp::kMask, hw::Operand::kImmediate, {-100});
  EXPECT_EQ(run({1, 2, 3, 4, 5, 6}, stage, hw::DType::kS8, {{}, {}, kNoTensor, 1}),
            (Values{1, -100, -100, 4, 5, -100}));
  EXPECT_EQ(run({1, 2, 3, 4, 5, 6}, stage, hw::DType::kS8), (Values{1, 2, 3, 4, 5, 6}));
}

TEST_F(OneStage, RmsNorm) {
  // Roots 4 and 2^16: 2 of 4 is a half, and of 64 that is 32. No word but the squares counts.
  statistics_ = {99, 99, 16, 0, -5, 7, 0, 1};
  EXPECT_EQ(run({2, -1, 4, 32768, -65536, 0},
                stage_of(hw::StageOp::kRmsNormApply, hw::Operand::kChannel, {15, 15, -127, 127}),
                hw::DType::kS8, {{64, 64, 64}, {}}),
            (Values{32, -16, 64, 32, -64, 0}));
}

TEST_F(OneStage, Transpose) {
  EXPECT_EQ(run({1, 2, 3, 4, 5, 6}, hw::default_stage(hw::StageOp::kTranspose), hw::DType::kS8),
            (Values{1, 4, 2, 5, 3, 6}));
}

TEST_F(OneStage, SideOutputs) {
  const Values in = {-5, 7, 3, -1, -2, -3};
  (void)run(in, with_side(hw::Reduction::kRowMax), hw::DType::kS32);
  EXPECT_EQ(statistics_, (Values{7, 0}));
  (void)run(in, with_side(hw::Reduction::kSumSquares), hw::DType::kS32);
  EXPECT_EQ(statistics_, (Values{10, 0, 58, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace systole::model

#include <gtest/gtest.h>

#include <cmath>

#include "hw/number/softmax_mode.h"
#include "model/graph/graph_builder.h"
#include "model/graph/reference.h"
#include "model/graph/stages.h"
#include "model/seeded/shapes.h"

/// Every stage of the reference on values that a reader can compute.
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
  hw::Stage stage = hw::usual_stage(op);
  stage.operand = operand;
  stage.imm = imm;
  return stage;
}

hw::Stage with_side(hw::Reduction side) {
  hw::Stage relu = hw::usual_stage(hw::StageOp::kRelu);
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

TEST_F(OneStage, Requantise) {
  // 3/4: halves round up, and 8 bits clamp at +-127.
  EXPECT_EQ(run({2, -2, 10, -10, 1000, -1000}, requantise_stage({3, 2}, 8, hw::Rounding::kHalfUp),
                hw::DType::kS8),
            (Values{2, -1, 8, -7, 127, -127}));
  EXPECT_EQ(run({2, -2, 10, -10, 1000, -1000}, requantise_stage({3, 2}, 8, hw::Rounding::kHalfEven),
                hw::DType::kS8),
            (Values{2, -2, 8, -8, 127, -127}));
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

TEST_F(OneStage, ClampAndRelu) {
  EXPECT_EQ(run({7, 8, -7, -8, 0, 100}, clamp_stage(4), hw::DType::kS8),
            (Values{7, 7, -7, -7, 0, 7}));
  hw::Stage relu;
  relu.op = hw::StageOp::kRelu;
  EXPECT_EQ(run({7, -1, 0, -2147483647, 1, 2}, relu, hw::DType::kS32), (Values{7, 0, 0, 0, 1, 2}));
}

TEST_F(OneStage, GeluIsNearTheRealOne) {
  const double scale = 4.0 / 127.0;
  const hw::GeluConstants constants = hw::make_gelu_constants(scale, scale);
  const Values in = {127, 64, 32, 0, -24, -127};
  const Values out = run(in, gelu_stage(constants, 8), hw::DType::kS8);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double x = in[i] * scale;
    EXPECT_NEAR(out[i] * scale, 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))), 0.03);
  }
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

TEST_F(OneStage, LayerNorm) {
  // Deviations -1, 0, 1 over the root of their squares' sum: -0.5, 0, 0.5 for a third input.
  const Values out = run({-100, 0, 100, 5, 5, 5}, layer_norm_stage(15, 15, 8), hw::DType::kS8,
                         {{64, 64, 64, 0, 32768, -32768}, {}});
  EXPECT_EQ(out[0], -45);
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[2], 44);
  EXPECT_EQ(Values(out.begin() + 3, out.end()), (Values{0, 1, -1}));
}

TEST_F(OneStage, ResultThatDoesNotFitIsAnError) {
  EXPECT_THROW(run({128, 0, 0, 0, 0, 0}, clamp_stage(9), hw::DType::kS8), std::overflow_error);
}

TEST_F(OneStage, SubtractAValueOrARowOfItsOwn) {
  EXPECT_EQ(
      run({1, 2, 3, 4, -2147483646, 6},
          stage_of(hw::StageOp::kSub, hw::Operand::kImmediate, {0, 0, 0, 0, 5}), hw::DType::kS32),
      (Values{-4, -3, -2, -1, -2147483648, 1}));
  // 3/4 of a row's own word, rounded half up: 8 and -7, of which at most 7 are left.
  statistics_ = {10, -10};
  EXPECT_EQ(run({0, 100, -1, 0, 100, -1},
                stage_of(hw::StageOp::kSub, hw::Operand::kRow, {3, 2, -7, 7}), hw::DType::kS32),
            (Values{-7, 93, -8, 7, 107, 6}));
}

TEST_F(OneStage, Multiply) {
  tensor_ = {2, -3, 5, 1, 1, -128};
  hw::Stage stage = stage_of(hw::StageOp::kMul, hw::Operand::kTensor, {1, -50, 50});
  stage.tensor = hw::DType::kS8;
  stage.rounding = hw::Rounding::kHalfEven;
  EXPECT_EQ(run({3, 3, -1, 7, 5, 1}, stage, hw::DType::kS8), (Values{3, -4, -2, 4, 2, -50}));
  // Channels; and 64 bits of product before the shift.
  stage = stage_of(hw::StageOp::kMul, hw::Operand::kChannel, {31, -2147483648, 2147483647});
  EXPECT_EQ(run({2147483647, 1, -2147483648, 4, -1, 4}, stage, hw::DType::kS32,
                {{1 << 30, 1 << 30, 1 << 30}, {}}),
            (Values{1073741824, 1, -1073741824, 2, 0, 2}));
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

TEST_F(OneStage, Exponential) {
  // 256 steps are 1. Minus 1 is one halving and (-256 + 177) steps more:
  // ((-79 + 346)^2 + 62885) / 2.
  EXPECT_EQ(run({0, 5, -256, -100000, 2147483647, -177},
                stage_of(hw::StageOp::kExp, hw::Operand::kImmediate, {1, 0, 8}), hw::DType::kS32),
            (Values{182601, 182601, 67087, 0, 182601, 182601 / 2}));
}

TEST_F(OneStage, Silu) {
  // With e of minus 1 as above the sigmoids of +-1 are 23963 and 8804 of 2^15.
  EXPECT_EQ(
      run({0, 256, -256, 10000, -10000, 40000},
          stage_of(hw::StageOp::kSilu, hw::Operand::kImmediate, {1, 0, 8, 1, 15, -32768, 32767}),
          hw::DType::kS16),
      (Values{0, 187, -69, 10000, 0, 32767}));
}

TEST_F(OneStage, LayerNormOfRowsWhoseSumsAreKnown) {
  // The rows of the test above; of the second row the other half stands elsewhere.
  statistics_ = {0, 0, 20000, 0, 30, 0, 150, 0};
  hw::Stage stage =
      stage_of(hw::StageOp::kLayerNormApply, hw::Operand::kChannel, {15, 15, -127, 127, 6});
  const StageOperands weights{{64, 64, 64, 0, 32768, -32768}, {}};
  EXPECT_EQ(run({-100, 0, 100, 5, 5, 5}, stage, hw::DType::kS8, weights),
            (Values{-45, 1, 44, 0, 1, -1}));
}

TEST_F(OneStage, RmsNorm) {
  // Roots 4 and 2^16: 2 of 4 is a half, and of 64 that is 32. No word but the squares counts.
  statistics_ = {99, 99, 16, 0, -5, 7, 0, 1};
  EXPECT_EQ(run({2, -1, 4, 32768, -65536, 0},
                stage_of(hw::StageOp::kRmsNormApply, hw::Operand::kChannel, {15, 15, -127, 127}),
                hw::DType::kS8, {{64, 64, 64}, {}}),
            (Values{32, -16, 64, 32, -64, 0}));
}

TEST_F(OneStage, Rope) {
  // Half a turn of the first pair, a quarter of the second; an eighth rounds.
  tensor_ = {-2, 0, 0, 2, 1, 1, 2, 0};
  hw::Stage stage = stage_of(hw::StageOp::kRope, hw::Operand::kTensor, {1, -9000000, 9000000});
  stage.tensor = hw::DType::kS16;
  EXPECT_EQ(run({3, -4, 5, 6, 10, 3, 16777216, -16777216}, stage, hw::DType::kS32),
            (Values{-3, 4, -6, 5, 4, 7, 8388607, -8388608}));
}

TEST_F(OneStage, Transpose) {
  EXPECT_EQ(run({1, 2, 3, 4, 5, 6}, hw::usual_stage(hw::StageOp::kTranspose), hw::DType::kS8),
            (Values{1, 4, 2, 5, 3, 6}));
}

TEST_F(OneStage, SideOutputs) {
  const Values in = {-5, 7, 3, -1, -2, -3};
  EXPECT_EQ(run(in, with_side(hw::Reduction::kRowMax), hw::DType::kS32),
            (Values{0, 7, 3, 0, 0, 0}));
  EXPECT_EQ(statistics_, (Values{7, 0}));
  (void)run(in, with_side(hw::Reduction::kRowSum), hw::DType::kS32);
  EXPECT_EQ(statistics_, (Values{10, 0}));
  (void)run(in, with_side(hw::Reduction::kSumSquares), hw::DType::kS32);
  EXPECT_EQ(statistics_, (Values{10, 0, 58, 0, 0, 0, 0, 0}));
  hw::Stage stage = stage_of(hw::StageOp::kAdd, hw::Operand::kImmediate);
  stage.side = hw::Reduction::kRowMax;
  (void)run(in, stage, hw::DType::kS32);
  EXPECT_EQ(statistics_, (Values{7, -1}));
  // The sum wraps at 32 bits; the inputs of the squares saturate at 24, and both words count.
  const Values wide = {2147483647, 2147483647, 2, -2147483648, 0, -1};
  stage.side = hw::Reduction::kRowSum;
  (void)run(wide, stage, hw::DType::kS32);
  EXPECT_EQ(statistics_, (Values{0, 2147483647}));
  stage.side = hw::Reduction::kSumSquares;
  (void)run(wide, stage, hw::DType::kS32);
  // 2 (2^23 - 1) + 2 and 2 (2^23 - 1)^2 + 4; -2^23 - 1 and 2^46 + 1.
  EXPECT_EQ(statistics_, (Values{16777216, 0, -33554432 + 6, 32767, -8388609, -1, 1, 16384}));
}

}  // namespace
}  // namespace systole::model

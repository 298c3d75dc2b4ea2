#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "Vpostop_pipeline_4_checked.h"
#include "hw/postop/microcode.h"
#include "hw/postop/postop.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/drive/unit_test.h"

/// rtl/postop/systole_postop_pipeline.sv pin by pin: micro-code that it refuses, and its
/// assertions.
namespace systole::testbench {
namespace {

class PostopPipelineProtocol : public testing::Test {
 protected:
  PostopPipelineProtocol() {
    dut_->stages_i = 0;
    dut_->code_write_i = 0;
    dut_->valid_i = 0;
    dut_->ready_i = 1;
    dut_->mask_i = 0xf;
    dut_->operand_valid_i = 0;
    dut_.reset();
  }

  void write_word(std::size_t slot, std::size_t word, std::uint64_t code) {
    dut_->code_write_i = 1;
    dut_->code_slot_i = static_cast<CData>(slot);
    dut_->code_word_i = static_cast<CData>(word);
    dut_->code_i = code;
    dut_.tick();
    dut_->code_write_i = 0;
  }
  void write(std::size_t slot, const hw::Stage& stage) {
    const hw::Microcode code = hw::encode_stage(stage);
    for (std::size_t word = 0; word < code.size(); ++word) write_word(slot, word, code[word]);
  }
  /// A slot with this stage, the only one in use, refuses it.
  bool refuses(std::size_t slot, const hw::Stage& stage) {
    for (std::size_t before = 0; before < slot; ++before) write(before, relu());
    write(slot, stage);
    dut_->stages_i = static_cast<CData>(slot + 1);
    dut_.settle();
    EXPECT_EQ(dut_->ready_o, !dut_->error_o) << "takes beats when it can do them";
    return dut_->error_o;
  }
  bool refuses(const hw::Stage& stage) { return refuses(0, stage); }

  static hw::Stage stage_of(hw::StageOp op, hw::Operand operand,
                            const std::vector<std::int64_t>& immediates) {
    hw::Stage stage;
    stage.op = op;
    stage.operand = operand;
    std::copy(immediates.begin(), immediates.end(), stage.imm.begin());
    return stage;
  }
  static hw::Stage relu() { return stage_of(hw::StageOp::kRelu, hw::Operand::kImmediate, {}); }

  VerilatedDut<Vpostop_pipeline_4_checked> dut_{RtlOptions{true, "", 3}};
};

constexpr std::int64_t kTerm = std::int64_t{1} << 40;
constexpr std::int64_t kAbove = std::int64_t{kHighest} + 1;
constexpr std::int64_t kBelow = std::int64_t{kLowest} - 1;

/// A stage, and an immediate of it with the least and the greatest value that it may have.
struct Bound {
  hw::StageOp op;
  std::size_t imm;
  std::int64_t lowest, highest;
};

TEST_F(PostopPipelineProtocol, RefusesImmediatesOutOfTheirRanges) {
  using Op = hw::StageOp;
  const auto legal = [](Op op) {
    switch (op) {
      case Op::kAdd:
      case Op::kSub:
        return stage_of(op, hw::Operand::kImmediate, {3, 4, -5, 6, 7});
      case Op::kMul:
        return stage_of(op, hw::Operand::kImmediate, {4, -5, 6, 7});
      case Op::kRequantise:
        return stage_of(op, hw::Operand::kImmediate, {3, 4, -5, 6});
      case Op::kClamp:
        return stage_of(op, hw::Operand::kImmediate, {-5, 6});
      case Op::kMask:
        return stage_of(op, hw::Operand::kTensor, {3});
      default:
        return stage_of(Op::kGelu, hw::Operand::kImmediate, {-100, -200, -200, -3, 4, -5, 6});
    }
  };
  const Bound bounds[] = {{Op::kAdd, 0, kLowest, kHighest},
                          {Op::kAdd, 1, 0, 63},
                          {Op::kAdd, 2, kLowest, 6},
                          {Op::kAdd, 3, -5, kHighest},
                          {Op::kAdd, 4, kLowest, kHighest},
                          {Op::kSub, 1, 0, 63},
                          {Op::kMul, 0, 0, 63},
                          {Op::kMul, 1, kLowest, 6},
                          {Op::kMul, 2, -5, kHighest},
                          {Op::kMul, 3, kLowest, kHighest},
                          {Op::kRequantise, 0, kLowest, kHighest},
                          {Op::kRequantise, 1, 0, 63},
                          {Op::kRequantise, 2, kLowest, 6},
                          {Op::kRequantise, 3, -5, kHighest},
                          {Op::kClamp, 0, kLowest, 6},
                          {Op::kClamp, 1, -5, kHighest},
                          {Op::kMask, 0, kLowest, kHighest},
                          {Op::kGelu, 0, -65536, 0},
                          {Op::kGelu, 1, -kTerm, kTerm},
                          {Op::kGelu, 2, -kTerm, kTerm},
                          {Op::kGelu, 3, kLowest, kHighest},
                          {Op::kGelu, 4, 0, 63},
                          {Op::kGelu, 5, kLowest, 6},
                          {Op::kGelu, 6, -5, kHighest}};
  for (const Bound& bound : bounds) {
    const auto with = [&](std::int64_t value) {
      hw::Stage stage = legal(bound.op);
      stage.imm[bound.imm] = value;
      return stage;
    };
    const auto name = hw::stage_info(bound.op).imm[bound.imm];
    EXPECT_FALSE(refuses(with(bound.lowest))) << name;
    EXPECT_FALSE(refuses(with(bound.highest))) << name;
    EXPECT_TRUE(refuses(with(bound.lowest - 1))) << name;
    EXPECT_TRUE(refuses(with(bound.highest + 1))) << name;
  }
  // Far outside, where the low bits look legal.
  EXPECT_TRUE(refuses(stage_of(Op::kAdd, hw::Operand::kImmediate, {3, 64 + 4, -5, 6})));
  EXPECT_TRUE(refuses(stage_of(Op::kMul, hw::Operand::kImmediate, {std::int64_t{1} << 32, 0, 1})));
  EXPECT_TRUE(refuses(stage_of(Op::kClamp, hw::Operand::kImmediate, {kBelow, kAbove})));
  // What an unscaled sum does not use may be anything.
  EXPECT_FALSE(refuses(stage_of(Op::kAdd, hw::Operand::kImmediate, {0, 64, 6, -5})));
  EXPECT_FALSE(dut_.failed()) << "micro-code by itself is no error of the pipeline's user";
}

TEST_F(PostopPipelineProtocol, RefusesWhatItsSlotsCannotDo) {
  using Op = hw::StageOp;
  // Whatever the operand, a stage is refused or check_chain() accepts it.
  std::size_t served = 0;
  for (std::uint8_t op = 0; op < 20; ++op) {
    for (std::uint8_t operand = 0; operand < 7; ++operand) {
      hw::Stage stage;
      stage.op = static_cast<Op>(op);
      stage.operand = static_cast<hw::Operand>(operand);
      if (refuses(stage)) continue;
      EXPECT_NO_THROW(hw::check_chain({{stage}, hw::DType::kS32}, {})) << int{op};
      ++served;
    }
  }
  EXPECT_EQ(served, 24U);

  hw::Stage stage = relu();
  stage.side = hw::Reduction::kRowSum;
  EXPECT_TRUE(refuses(stage));
  stage = relu();
  stage.rounding = static_cast<hw::Rounding>(3);
  EXPECT_TRUE(refuses(stage));
  stage.rounding = static_cast<hw::Rounding>(4);
  EXPECT_TRUE(refuses(stage)) << "the low bits alone would be legal";

  stage = relu();
  stage.op = Op::kSoftmax;
  for (std::size_t slot = 0; slot < 8; ++slot) {
    EXPECT_TRUE(refuses(slot, stage)) << slot;
    dut_->stages_i = static_cast<CData>(slot);
    dut_.settle();
    EXPECT_FALSE(dut_->error_o) << "slot " << slot << " is not in use";
  }
  write(7, relu());
  dut_->stages_i = 8;
  dut_.settle();
  EXPECT_FALSE(dut_->error_o);
  dut_->stages_i = 9;
  dut_.settle();
  EXPECT_TRUE(dut_->error_o) << "there are eight slots";
  EXPECT_FALSE(dut_.failed());
}

TEST_F(PostopPipelineProtocol, AssertionFiresForABeatIntoMicroCodeThatIsRefused) {
  const ExpectedAssertions expected({"MicroCodeLegal_A"});
  hw::Stage stage;
  stage.op = hw::StageOp::kTranspose;
  EXPECT_TRUE(refuses(stage));
  dut_.tick();
  EXPECT_FALSE(dut_.failed());
  dut_->valid_i = 1;
  for (int i = 0; i < 20; ++i) {
    dut_.settle();
    EXPECT_EQ(dut_->valid_o, 0);
    dut_.tick();
  }
  EXPECT_TRUE(dut_.failed());
}

TEST_F(PostopPipelineProtocol, AssertionFiresWhenMicroCodeChangesUnderABeat) {
  ASSERT_FALSE(refuses(relu()));
  dut_->valid_i = 1;
  dut_.tick();
  dut_->valid_i = 0;
  dut_->ready_i = 0;
  expect_assertion("EmptyWhenWritten_A", dut_, 1, [this] { write_word(0, 1, 5); });
}

TEST_F(PostopPipelineProtocol, AssertionFiresWhenTheChainChangesUnderABeat) {
  ASSERT_FALSE(refuses(1, relu()));
  dut_->ready_i = 0;
  dut_->valid_i = 1;
  dut_.tick();
  dut_->valid_i = 0;
  expect_assertion("StagesHeld_A", dut_, 1, [this] { dut_->stages_i = 1; });
}

TEST_F(PostopPipelineProtocol, AssertionFiresForAWordThatThereIsNot) {
  write_word(0, 8, 0);
  expect_assertion("WordKnown_A", dut_, 0, [this] { write_word(0, 9, 0); });
}

TEST_F(PostopPipelineProtocol, AssertionFiresWhenABeatIsWithdrawn) {
  ASSERT_FALSE(refuses(relu()));
  dut_->ready_i = 0;
  dut_->valid_i = 1;
  expect_assertion("InputHeld_A", dut_, 10, [this] { dut_->valid_i = 0; });
}

TEST_F(PostopPipelineProtocol, AssertionFiresWhenAnOperandIsWithdrawn) {
  ASSERT_FALSE(refuses(1, stage_of(hw::StageOp::kAdd, hw::Operand::kTensor, {})));
  dut_->ready_i = 0;
  dut_->operand_valid_i = 2;
  dut_->valid_i = 1;
  dut_.tick();
  dut_->valid_i = 0;  // this beat has its operand, and stays at the output
  expect_assertion("OperandHeld_A", dut_, 10, [this] { dut_->operand_valid_i = 0; });
}

// A beat and its operand go in together. A beat that waits holds those before it.
TEST_F(PostopPipelineProtocol, WaitsForOperands) {
  ASSERT_FALSE(refuses(1, stage_of(hw::StageOp::kAdd, hw::Operand::kChannel, {})));
  write(0, stage_of(hw::StageOp::kAdd, hw::Operand::kRow, {}));
  dut_->valid_i = 1;
  dut_.settle();
  EXPECT_EQ(dut_->operand_ready_o, 1);
  EXPECT_FALSE(dut_->ready_o);
  dut_.tick();
  dut_->operand_valid_i = 1;
  dut_.settle();
  EXPECT_TRUE(dut_->ready_o);
  dut_.tick();
  dut_->valid_i = 0;
  dut_->operand_valid_i = 0;
  dut_.settle();
  EXPECT_FALSE(dut_->ready_o) << "the beat waits at slot 1";
  EXPECT_EQ(dut_->operand_ready_o, 2);
  dut_.tick();
  EXPECT_FALSE(dut_->ready_o);
  EXPECT_FALSE(dut_->valid_o);
  dut_->operand_valid_i = 2;
  dut_.settle();
  EXPECT_EQ(dut_->operand_ready_o, 2);
  dut_.tick();
  dut_->operand_valid_i = 0;
  dut_.settle();
  EXPECT_TRUE(dut_->valid_o);
  EXPECT_FALSE(dut_.failed());
}

TEST_F(PostopPipelineProtocol, MovesOnBehindALateOperand) {
  ASSERT_FALSE(refuses(1, stage_of(hw::StageOp::kAdd, hw::Operand::kChannel, {})));
  write(0, stage_of(hw::StageOp::kAdd, hw::Operand::kRow, {}));
  dut_->valid_i = 1;
  dut_->operand_valid_i = 3;
  dut_.tick();
  dut_.tick();
  dut_->valid_i = 0;
  dut_->operand_valid_i = 0;
  dut_.settle();
  EXPECT_TRUE(dut_->valid_o) << "the first beat";
  EXPECT_EQ(dut_->operand_ready_o, 2) << "the second waits at slot 1";
  dut_.tick();
  EXPECT_FALSE(dut_->valid_o) << "the first has left, once";
  EXPECT_EQ(dut_->operand_ready_o, 2);
  dut_->operand_valid_i = 2;
  dut_.tick();
  dut_->operand_valid_i = 0;
  dut_.settle();
  EXPECT_TRUE(dut_->valid_o) << "the second";
  EXPECT_FALSE(dut_.failed());
}

}  // namespace
}  // namespace systole::testbench

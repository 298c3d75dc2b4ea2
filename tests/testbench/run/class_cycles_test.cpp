#include "testbench/run/class_cycles.h"

#include <gtest/gtest.h>

#include <vector>

#include "model/graph/stages.h"

namespace systole::testbench {
namespace {

using hw::Opcode;
using hw::StageOp;
using tlm_model::CommandTrace;

hw::Chain chain_of(std::vector<StageOp> ops) {
  hw::Chain chain;
  for (const StageOp op : ops) {
    chain.stages.push_back(hw::default_stage(op));
  }
  return chain;
}

TEST(ClassCycles, AChainHasTheClassOfItsDearestStage) {
  const hw::Stage residual =
      model::add_tensor_stage(hw::DType::kS16, {}, 16, hw::Rounding::kHalfUp);
  hw::Chain chain = chain_of({StageOp::kRequantise});
  chain.stages.insert(chain.stages.begin(), model::bias_stage());
  EXPECT_EQ(class_of(chain), TimeClass::kMatmul);
  chain.stages.push_back(residual);
  EXPECT_EQ(class_of(chain), TimeClass::kResidual);
  chain.stages.push_back(hw::default_stage(StageOp::kLayerNorm));
  EXPECT_EQ(class_of(chain), TimeClass::kLayerNorm);
  EXPECT_EQ(class_of(chain_of({StageOp::kRequantise, StageOp::kGelu})), TimeClass::kGelu);
  EXPECT_EQ(class_of(chain_of({StageOp::kRequantise, StageOp::kSoftmax})), TimeClass::kSoftmax);
}

/// Two operators: a matmul whose softmax stores, then a LayerNorm of what stands in memory.
class Shares : public testing::Test {
 protected:
  Shares() {
    program_.chains = {chain_of({StageOp::kSoftmax}), chain_of({StageOp::kLayerNorm})};
    program_.operators.resize(2);
  }
  void add(Opcode opcode, std::uint32_t op, std::uint64_t started, std::uint64_t released,
           std::uint64_t completed) {
    hw::Command command;
    command.opcode = opcode;
    command.op = op;
    command.chain = static_cast<std::uint16_t>(op);
    CommandTrace trace;
    trace.index = static_cast<std::uint32_t>(traces_.size());
    trace.unit = hw::unit_of(opcode);
    trace.opcode = opcode;
    trace.op = op;
    trace.dispatched = started;
    trace.started = started;
    trace.released = released;
    trace.completed = completed;
    program_.commands.push_back(command);
    traces_.push_back(trace);
  }

  hw::Program program_;
  std::vector<CommandTrace> traces_;
};

TEST_F(Shares, EveryCycleGoesToTheUnitsAtWorkOrToWhatIsWaitedFor) {
  add(Opcode::kLoad, 0, 10, 20, 30);                // 10 to 30: waiting for the matmul
  add(Opcode::kMatmul, 0, 30, 70, 75);              // 30 to 50: array alone
  add(Opcode::kStore, 0, 50, 100, 110);             // 50 to 70: both; 70 to 100: softmax alone
  add(Opcode::kLoadAccumulator, 1, 110, 130, 140);  // 100 to 110: end of the matmul's operator,
  add(Opcode::kStore, 1, 140, 160, 170);  // 110 to 140: waiting for it; 160 to 170: its last write
  const ClassCycles shared = share_by_class(program_, traces_);
  EXPECT_EQ(shared.of(TimeClass::kMatmul), 20 + 20 + 10 + 10);
  EXPECT_EQ(shared.of(TimeClass::kSoftmax), 10 + 30);
  EXPECT_EQ(shared.of(TimeClass::kLayerNorm), 30 + 20 + 10);
  EXPECT_EQ(shared.total(), 170 - 10);
  EXPECT_DOUBLE_EQ(shared.share(TimeClass::kSoftmax), 40.0 / 160);
}

TEST_F(Shares, ACommandThatBeginsWhereTheOneInFrontEndsIsAtWork) {
  add(Opcode::kMatmul, 0, 0, 10, 10);
  add(Opcode::kMatmul, 0, 10, 10, 10);
  add(Opcode::kMatmul, 0, 10, 20, 20);
  add(Opcode::kStore, 0, 20, 25, 25);
  add(Opcode::kStore, 0, 25, 30, 30);
  const ClassCycles shared = share_by_class(program_, traces_);
  EXPECT_EQ(shared.of(TimeClass::kMatmul), 20);
  EXPECT_EQ(shared.of(TimeClass::kSoftmax), 10);
}

TEST_F(Shares, NothingIsSharedOfAnEmptyRun) {
  EXPECT_EQ(share_by_class({}, {}).total(), 0);
  EXPECT_EQ(share_by_class({}, {}).share(TimeClass::kMatmul), 0);
}

}  // namespace
}  // namespace systole::testbench

#include "tlm/core/load_unit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "hw/postop/postop.h"
#include "support/network/even_machine.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"

namespace systole::tlm_model {
namespace {

using test::CoreRig;
using test::even_machine;
using test::kBank;
using test::load_command;
using test::matmul_command;
using test::store_command;

constexpr std::uint32_t kRowBytes = 16;

/// Two stages that need no parameters.
hw::Chain stages_in_front(hw::DType out) {
  hw::Stage half = hw::default_stage(hw::StageOp::kRequantise);
  half.imm = {1, 1, -128, 127};
  return {{hw::default_stage(hw::StageOp::kRelu), half}, out};
}

/// Rows, lanes and nanoseconds of the memory controller.
using StagedCase = std::tuple<std::uint32_t, std::uint32_t, unsigned>;

class StagedLoadTest : public test::SystemCTest, public ::testing::WithParamInterface<StagedCase> {
 protected:
  StagedLoadTest() : machine_(even_machine(std::get<2>(GetParam()))) {
    machine_.preop.lanes = std::get<1>(GetParam());
    latency_ = test::latency_on(machine_, kRowBytes).read;
    test::fresh_kernel();
  }

  /// Cycles from the start of a load until its last row has gone through the stages: a request is
  /// issued every cycle, and the stages take a row when it is there and they are free.
  [[nodiscard]] std::uint64_t expected(const hw::Chain& chain) const {
    const std::uint32_t rows = std::get<0>(GetParam());
    const hw::ChainCycles cycles = hw::chain_cycles(chain, rows, kRowBytes, machine_.preop.lanes);
    std::uint64_t free = 0;
    for (std::uint32_t row = 0; row < rows; ++row) {
      free = std::max(free, row + latency_) + cycles.per_row;
    }
    return free + cycles.fill;
  }

  hw::Machine machine_;
  std::uint64_t latency_ = 0;
};

TEST_P(StagedLoadTest, IsCompleteWhenItsLastRowHasLeftTheStages) {
  const hw::Chain chain = stages_in_front(hw::DType::kS8);
  hw::Command load = load_command(0, 0, kRowBytes, std::get<0>(GetParam()));
  load.mix = 1;
  CoreRig rig(machine_, false);
  rig.run([&] {
    rig.execute({load, matmul_command({std::get<0>(GetParam()), 16, 16}, 0, kBank, 0)}, {chain});
  });
  EXPECT_GT(hw::chain_cycles(chain, 1, kRowBytes, machine_.preop.lanes).fill, 0U);
  EXPECT_EQ(rig[0].completed - rig[0].started, expected(chain));
  EXPECT_EQ(rig[1].started, rig[0].completed) << "what reads the tile waits for that";
}

TEST_P(StagedLoadTest, OfSumsIsCompleteThenToo) {
  const std::uint32_t rows = std::get<0>(GetParam());
  const hw::Chain chain = stages_in_front(hw::DType::kS32);
  hw::Command load = load_command(0, 0, kRowBytes, rows);
  load.opcode = hw::Opcode::kLoadAccumulator;
  load.mix = 1;
  load.a_pitch = 0;
  load.c_pitch = kRowBytes;
  hw::Command store = store_command(0, 1 << 16, rows, kRowBytes);
  store.chain = 1;
  CoreRig rig(machine_, false);
  rig.run([&] { rig.execute({load, store}, {chain, test::kNoStages}); });
  EXPECT_EQ(rig[0].completed - rig[0].started, expected(chain));
  EXPECT_EQ(rig[1].started, rig[0].completed);
}

INSTANTIATE_TEST_SUITE_P(Rows, StagedLoadTest,
                         ::testing::Combine(::testing::Values(1U, 7U, 40U),
                                            ::testing::Values(2U, 16U),
                                            ::testing::Values(0U, 40U)));

}  // namespace
}  // namespace systole::tlm_model

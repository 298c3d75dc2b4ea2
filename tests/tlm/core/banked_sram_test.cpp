#include "tlm/core/banked_sram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "hw/dma/sum_loads.h"
#include "hw/number/weight_groups.h"
#include "hw/postop/postop.h"
#include "support/network/even_machine.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "tlm/core/load_unit.h"

namespace systole::tlm_model {
namespace {

using StagedCase = std::tuple<std::uint32_t, std::uint32_t, unsigned>;
using test::CoreRig;
using test::even_machine;
using test::kBank;
using test::load_command;
using test::matmul_command;
using test::store_command;

/// 4 banks of 1024 bytes; a port moves 16 bytes a cycle.
BankedSram make(std::uint32_t ports) { return {hw::Machine::Sram{4, 4, ports}, 16}; }

TEST(BankedSram, HasItsSizeAndStartsAtZero) {
  BankedSram sram = make(1);
  ASSERT_EQ(sram.size(), 4096U);
  EXPECT_EQ(sram.banks(), 4U);
  EXPECT_EQ(sram.word_bytes(), 16U);
  for (std::size_t i = 0; i < sram.size(); ++i) ASSERT_EQ(sram.data()[i], 0);
}

TEST(BankedSram, ServesAWordACycleAtEachBank) {
  BankedSram sram = make(1);
  // 512 bytes in bank 0, 512 in bank 1: half of the words each, one after the other.
  sram.serve(BankedSram::Client::kLoad, 512, 1536, 64, 100);
  EXPECT_EQ(sram.service().next_use(0, 0, 0), 100U);
  EXPECT_EQ(sram.service().next_use(1, 1, 0), 132U);
  const hw::BankStep step{hw::BankAccess{1, false}, std::nullopt};
  EXPECT_EQ(sram.service().pass(130, step, 10, 1000).end, 172U) << "two before, the others after";
  sram.prune_before(150);
  EXPECT_EQ(sram.service().next_use(0, 0, 0), sram.service().next_use(3, 3, 0)) << "none";
  EXPECT_EQ(sram.bytes_moved(), 0U) << "counted by whoever knows them";
}

TEST(BankedSram, CountsBytes) {
  BankedSram sram = make(2);
  EXPECT_EQ(sram.count(160), 160U);
  sram.count(7);
  EXPECT_EQ(sram.bytes_moved(), 167U);
}

constexpr std::uint32_t kRowBytes = 16;

/// Two stages that need no parameters.
hw::Chain stages_in_front(hw::DType out) {
  hw::Stage half = hw::default_stage(hw::StageOp::kRequantise);
  half.imm = {1, 1, -128, 127};
  return {{hw::default_stage(hw::StageOp::kRelu), half}, out};
}

/// Rows, lanes and nanoseconds of the memory controller.

class StagedLoadTest : public test::SystemCTest, public ::testing::WithParamInterface<StagedCase> {
 protected:
  StagedLoadTest() : machine_(even_machine(std::get<2>(GetParam()))) {
    machine_.preop.lanes = std::get<1>(GetParam());
    latency_ = test::latency_on(machine_, kRowBytes).read;
    test::fresh_kernel();
  }

  /// Cycles from the start of a load until its last row has gone through the stages: a request is
  /// issued every cycle; the stages take their micro-code when the first vector is there, and then
  /// a vector a cycle that has arrived.
  [[nodiscard]] std::uint64_t expected(const hw::Chain& chain) const {
    const auto [rows, lanes, controller] = GetParam();
    std::uint64_t fill = 0;
    for (const hw::Stage& stage : chain.stages) fill += hw::stage_latency(stage);
    std::uint64_t next = latency_ + 1 + chain.stages.size() * hw::kMicrocodeWords + 1;
    for (std::uint32_t row = 0; row < rows; ++row) {
      for (std::uint32_t col = 0; col < kRowBytes; col += lanes) {
        next = std::max(next, row + latency_ + 1) + 1;
      }
    }
    return next + fill + hw::kBankWriteCycles;
  }

  hw::Machine machine_;
  std::uint64_t latency_ = 0;
};

TEST_P(StagedLoadTest, IsCompleteWhenItsLastRowHasLeftTheStages) {
  const hw::Chain chain = stages_in_front(hw::DType::kS8);
  hw::Command load = load_command(0, 0, kRowBytes, std::get<0>(GetParam()));
  load.as<hw::cmd::Load>()->pre.emplace();
  CoreRig rig(machine_, false);
  rig.run([&] {
    rig.execute({load, matmul_command({std::get<0>(GetParam()), 16, 16}, 0, kBank, 0)}, {chain});
  });
  EXPECT_GT(hw::chain_cycles(chain, 1, kRowBytes, machine_.preop.lanes).fill, 0U);
  EXPECT_EQ(rig[0].completed - rig[0].started, expected(chain));
  EXPECT_EQ(rig[1].started, rig[0].completed) << "what reads the tile waits for that";
  EXPECT_EQ(rig.core.load.operations(),
            std::uint64_t{std::get<0>(GetParam())} * kRowBytes * chain.stages.size());
}

TEST_P(StagedLoadTest, OfSumsIsCompleteThenToo) {
  const std::uint32_t rows = std::get<0>(GetParam());
  const hw::Chain chain = stages_in_front(hw::DType::kS32);
  hw::Command load = test::sums_command(0, 0, kRowBytes, hw::DType::kS8, rows);
  load.as<hw::cmd::Load>()->pre.emplace();
  hw::Command store = store_command(0, 1 << 16, rows, kRowBytes);
  store.as<hw::cmd::Result>()->chain.chain = 1;
  CoreRig rig(machine_, false);
  rig.run([&] { rig.execute({load, store}, {chain, test::kNoStages}); });
  EXPECT_EQ(rig[0].completed - rig[0].started,
            expected(chain) - hw::kBankWriteCycles + hw::kSumLoadCycles);
  EXPECT_EQ(rig[1].started, std::max(rig[0].completed, rig[1].dispatched)) << "when it has a chain";
}

/// Groups of 32 x 16 weights, each in a separate request.
TEST_P(StagedLoadTest, OfPackedWeightsIsCompleteWhenItsLastGroupIsExpanded) {
  const auto [groups, lanes, controller] = GetParam();
  machine_ = even_machine(controller);
  machine_.dma.request_bytes = 512;
  machine_.dma.expander_lanes = lanes;
  const auto bytes =
      static_cast<std::uint32_t>(hw::packed_group_bytes(hw::WeightFormat::kGroups, kRowBytes));
  const std::uint64_t latency = test::latency_on(machine_, bytes).read;
  hw::Command load = load_command(0, 0, kRowBytes, groups * hw::kGroupWeights);
  load.as<hw::cmd::Load>()->format = hw::WeightFormat::kGroups;
  load.as<hw::cmd::Load>()->from.pitch = 512;
  test::fresh_kernel();
  CoreRig rig(machine_, false);
  rig.run([&] { rig.execute({load, matmul_command({16, 16, 16}, 0, kBank, 0)}); });
  const std::uint64_t per_group = hw::kGroupWeights * (kRowBytes / lanes);
  std::uint64_t free = 0, before_last = 0, arrived = latency;
  const std::uint64_t beats = (bytes + 15) / 16;
  for (std::uint32_t group = 0; group < groups; ++group, arrived += beats) {
    before_last = free;
    free = std::max(free, arrived) + per_group;
  }
  EXPECT_EQ(rig[0].completed - rig[0].started, free + 2);
  EXPECT_EQ(rig[1].started, rig[0].completed);
  EXPECT_EQ(rig[0].released - rig[0].started, std::max<std::uint64_t>(before_last, groups))
      << "the next load comes in while the last group is expanded";
}

INSTANTIATE_TEST_SUITE_P(Rows, StagedLoadTest,
                         ::testing::Combine(::testing::Values(1U, 7U, 40U),
                                            ::testing::Values(2U, 16U),
                                            ::testing::Values(0U, 40U)));

}  // namespace
}  // namespace systole::tlm_model

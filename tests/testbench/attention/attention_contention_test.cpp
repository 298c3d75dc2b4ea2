/// Cycles of the attention engines: never below the contract of
/// hw/attention/timing/attention_cycles.h, and more of them with fewer banks, ports, lanes and a
/// slower memory.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "hw/attention/timing/attention_cycles.h"
#include "model/format/npy.h"
#include "support/network/attention_run.h"
#include "support/tlm/systemc_test.h"

namespace systole::testbench {
namespace {

constexpr std::size_t kHeadWidth = 64;

class AttentionContention : public test::SystemCTest {
 protected:
  using Head = tlm_model::AttentionUnit::HeadCycles;
  using Set = std::function<void(hw::Machine&, std::uint32_t)>;

  AttentionContention()
      : machine_(hw::find_machine("vitcod")), mask_(test::synthetic_mask({2, 3, 120, 120}, 6)) {}

  [[nodiscard]] AttentionResult run(const test::Layers& layers, const hw::Machine& machine) const {
    AttentionShape shape = test::shape_of(mask_, kHeadWidth);
    shape.latent_heads = latent_heads_;
    return test::time_attention(shape, layers, machine);
  }

  /// `values` from the most to the least; the least is slower than the most.
  void expect_slower(const char* name, const std::vector<std::uint32_t>& values, const Set& set) {
    SCOPED_TRACE(name);
    const test::Layers layers = test::split_by_cycles(mask_, kHeadWidth, machine_);
    std::uint64_t first = 0, phases_before = 0, total_before = 0;
    for (const std::uint32_t value : values) {
      hw::Machine machine = machine_;
      set(machine, value);
      const AttentionResult result = run(layers, machine);
      const std::uint64_t engines = test::engine_cycles(result);
      const std::uint64_t phases =
          engines - test::sum(result, &Head::memory) - test::sum(result, &Head::codes) -
          test::sum(result, &Head::output) - test::sum(result, &Head::decode);
      EXPECT_GE(phases, phases_before) << "at " << value;
      EXPECT_GE(result.cycles, total_before) << "at " << value;
      if (first == 0) first = result.cycles;
      phases_before = phases;
      total_before = result.cycles;
    }
    EXPECT_GT(total_before, first);
  }

  hw::Machine machine_;
  model::AttentionMask mask_;
  std::size_t latent_heads_ = 0;
};

TEST_F(AttentionContention, FewerBanksAreNeverFaster) {
  expect_slower("banks", {256, 128, 64, 32, 16, 8, 4, 2, 1},
                [](auto& machine, auto value) { machine.attention.banks = value; });
}
TEST_F(AttentionContention, FewerPortsAreNeverFaster) {
  machine_.attention.banks = 16;
  expect_slower("ports", {4, 3, 2, 1},
                [](auto& machine, auto value) { machine.attention.ports = value; });
}
TEST_F(AttentionContention, FewerSoftmaxLanesAreNeverFaster) {
  expect_slower("softmax lanes", {64, 32, 16, 8, 4, 2, 1},
                [](auto& machine, auto value) { machine.attention.softmax_lanes = value; });
}
TEST_F(AttentionContention, FewerDividersAreNeverFaster) {
  expect_slower("dividers", {16, 8, 4, 2, 1},
                [](auto& machine, auto value) { machine.attention.dividers = value; });
}
TEST_F(AttentionContention, FewerDecoderLinesAreNeverFaster) {
  latent_heads_ = 2;
  expect_slower("decoder lines", {1024, 256, 64, 32, 24, 16, 12, 8, 4, 3, 2, 1},
                [](auto& machine, auto value) { machine.attention.decoder_lines = value; });
}
TEST_F(AttentionContention, HeadAfterHeadIsSlower) {
  hw::Machine machine = machine_;
  machine.attention.order = hw::AttentionOrder::kHead;
  const test::Layers layers = test::split_by_cycles(mask_, kHeadWidth, machine_);
  EXPECT_GT(test::engine_cycles(run(layers, machine)), test::engine_cycles(run(layers, machine_)));
}
TEST_F(AttentionContention, LessBandwidthIsNeverFaster) {
  machine_.dram.t_refi_ns = 0;  // whether a run meets one more refresh is a matter of luck
  expect_slower("transfers", {19200, 9600, 4800, 2400, 1200, 600, 300},
                [](auto& machine, auto value) { machine.dram.mega_transfers = value; });
}

// There is one softmax and one output path, whatever runs beside them.
TEST_F(AttentionContention, HeadsTakeTurnsAtTheSoftmax) {
  machine_.attention.softmax_lanes = 1;
  const test::Layers layers = test::split_by_cycles(mask_, kHeadWidth, machine_);
  const AttentionResult result = run(layers, machine_);
  std::uint64_t exponentials = 0;
  for (const auto& heads : layers) {
    for (const hw::SparseHead& head : heads) exponentials += head.kept();
  }
  EXPECT_GT(test::engine_cycles(result), exponentials);
}
TEST_F(AttentionContention, HeadsTakeTurnsAtTheOutput) {
  machine_.attention.dividers = 1;
  const test::Layers layers = test::split_by_cycles(mask_, kHeadWidth, machine_);
  constexpr std::uint64_t kRows = 2 * 3 * 120, kDivision = 13;
  EXPECT_GT(run(layers, machine_).cycles, kRows * kDivision);
}

TEST_F(AttentionContention, SumsWaitForRoomOnlyIfThereIsNone) {
  const test::Layers layers = test::split_by_cycles(mask_, kHeadWidth, machine_);
  machine_.attention.dividers = 1;  // outputs leave later than the next ones have arrived
  const auto waits = [&](std::uint32_t kib) {
    machine_.accumulator.kib = kib;
    return test::sum(run(layers, machine_), &Head::output);
  };
  // The layer's scores and its three heads' sums of 30 KiB.
  EXPECT_EQ(waits(512), 0U);
  EXPECT_GT(waits(64), 0U);
}

TEST_F(AttentionContention, WorkIsThatOfTheContract) {
  const test::Layers layers = test::split_by_cycles(mask_, kHeadWidth, machine_);
  const AttentionResult result = run(layers, machine_);
  std::uint64_t busy = 0, contract = 0, macs = 0;
  std::size_t i = 0;
  for (const std::vector<hw::SparseHead>& heads : layers) {
    for (const hw::SparseHead& head : heads) {
      const auto sddmm = hw::sddmm_cycles(head, kHeadWidth, machine_.attention);
      const auto spmm = hw::spmm_cycles(head, kHeadWidth, machine_.attention);
      EXPECT_EQ(result.heads[i].lines_busy, sddmm.busy_cycles() + spmm.busy_cycles());
      EXPECT_GE(result.heads[i].sddmm, sddmm.total());
      EXPECT_GE(result.heads[i].spmm, spmm.total());
      EXPECT_GT(result.heads[i].softmax, hw::softmax_cycles(head, machine_.attention));
      busy += result.heads[i].busy();
      contract += sddmm.total() + spmm.total();
      macs += (head.dense_cells() + head.sparse_kept()) * 2 * kHeadWidth;
      ++i;
    }
  }
  ASSERT_EQ(result.heads.size(), i);
  EXPECT_EQ(result.work.macs, macs);
  EXPECT_NEAR(static_cast<double>(busy), static_cast<double>(contract),
              0.01 * static_cast<double>(contract));
}

}  // namespace
}  // namespace systole::testbench

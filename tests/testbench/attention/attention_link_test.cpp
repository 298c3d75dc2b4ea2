#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "hw/attention/timing/attention_schedule.h"
#include "hw/description/machine_file.h"
#include "hw/program/program_image.h"
#include "support/network/attention_run.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "testbench/attention/attention_workload.h"
#include "tests/hw/attention/sparse_heads.h"
#include "tlm/system.h"

namespace systole::testbench {
namespace {

using AttentionEnergy = test::SystemCTest;
using Head = tlm_model::AttentionUnit::HeadCycles;

// What comes in when: order of need, places in the buffers, decoding beside the lines' work.

class AttentionLink : public test::SystemCTest {
 protected:
  static constexpr std::size_t kDim = 64;

  AttentionLink()
      : machine_(hw::find_machine("vitcod")), mask_(test::synthetic_mask({1, 3, 120, 120}, 6)) {}

  /// 16 bytes a cycle.
  void narrow_bus() {
    machine_.bus.width_bytes = 16;
    machine_.bus.clock_mhz = machine_.core.clock_mhz;
  }
  [[nodiscard]] AttentionResult run(std::size_t latent_heads) const {
    AttentionShape shape = test::shape_of(mask_, kDim);
    shape.latent_heads = latent_heads;
    return test::time_attention(shape, test::split_by_cycles(mask_, kDim, machine_), machine_);
  }

  hw::Machine machine_;
  model::AttentionMask mask_;
};

TEST_F(AttentionLink, ValuesLeaveTheBandwidthToWhatIsNeededFirst) {
  narrow_bus();
  const AttentionResult result = run(0);
  std::uint64_t link = 0;
  for (const Head& head : result.heads) link = std::max(link, head.link);
  const std::uint64_t bytes =
      2 * 3 * 120 * kDim + result.traffic.index;  // of Q and K, all at 16 a cycle
  EXPECT_GT(16 * link, bytes);
  EXPECT_LT(16 * link, bytes * 5 / 4) << "V is another half of this";
}

TEST_F(AttentionLink, ALineThatHasTokensDoesNotWaitForTheOthers) {
  machine_.attention.decoder_lines = 16;
  const AttentionResult some = run(2);
  EXPECT_GT(test::sum(some, &Head::decode), 0U);
  EXPECT_LT(test::sum(some, &Head::decode), test::sum(some, &Head::decoding))
      << "the rest is hidden";
}

TEST_F(AttentionLink, FewerBytesPayOnANarrowBus) {
  narrow_bus();
  machine_.attention.decoder_lines = 1024;
  EXPECT_LT(run(1).cycles, run(0).cycles) << "a third of the bytes of Q and K";
}

TEST_F(AttentionLink, TheArrayDoesNothingElseWhileItDecodes) {
  machine_.attention.decoder_lines = 0;
  const AttentionResult result = run(2);
  EXPECT_GT(test::sum(result, &Head::decoding), 0U);
  EXPECT_GE(test::sum(result, &Head::decode), test::sum(result, &Head::decoding));
  // All tokens at once on 64 lines: 240 tokens of 8 groups of 6 cycles, and the last beat's way
  // out.
  EXPECT_EQ(test::sum(result, &Head::decoding), 240 * 8 / 64 * 6 + hw::kHeadMixLatency);
}

TEST_F(AttentionLink, ARowsPlaceIsFreeWhenItsWindowIsOver) {
  // One query, eight keys on two lines: four windows of 64 cycles, each with two new rows of K.
  constexpr std::size_t kWide = 512, kWindows = 4;
  machine_.attention.line_rows = 1;
  machine_.attention.lines = 2;
  machine_.array.rows = 1;
  machine_.array.cols = 16;
  model::AttentionMask mask({1, 1, 1, 8});
  for (std::size_t key = 0; key < 8; ++key) mask.keep(key);
  test::Layers layers(1);
  layers[0].push_back(mask.head(0, 0));
  const auto memory = [&](std::uint32_t key_kib) {
    machine_.attention.key_kib = key_kib;
    const AttentionResult result = test::time_attention({1, 1, 8, kWide, 0}, layers, machine_);
    return result.heads[0].sddmm - kWindows * kWide / 8;
  };
  // Room for two rows: every window but the first begins with the way to memory and back.
  constexpr std::uint64_t kWay = 20;
  const std::uint64_t ahead = memory(53), after = memory(1);
  EXPECT_GE(after, ahead + (kWindows - 1) * kWay);
}

// What a run of the attention engines costs energy for.

constexpr std::size_t kHeadDim = 64, kCountedTokens = 60, kCountedHeads = 3, kLatentHeads = 2,
                      kWordBytes = 4;

TEST_F(AttentionEnergy, CountsBuffersScoresSoftmaxOutputsAndDecoder) {
  const hw::Machine machine = hw::find_machine("vitcod");
  const model::AttentionMask mask =
      test::synthetic_mask({1, kCountedHeads, kCountedTokens, kCountedTokens}, 8);
  const test::Layers layers = test::split_by_cycles(mask, kHeadDim, machine);
  AttentionShape shape = test::shape_of(mask, kHeadDim);
  shape.latent_heads = kLatentHeads;
  const AttentionResult result = test::time_attention(shape, layers, machine);

  std::uint64_t cells = 0, kept = 0, operand_words = 0, score_words = 0;
  for (const hw::SparseHead& head : layers[0]) {
    cells += head.dense_cells() + head.sparse_kept();
    kept += head.kept();
    for (const hw::AttentionPhase& phase :
         {hw::schedule_sddmm(head, kHeadDim, machine.attention),
          hw::schedule_spmm(head, kHeadDim, kHeadDim, machine.attention)}) {
      operand_words += phase.operand_words;
      score_words += phase.score_words;
    }
  }
  constexpr std::uint64_t kOutputs = kCountedHeads * kCountedTokens * kHeadDim;
  EXPECT_EQ(result.work.macs, 2 * cells * kHeadDim);
  EXPECT_EQ(result.work.decoder_macs, 2 * kCountedTokens * kLatentHeads * kCountedHeads * kHeadDim);
  EXPECT_EQ(result.work.elements, kept + 2 * kOutputs) << "division, requantisation";
  // Q, K and V of all heads come in, the mask comes in and is walked.
  EXPECT_EQ(result.work.buffer_bytes, 3 * kOutputs + 2 * result.traffic.index +
                                          operand_words * machine.attention.macs_per_line);
  EXPECT_EQ(result.work.score_bytes, kWordBytes * (score_words + 2 * cells + 2 * kOutputs));

  EXPECT_EQ(result.events.macs, result.work.macs + result.work.decoder_macs);
  EXPECT_EQ(result.events.postop_elements, result.work.elements);
  EXPECT_EQ(result.events.scratchpad_bytes, result.work.buffer_bytes);
  EXPECT_EQ(result.events.accumulator_bytes, result.work.score_bytes);
}

// Programs that follow one another on the same attention engines.

constexpr AttentionShape kShape{2, 24, 20, 16, 0};

class AttentionPrograms : public test::SystemCTest {
 protected:
  AttentionPrograms() {
    std::mt19937 random(5);
    for (int i = 0; i < 3; ++i) {
      std::vector<hw::SparseHead> layer;
      for (std::size_t head = 0; head < kShape.heads; ++head) {
        hw::HeadMask mask{kShape.queries, kShape.keys, {}};
        for (std::size_t cell = 0; cell < kShape.queries * kShape.keys; ++cell) {
          mask.keep.push_back(random() % 3 == 0 ? 1 : 0);
        }
        layer.push_back(hw::split_anywhere(mask, random));
      }
      workloads_.push_back(make_attention_workload(kShape, {layer}, machine_, true));
    }
    // The program of all resides at one address, after the longest mask.
    for (const AttentionWorkload& workload : workloads_) {
      code_address_ = std::max(code_address_, workload.program_address);
    }
    for (AttentionWorkload& workload : workloads_) workload.program_address = code_address_;
  }

  /// Runs all programs in turns, twice, at one address.
  void run_all() {
    test::fresh_kernel();
    const hw::MemoryImage nothing;
    const std::vector<hw::HostFunction> none;
    tlm_model::System system("system", machine_, tlm_model::make_models(machine_), code_address_,
                             nothing, none, true);
    std::size_t begun = 0, done = 0;
    system.host.set_work(
        [&](tlm_model::Host::Job&) {
          if (begun == 2 * workloads_.size()) return false;
          const AttentionWorkload& workload = workloads_[begun++ % workloads_.size()];
          for (const hw::MemoryPiece& piece : workload.operands) write(system, piece);
          system.exchange_program(memory_image(workload), none);
          return true;
        },
        [&](const tlm_model::Host::Job&) {
          const AttentionWorkload& workload = workloads_[done++ % workloads_.size()];
          const std::vector<std::uint8_t> expected = masked_reference(workload, 0);
          std::vector<std::uint8_t> found(expected.size());
          system.peek(workload.addresses[0].out, found.data(), found.size());
          EXPECT_EQ(found, expected) << "program " << done - 1;
        });
    sc_core::sc_start();
    EXPECT_EQ(done, 2 * workloads_.size());
  }

  static void write(tlm_model::System& system, hw::MemoryPiece piece) {
    system.host.debug(tlm::TLM_WRITE_COMMAND, piece.address, piece.bytes.edit().data(),
                      piece.bytes.size());
  }

  const hw::Machine machine_ = hw::find_machine("vitcod");
  std::vector<AttentionWorkload> workloads_;
  std::uint64_t code_address_ = 0;
};

TEST_F(AttentionPrograms, EachHasItsOwnMask) { run_all(); }

}  // namespace
}  // namespace systole::testbench

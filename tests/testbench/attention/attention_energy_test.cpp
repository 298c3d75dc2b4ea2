/// What a run of the attention engines costs energy for.

#include <gtest/gtest.h>

#include <cstdint>

#include "hw/attention/timing/attention_schedule.h"
#include "support/network/attention_run.h"
#include "support/tlm/systemc_test.h"

namespace systole::testbench {
namespace {

using AttentionEnergy = test::SystemCTest;

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

}  // namespace
}  // namespace systole::testbench

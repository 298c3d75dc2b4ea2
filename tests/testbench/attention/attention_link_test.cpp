/// What comes in when: order of need, places in the buffers, decoding beside the lines' work.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "support/network/attention_run.h"
#include "support/tlm/systemc_test.h"

namespace systole::testbench {
namespace {

using Head = tlm_model::AttentionUnit::HeadCycles;

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
  EXPECT_EQ(test::sum(result, &Head::decoding), 240 * 8 / 64 * 6 + hw::kMixLatency);
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
  const std::uint64_t ahead = memory(53), behind = memory(1);
  EXPECT_GE(behind, ahead + (kWindows - 1) * kWay);
}

}  // namespace
}  // namespace systole::testbench

/// Masks that stream through the index buffer: their bytes, and the time that they cost.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "hw/attention/mask_codec.h"
#include "hw/attention/timing/mask_stream.h"
#include "model/format/npy.h"
#include "model/mask/sparsify.h"
#include "support/network/attention_run.h"
#include "support/network/even_machine.h"
#include "support/shared_data.h"
#include "support/tlm/systemc_test.h"

namespace systole::testbench {
namespace {

constexpr std::size_t kStreamDim = 64, kStreamTokens = 150, kStreamHeads = 3;

class AttentionMaskStream : public test::SystemCTest {
 protected:
  /// `index_kib` of buffer, and a memory that answers after `controller_ns`.
  static AttentionResult run(std::uint32_t index_kib, double controller_ns) {
    hw::Machine machine = test::with_even_memory(hw::find_machine("vitcod"), controller_ns);
    machine.scratchpad.kib = 1024;
    const test::Layers layers = heads(machine);
    machine.attention.index_kib = index_kib;
    return test::time_attention({kStreamHeads, kStreamTokens, kStreamTokens, kStreamDim}, layers,
                                machine);
  }
  static test::Layers heads(const hw::Machine& machine) {
    static const model::AttentionMask mask =
        test::synthetic_mask({1, kStreamHeads, kStreamTokens, kStreamTokens}, 5);
    return test::split_by_cycles(mask, kStreamDim, machine);
  }
  /// Of all masks once.
  static std::uint64_t mask_bytes() {
    const test::Layers layers = heads(hw::find_machine("vitcod"));
    std::uint64_t bytes = 0;
    for (const hw::SparseHead& head : layers[0]) bytes += hw::mask_bytes(head);
    return bytes;
  }
};

TEST_F(AttentionMaskStream, ReadsAMaskForEachPhaseAndCountsItsWalk) {
  const AttentionResult resident = run(64, 40.5), streamed = run(1, 40.5);
  ASSERT_GT(mask_bytes(), 3 * 1024U);
  EXPECT_EQ(resident.traffic.index, mask_bytes());
  EXPECT_EQ(streamed.traffic.index, 2 * mask_bytes());
  EXPECT_EQ(streamed.work.buffer_bytes - resident.work.buffer_bytes, 2 * mask_bytes());
  EXPECT_EQ(streamed.traffic.qkv(), resident.traffic.qkv());
}

TEST_F(AttentionMaskStream, ACloseMemoryHidesAndADistantOneShowsEveryChunk) {
  // Two chunks come in side by side, each of the others begins when the one two before is over.
  const std::uint64_t half = 512, chunks = 2 * mask_bytes() / half;
  const AttentionResult resident = run(64, 2.5), close = run(1, 2.5);
  EXPECT_GE(close.cycles, resident.cycles);
  EXPECT_LT(close.cycles, resident.cycles + chunks * 10) << "most of it is behind the walk";
  // 800 ns are 400 cycles: more than a walk of half a buffer, which hides itself alone.
  constexpr std::uint64_t kDistance = 400;
  const AttentionResult distant = run(1, 800.5);
  EXPECT_GT(distant.cycles, (chunks - 2) * kDistance);
  EXPECT_LT(distant.cycles, run(64, 800.5).cycles + (chunks + 12) * (kDistance + 60));
  EXPECT_GT(test::sum(distant, &tlm_model::AttentionUnit::HeadCycles::memory),
            test::sum(close, &tlm_model::AttentionUnit::HeadCycles::memory));
}

TEST_F(AttentionMaskStream, MoreRoomIsNeverSlowerThanTheLeast) {
  const std::uint64_t least = run(1, 200.5).cycles;
  for (const std::uint32_t kib : {2U, 3U, 4U, 8U, 64U}) {
    EXPECT_LE(run(kib, 200.5).cycles, least) << kib << " KiB";
  }
}

TEST_F(AttentionMaskStream, LevitRunsOnTheShippedMachine) {
  const std::string path = shared_data("vitcod/levit128_average_attention_dpt0.npy");
  if (path.empty()) GTEST_SKIP() << "NOT TESTED: masks of LeViT, no attention maps of it";
  const hw::Machine machine = hw::find_machine("vitcod");
  const model::RankedMaps maps(model::Npy::open(path));
  const model::AttentionMask mask = maps.mask(model::find_theta(maps, 0.6, false), false);
  AttentionShape shape = test::shape_of(mask, 16);
  shape.v_dim = 32;
  const test::Layers layers = test::split_by_cycles(mask, 16, machine);
  EXPECT_TRUE(hw::masks_stream(layers[0], machine.attention));
  const AttentionResult result =
      test::run_attention(make_attention_workload(shape, layers, machine, true), machine, true);
  EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
  EXPECT_EQ(result.check.bytes, 4U * 4 * 196 * 32);
}

}  // namespace
}  // namespace systole::testbench

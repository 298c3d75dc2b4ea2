/// Bytes and cycles of the attention engines, with more and less of everything.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/format/npy.h"
#include "support/network/attention_run.h"
#include "support/shared_data.h"
#include "support/tlm/systemc_test.h"

namespace systole::testbench {
namespace {

constexpr std::size_t kDim = 64;
/// DeiT-Tiny: Q, K and V of 12 layers, 3 heads, 197 tokens, once; and with nothing reused.
constexpr std::uint64_t kDeitOnce = 1'361'664, kDeitNoReuse = 3'914'688;
/// With Q and K as two latent heads.
constexpr std::uint64_t kDeitLatent = 1'059'072;

const model::AttentionMask& synthetic() {
  static const model::AttentionMask mask = test::synthetic_mask({2, 3, 150, 150}, 5);
  return mask;
}

using Traffic = tlm_model::AttentionUnit::Traffic;

class AttentionTraffic : public test::SystemCTest {
 protected:
  AttentionTraffic() : machine_(hw::find_machine("vitcod")) {}

  static AttentionResult run(const model::AttentionMask& mask, const hw::Machine& machine,
                             std::size_t latent_heads = 0) {
    AttentionShape shape = test::shape_of(mask, kDim);
    shape.latent_heads = latent_heads;
    return test::time_attention(shape, test::split_by_cycles(mask, kDim, machine), machine);
  }

  /// Less room for one operand never reads less of it; room for all reads each row once. Returns
  /// the bytes that 1 KiB reads again.
  static std::uint64_t expect_bytes_by_buffer(const model::AttentionMask& mask, hw::Machine machine,
                                              std::uint32_t hw::Machine::Attention::*kib,
                                              std::uint64_t Traffic::*bytes) {
    machine.scratchpad.kib = 1024;
    const test::Layers layers = test::split_by_cycles(mask, kDim, machine);
    const model::AttentionShape& sizes = mask.shape();
    const std::uint64_t once = sizes.layers * sizes.heads * sizes.queries * kDim;
    std::uint64_t before = 0;
    for (const std::uint32_t size : {256U, 64U, 53U, 16U, 12U, 8U, 6U, 4U, 3U, 2U, 1U}) {
      machine.attention.*kib = size;
      const AttentionResult result =
          test::time_attention(test::shape_of(mask, kDim), layers, machine);
      const std::uint64_t read = result.traffic.*bytes;
      if (size * 1024U >= sizes.queries * kDim) {
        EXPECT_EQ(read, once) << size;
      }
      EXPECT_GE(read, before) << "with " << size << " KiB";
      EXPECT_EQ(read % kDim, 0U);
      before = read;
    }
    return before - once;
  }

  hw::Machine machine_;
};

TEST_F(AttentionTraffic, EachRowIsReadOnceWhenTheBuffersAreLarge) {
  const AttentionResult result = run(synthetic(), machine_);
  const std::uint64_t once = 2 * 3 * 150 * kDim;
  EXPECT_EQ(result.traffic.query, once);
  EXPECT_EQ(result.traffic.key, once);
  EXPECT_EQ(result.traffic.value, once);
  EXPECT_EQ(result.traffic.written, once);
}

TEST_F(AttentionTraffic, DeitTinyIsReadOnceAndNeverAsOftenAsWithoutReuse) {
  const std::string path = shared_data("vitcod/deit_tiny_0.95_pruned.npy");
  if (path.empty()) GTEST_SKIP() << "NOT TESTED: traffic of DeiT-Tiny, no mask of it";
  const model::AttentionMask deit = model::load_mask(model::Npy::open(path));
  EXPECT_EQ(run(deit, machine_).traffic.qkv(), kDeitOnce);
  EXPECT_EQ(run(deit, machine_, 2).traffic.qkv(), kDeitLatent) << "two thirds of Q and K";
  machine_.attention.query_kib = machine_.attention.key_kib = machine_.attention.value_kib = 1;
  EXPECT_EQ(run(deit, machine_).traffic.qkv(), 3'633'408U);
  EXPECT_LT(3'633'408U, kDeitNoReuse);
}

// What one head wants of a token comes with all latent heads.
TEST_F(AttentionTraffic, SmallBuffersReadLatentTokensAgain) {
  constexpr std::size_t kLatent = 2, kHeads = 3, kTokens = 150;
  const auto bytes = [&](std::uint32_t kib, std::size_t latent_heads) {
    hw::Machine machine = machine_;
    machine.attention.query_kib = machine.attention.key_kib = kib;
    const AttentionResult result = run(synthetic(), machine, latent_heads);
    return result.traffic.query + result.traffic.key;
  };
  constexpr std::uint64_t kOnce = 2 * 2 * kTokens * kLatent * kDim;
  EXPECT_EQ(bytes(53, kLatent), kOnce);
  EXPECT_EQ(kHeads * bytes(53, kLatent), kLatent * bytes(53, 0));
  std::uint64_t before = kOnce;
  for (const std::uint32_t kib : {32U, 24U, 16U, 8U, 4U, 2U, 1U}) {
    const std::uint64_t latent = bytes(kib, kLatent);
    EXPECT_GE(latent, before) << kib;
    EXPECT_EQ(latent % (kLatent * kDim), 0U);
    before = latent;
  }
  EXPECT_GT(before, bytes(1, 0)) << "the auto-encoder costs traffic where tokens do not stay";
}

TEST_F(AttentionTraffic, SmallerQueryBuffersNeverReadLess) {
  EXPECT_GT(expect_bytes_by_buffer(synthetic(), machine_, &hw::Machine::Attention::query_kib,
                                   &Traffic::query),
            0U);
}
TEST_F(AttentionTraffic, SmallerKeyBuffersNeverReadLess) {
  // All that want a key do so together.
  EXPECT_EQ(expect_bytes_by_buffer(synthetic(), machine_, &hw::Machine::Attention::key_kib,
                                   &Traffic::key),
            0U);
}
TEST_F(AttentionTraffic, SmallerValueBuffersNeverReadLess) {
  EXPECT_GT(expect_bytes_by_buffer(synthetic(), machine_, &hw::Machine::Attention::value_kib,
                                   &Traffic::value),
            0U);
}

TEST_F(AttentionTraffic, TheOrderOfHeadsHardlyMatters) {
  const test::Layers layers = test::split_by_cycles(synthetic(), kDim, machine_);
  std::vector<std::uint64_t> cycles;
  std::vector<std::size_t> order{0, 1, 2};
  do {
    test::Layers permuted;
    for (const std::vector<hw::SparseHead>& heads : layers) {
      permuted.push_back({heads[order[0]], heads[order[1]], heads[order[2]]});
    }
    cycles.push_back(
        test::time_attention(test::shape_of(synthetic(), kDim), permuted, machine_).cycles);
  } while (std::next_permutation(order.begin(), order.end()));
  ASSERT_EQ(cycles.size(), 6U);
  const auto [least, most] = std::minmax_element(cycles.begin(), cycles.end());
  EXPECT_LE(static_cast<double>(*most), 1.01 * static_cast<double>(*least))
      << testing::PrintToString(cycles);
}

}  // namespace
}  // namespace systole::testbench

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

  /// The mask as published, if it is there.
  static model::AttentionMask deit() {
    return model::load_mask(model::Npy::open(shared_data("vitcod/deit_tiny_0.95_pruned.npy")));
  }
  static bool has_deit() { return !shared_data("vitcod/deit_tiny_0.95_pruned.npy").empty(); }

  static AttentionResult run(const model::AttentionMask& mask, const hw::Machine& machine,
                             std::size_t latent_heads = 0) {
    AttentionShape shape = test::shape_of(mask, kDim);
    shape.latent_heads = latent_heads;
    return test::time_attention(shape, test::split_by_cycles(mask, kDim, machine), machine);
  }

  /// Total cycles with the heads of every layer in each order; the same in all layers.
  static std::vector<std::uint64_t> cycles_by_order(const model::AttentionMask& mask,
                                                    const hw::Machine& machine,
                                                    std::size_t latent_heads) {
    const test::Layers layers = test::split_by_cycles(mask, kDim, machine);
    std::vector<std::size_t> order;
    for (std::size_t h = 0; h < mask.shape().heads; ++h) order.push_back(h);
    std::vector<std::uint64_t> cycles;
    do {
      test::Layers permuted;
      for (const std::vector<hw::SparseHead>& heads : layers) {
        permuted.emplace_back();
        for (const std::size_t h : order) permuted.back().push_back(heads[h]);
      }
      AttentionShape shape = test::shape_of(mask, kDim);
      shape.latent_heads = latent_heads;
      cycles.push_back(test::time_attention(shape, permuted, machine).cycles);
    } while (std::next_permutation(order.begin(), order.end()));
    return cycles;
  }

  static void expect_order_hardly_matters(const model::AttentionMask& mask,
                                          const hw::Machine& machine,
                                          std::size_t latent_heads = 0) {
    const std::vector<std::uint64_t> cycles = cycles_by_order(mask, machine, latent_heads);
    ASSERT_EQ(cycles.size(), 6U);
    const auto [least, most] = std::minmax_element(cycles.begin(), cycles.end());
    EXPECT_LE(static_cast<double>(*most), 1.01 * static_cast<double>(*least))
        << testing::PrintToString(cycles);
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

  /// DeiT-Tiny with ever less room for all of Q, K and V: `once` with enough, never less than with
  /// more, and from `kib` up no more than without reuse. Returns the bytes with the least.
  std::uint64_t expect_monotonic_bytes(std::size_t latent_heads, std::uint64_t once,
                                       std::uint32_t kib) {
    const model::AttentionMask mask = deit();
    AttentionShape shape = test::shape_of(mask, kDim);
    shape.latent_heads = latent_heads;
    const test::Layers layers = test::split_by_cycles(mask, kDim, machine_);
    std::uint64_t before = once;
    for (const std::uint32_t size : {53U, 24U, 12U, 8U, 6U, 4U, 3U, 2U, 1U}) {
      hw::Machine machine = machine_;
      machine.attention.query_kib = machine.attention.key_kib = machine.attention.value_kib = size;
      const std::uint64_t bytes = test::time_attention(shape, layers, machine).traffic.qkv();
      EXPECT_GE(bytes, before) << size << " KiB";
      if (size == 53) {
        EXPECT_EQ(bytes, once);
      }
      if (size >= kib) {
        EXPECT_LE(bytes, kDeitNoReuse) << size << " KiB";
      }
      before = bytes;
    }
    return before;
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

TEST_F(AttentionTraffic, DeitTinyIsReadOnce) {
  if (!has_deit()) GTEST_SKIP() << "NOT TESTED: traffic of DeiT-Tiny, no mask of it";
  EXPECT_EQ(run(deit(), machine_).traffic.qkv(), kDeitOnce);
}

TEST_F(AttentionTraffic, DeitTinyStaysBelowNoReuseWithTheSmallestBuffers) {
  if (!has_deit()) GTEST_SKIP() << "NOT TESTED: traffic of DeiT-Tiny, no mask of it";
  EXPECT_EQ(expect_monotonic_bytes(0, kDeitOnce, 1), 3'633'408U);
}

// With less than 4 KiB for each of Q, K and V the windows of the lines want more tokens than the
// buffers hold, and each of them comes with both latent heads.
TEST_F(AttentionTraffic, DeitTinyWithAutoEncoderStaysBelowNoReuseFromFourKib) {
  if (!has_deit()) GTEST_SKIP() << "NOT TESTED: traffic of DeiT-Tiny, no mask of it";
  expect_monotonic_bytes(2, kDeitLatent, 4);
}

TEST_F(AttentionTraffic, DeitTinyStaysBelowNoReuseWhicheverBufferIsSmall) {
  if (!has_deit()) GTEST_SKIP() << "NOT TESTED: traffic of DeiT-Tiny, no mask of it";
  const test::Layers layers = test::split_by_cycles(deit(), kDim, machine_);
  for (const auto kib : {&hw::Machine::Attention::query_kib, &hw::Machine::Attention::key_kib,
                         &hw::Machine::Attention::value_kib}) {
    std::uint64_t before = kDeitOnce;
    for (const std::uint32_t size : {16U, 4U, 3U, 2U, 1U}) {
      hw::Machine machine = machine_;
      machine.attention.*kib = size;
      const std::uint64_t bytes =
          test::time_attention(test::shape_of(deit(), kDim), layers, machine).traffic.qkv();
      EXPECT_GE(bytes, before) << size << " KiB";
      EXPECT_LE(bytes, kDeitNoReuse) << size << " KiB";
      before = bytes;
    }
    EXPECT_GT(before, kDeitOnce);
  }
}

TEST_F(AttentionTraffic, DeitTinyWithAutoEncoderIsReadOnceAndTwoThirdsOfQAndK) {
  if (!has_deit()) GTEST_SKIP() << "NOT TESTED: traffic of DeiT-Tiny, no mask of it";
  EXPECT_EQ(run(deit(), machine_, 2).traffic.qkv(), kDeitLatent);
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

TEST_F(AttentionTraffic, TheOrderOfHeadsHardlyMattersOnASyntheticMask) {
  expect_order_hardly_matters(synthetic(), machine_);
}

TEST_F(AttentionTraffic, TheOrderOfHeadsHardlyMattersOnDeitTiny) {
  if (!has_deit()) GTEST_SKIP() << "NOT TESTED: orders of DeiT-Tiny's heads, no mask of it";
  expect_order_hardly_matters(deit(), machine_);
  expect_order_hardly_matters(deit(), machine_, 2);
}

}  // namespace
}  // namespace systole::testbench

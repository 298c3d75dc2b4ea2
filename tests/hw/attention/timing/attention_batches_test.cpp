#include "hw/attention/timing/attention_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "base/units.h"
#include "hw/attention/mask_codec.h"
#include "tests/hw/attention/sparse_heads.h"

namespace systole::hw {
namespace {

using Batches = std::vector<std::vector<HeadTile>>;

/// Heads of 16 queries and 16 keys, all cells kept: 1 KiB of scores each, and with 16 features of V
/// 1 KiB of sums.
std::vector<SparseHead> full_heads(std::size_t count) {
  return std::vector<SparseHead>(count, split({16, 16, std::vector<std::uint8_t>(256, 1)}, {0}));
}

Machine machine_with(std::uint32_t accumulator_kib, std::uint32_t index_kib = 64) {
  Machine machine;
  machine.accumulator.kib = accumulator_kib;
  machine.attention.index_kib = index_kib;
  return machine;
}

std::vector<std::size_t> sizes(const Batches& batches) {
  std::vector<std::size_t> sizes;
  for (const auto& batch : batches) sizes.push_back(batch.size());
  return sizes;
}

using Sizes = std::vector<std::size_t>;

TEST(AttentionBatches, AreAsLongAsScoresAndOneHeadsSumsFit) {
  const auto heads = full_heads(7);
  EXPECT_EQ(sizes(plan_batches(heads, 16, machine_with(2))), Sizes(7, 1));
  EXPECT_EQ(sizes(plan_batches(heads, 16, machine_with(3))), (Sizes{2, 2, 2, 1}));
  EXPECT_EQ(sizes(plan_batches(heads, 16, machine_with(4))), (Sizes{3, 3, 1}));
  EXPECT_EQ(sizes(plan_batches(heads, 16, machine_with(8))), Sizes{7});
  EXPECT_EQ(sizes(plan_batches(heads, 17, machine_with(8))), (Sizes{6, 1}));
}

TEST(AttentionBatches, AreOneHeadIfTheMachineSaysSo) {
  Machine machine = machine_with(64);
  machine.attention.order = AttentionOrder::kHead;
  EXPECT_EQ(sizes(plan_batches(full_heads(3), 16, machine)), Sizes(3, 1));
}

TEST(AttentionBatches, HaveTheirMasksInTheIndexBufferTogether) {
  const auto heads = full_heads(7);
  const std::size_t together = kKib / mask_bytes(heads[0]);
  ASSERT_EQ(together, 3U);
  EXPECT_EQ(sizes(plan_batches(heads, 16, machine_with(64, 1))), (Sizes{3, 3, 1}));
}

TEST(AttentionBatches, CutAHeadThatIsTooLarge) {
  const Batches batches = plan_batches(full_heads(2), 16, machine_with(1));
  ASSERT_EQ(batches.size(), 4U);  // two tiles of 8 queries fill it
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(batches[i].size(), 1U);
    EXPECT_EQ(batches[i][0].head, i / 2);
    EXPECT_EQ(batches[i][0].tile.first, i % 2 * 8);
    EXPECT_EQ(batches[i][0].tile.count, 8U);
    EXPECT_EQ(batches[i][0].score_bytes, 512U);
    EXPECT_EQ(batches[i][0].sum_bytes, 512U);
  }
}

TEST(AttentionBatches, TakeTheHeadWithMostComputedCellsFirst) {
  // Cells of 2 x 3: 3 and 2 kept; a global column of 2 cells, one of them pruned, and 2 others.
  const std::vector<SparseHead> heads = {
      split({2, 3, {1, 1, 0, 1, 0, 0}}, {}), split({2, 3, {1, 0, 0, 0, 0, 1}}, {}),
      split({2, 3, {1, 1, 1, 0, 0, 0}}, {0}), split({2, 3, {0, 1, 0, 0, 1, 0}}, {})};
  EXPECT_EQ(head_order(heads), (std::vector<std::size_t>{2, 0, 1, 3}));
  const Batches batches = plan_batches(heads, 1, machine_with(1));
  ASSERT_EQ(sizes(batches), Sizes{4});
  EXPECT_EQ(batches[0][0].head, 2U);
  EXPECT_EQ(batches[0][0].score_bytes, 16U);
  EXPECT_EQ(batches[0][3].head, 3U);
}

TEST(AttentionBatches, OfNoHeads) { EXPECT_TRUE(plan_batches({}, 16, machine_with(1)).empty()); }

TEST(AttentionBatches, HoldEveryQueryOnceInOrderAndNeverExceedTheBuffers) {
  std::mt19937 random(7);
  std::size_t longest = 0;
  for (int round = 0; round < 300; ++round) {
    const HeadMask mask = random_mask(random, 30);
    const std::vector<SparseHead> heads(random_size(random, 1, 6), split(mask, {}));
    const std::size_t value_dim = random_size(random, 1, 200);
    const Machine machine = machine_with(static_cast<std::uint32_t>(random_size(random, 1, 40)), 2);
    std::size_t head = 0, query = 0;
    for (const auto& batch : plan_batches(heads, value_dim, machine)) {
      std::uint64_t scores = 0, sums = 0;
      longest = std::max(longest, batch.size());
      for (const HeadTile& tile : batch) {
        if (query == mask.queries) {
          ++head;
          query = 0;
        }
        EXPECT_EQ(tile.head, head);
        EXPECT_EQ(tile.tile.first, query);
        query += tile.tile.count;
        scores += tile.score_bytes;
        sums = std::max(sums, tile.sum_bytes);
        EXPECT_EQ(tile.score_bytes + tile.sum_bytes, tile_bytes(heads[head], tile.tile, value_dim));
      }
      EXPECT_LE(scores + sums, machine.accumulator.kib * kKib);
      const std::size_t masks = batch.back().head - batch.front().head + 1;
      EXPECT_LE(masks == 1 ? 0 : masks * mask_bytes(heads[0]), 2 * kKib);
    }
    EXPECT_EQ(head + 1, heads.size());
    EXPECT_EQ(query, mask.queries);
  }
  EXPECT_GT(longest, 3U);
}

}  // namespace
}  // namespace systole::hw

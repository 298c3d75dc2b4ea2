#include "hw/attention/timing/mask_stream.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "base/units.h"
#include "hw/attention/mask_codec.h"
#include "hw/attention/timing/attention_batches.h"
#include "tests/hw/attention/sparse_heads.h"

namespace systole::hw {
namespace {

Machine::Attention index_buffer(std::uint32_t kib) {
  Machine::Attention attention = engines();
  attention.index_kib = kib;
  return attention;
}

SparseHead full_head(std::size_t tokens) {
  return split({tokens, tokens, std::vector<std::uint8_t>(tokens * tokens, 1)}, {});
}

TEST(MaskStream, BeginsWhereOneMaskExceedsTheBuffer) {
  // 22 keys: 8 + 44 + 46 + 484 bytes, to a multiple of 8. 30 keys: 8 + 60 + 62 + 900.
  const SparseHead small = full_head(22), large = full_head(30);
  ASSERT_EQ(mask_bytes(small), 584U);
  ASSERT_EQ(mask_bytes(large), 1032U);
  EXPECT_FALSE(masks_stream({}, index_buffer(1)));
  EXPECT_FALSE(masks_stream({small, small, small}, index_buffer(1))) << "one after the other";
  EXPECT_TRUE(masks_stream({small, large}, index_buffer(1)));
  EXPECT_FALSE(masks_stream({small, large}, index_buffer(2)));
  // 31 queries and 29 keys: 8 + 58 + 60 + 899 = 1025. With a cell less: 1024, which fits.
  HeadMask mask{31, 29, std::vector<std::uint8_t>(31 * 29, 1)};
  EXPECT_TRUE(masks_stream({split(mask, {})}, index_buffer(1)));
  mask.keep[5] = 0;
  ASSERT_EQ(mask_bytes(split(mask, {})), kKib);
  EXPECT_FALSE(masks_stream({split(mask, {})}, index_buffer(1)));
}

TEST(MaskStream, WalksHalvesOfTheBufferAtAnEvenPace) {
  const std::vector<MaskChunk> chunks = mask_chunks(1200, 90, index_buffer(1));
  ASSERT_EQ(chunks.size(), 3U);
  const std::uint64_t expected[][3] = {{0, 512, 0}, {512, 512, 38}, {1024, 176, 76}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(chunks[i].offset, expected[i][0]);
    EXPECT_EQ(chunks[i].bytes, expected[i][1]);
    EXPECT_EQ(chunks[i].cycle, expected[i][2]);
  }
}

TEST(MaskStream, HoldsEveryByteOnceAndNeverMoreThanHalfTheBuffer) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    const auto kib = static_cast<std::uint32_t>(random_size(random, 1, 40));
    const std::uint64_t bytes = random_size(random, 0, 200'000);
    const std::uint64_t cycles = random_size(random, 0, 3000);
    std::uint64_t next = 0, cycle = 0;
    for (const MaskChunk& chunk : mask_chunks(bytes, cycles, index_buffer(kib))) {
      EXPECT_EQ(chunk.offset, next);
      EXPECT_GT(chunk.bytes, 0U);
      EXPECT_LE(2 * chunk.bytes, kib * kKib);
      EXPECT_GE(chunk.cycle, cycle);
      // As much of the phase is over as of the mask.
      EXPECT_LE(chunk.cycle * bytes, chunk.offset * cycles);
      EXPECT_GT((chunk.cycle + 1) * bytes, chunk.offset * cycles);
      next += chunk.bytes;
      cycle = chunk.cycle;
    }
    EXPECT_EQ(next, bytes);
  }
}

TEST(MaskStream, DoesNotCutBatches) {
  Machine machine;
  machine.attention = index_buffer(1);
  machine.accumulator.kib = 1024;
  EXPECT_EQ(plan_batches(std::vector<SparseHead>(5, full_head(30)), 16, machine).size(), 1U);
  EXPECT_EQ(plan_batches(std::vector<SparseHead>(5, full_head(22)), 16, machine).size(), 5U)
      << "these reside";
}

}  // namespace
}  // namespace systole::hw

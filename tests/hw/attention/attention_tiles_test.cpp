#include "hw/attention/attention_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <vector>

#include "base/error.h"
#include "support/input_error.h"
#include "tests/hw/attention/sparse_heads.h"

namespace systole::hw {
namespace {

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;  // first, count

Pairs tiles_of(const SparseHead& head, std::size_t value_dim, std::uint64_t buffer_bytes) {
  Pairs pairs;
  for (const QueryTile tile : query_tiles(head, value_dim, buffer_bytes)) {
    pairs.emplace_back(tile.first, tile.count);
  }
  return pairs;
}

/// 4 bytes for every computed cell and every output of the queries, cell by cell.
std::uint64_t counted_bytes(const HeadMask& mask, const std::vector<std::uint16_t>& global,
                            std::size_t first, std::size_t count, std::size_t value_dim) {
  std::uint64_t words = 0;
  for (std::size_t q = first; q < first + count; ++q) {
    for (std::uint16_t key = 0; key < mask.keys; ++key) {
      const bool dense = std::find(global.begin(), global.end(), key) != global.end();
      words += dense || mask.kept(q, key) ? 1 : 0;
    }
    words += value_dim;
  }
  return 4 * words;
}

/// The fewest tiles of ceil(queries / tiles) queries that fit, if any do.
std::optional<Pairs> fewest(const HeadMask& mask, const std::vector<std::uint16_t>& global,
                            std::size_t value_dim, std::uint64_t buffer_bytes) {
  for (std::size_t count = 1; count <= mask.queries; ++count) {
    const std::size_t size = (mask.queries + count - 1) / count;
    Pairs pairs;
    bool fits = true;
    for (std::size_t first = 0; first < mask.queries; first += size) {
      pairs.emplace_back(first, std::min(size, mask.queries - first));
      fits = fits &&
             counted_bytes(mask, global, first, pairs.back().second, value_dim) <= buffer_bytes;
    }
    if (fits) return pairs;
  }
  return std::nullopt;
}

/// Key 0 is kept by all, key 1 by queries 0 and 4, key 2 by query 2.
const HeadMask kTiledMask{5, 3, {1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0}};

TEST(TileBytes, CountEveryComputedCellAndEveryOutput) {
  const SparseHead head = split(kTiledMask, {0});
  EXPECT_EQ(tile_bytes(head, {0, 5}, 2), 4U * (5 + 3 + 10));
  EXPECT_EQ(tile_bytes(head, {1, 1}, 2), 4U * (1 + 0 + 2));
  EXPECT_EQ(tile_bytes(head, {2, 3}, 7), 4U * (3 + 2 + 21));
  EXPECT_EQ(tile_bytes(head, {5, 0}, 7), 0U);
  // A pruned cell of a global column is computed.
  EXPECT_EQ(tile_bytes(split(kTiledMask, {0, 1}), {1, 1}, 2), 4U * (2 + 2));
}

TEST(QueryTiles, SplitOnlyAHeadThatDoesNotFit) {
  const SparseHead head = split(kTiledMask, {0});
  EXPECT_EQ(tiles_of(head, 2, 72), (Pairs{{0, 5}}));
  EXPECT_EQ(tiles_of(head, 2, 71), (Pairs{{0, 3}, {3, 2}}));  // 4 * (3 + 2 + 6) = 44
  EXPECT_EQ(tiles_of(head, 2, 44), (Pairs{{0, 3}, {3, 2}}));
  EXPECT_EQ(tiles_of(head, 2, 43), (Pairs{{0, 2}, {2, 2}, {4, 1}}));  // 28, 28, 16
  EXPECT_EQ(tiles_of(head, 2, 27), (Pairs{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}}));
  EXPECT_EQ(tiles_of(head, 2, 16), (Pairs{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}}));
}

TEST(QueryTiles, SayWhatTheLargestQueryNeeds) {
  const std::string what =
      input_error_of([&] { (void)query_tiles(split(kTiledMask, {0}), 2, 15); });
  EXPECT_EQ(what,
            "scores and outputs of one query take 16 bytes, expected at most the "
            "accumulator's 15");
}

TEST(QueryTiles, OfNoQueriesAreNone) {
  EXPECT_TRUE(query_tiles(split({0, 3, {}}, {0}), 4, 0).empty());
}

TEST(QueryTiles, AreTheFewestThatFit) {
  std::mt19937 random(1);
  std::size_t refused = 0, split_heads = 0;
  for (int round = 0; round < 1000; ++round) {
    const HeadMask mask = random_mask(random, 30);
    std::vector<std::uint16_t> global;
    for (std::uint16_t key = 0; key < mask.keys; ++key) {
      if (random_size(random, 0, 3) == 0) global.push_back(key);
    }
    const SparseHead head = split(mask, global);
    const std::size_t value_dim = random_size(random, 1, 20);
    const std::uint64_t buffer = random_size(random, 1, 1200);
    const auto expected = fewest(mask, global, value_dim, buffer);
    if (expected) {
      EXPECT_EQ(tiles_of(head, value_dim, buffer), *expected);
      for (const auto& [first, count] : *expected) {
        EXPECT_EQ(tile_bytes(head, {first, count}, value_dim),
                  counted_bytes(mask, global, first, count, value_dim));
      }
      split_heads += expected->size() > 1 ? 1 : 0;
    } else {
      EXPECT_THROW((void)query_tiles(head, value_dim, buffer), InputError);
      ++refused;
    }
  }
  EXPECT_GT(refused, 50U);
  EXPECT_GT(split_heads, 200U);
}

TEST(QueryTiles, OfTheLongestHeadAreFoundQuickly) {
  // 65,535 tiles of one query, which a file may ask for: trying every number of tiles would mean
  // two thousand million of them.
  const SparseHead head = split({kMaxSparseTokens, 1, std::vector<std::uint8_t>(65535, 0)}, {});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(query_tiles(head, 4096, 4 * 4096).size(), kMaxSparseTokens);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

}  // namespace
}  // namespace systole::hw

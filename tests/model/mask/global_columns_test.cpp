#include "model/mask/global_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "hw/attention/timing/attention_cycles.h"
#include "model/mask/attention_mask.h"
#include "tests/support/shared_data.h"

namespace systole::model {
namespace {

using testing::ElementsAre;

constexpr std::size_t kDim = 64;

hw::Machine::Attention array_of(std::uint32_t lines, hw::SparserMapping mapping) {
  hw::Machine::Attention array;
  array.lines = lines;
  array.mapping = mapping;
  return array;
}

std::uint64_t cycles_of(const hw::SparseHead& head, const hw::Machine::Attention& array) {
  return hw::sddmm_cycles(head, kDim, array).total();
}

/// One head; any density, with columns much denser or emptier than others.
AttentionMask random_mask(std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return random() % limit; };
  const AttentionShape shape{1, 1, 1 + below(24), 1 + below(24)};
  AttentionMask mask(shape);
  for (std::size_t key = 0; key < shape.keys; ++key) {
    const std::size_t percent = std::array<std::size_t, 4>{0, 10, 60, 100}[below(4)];
    for (std::size_t query = 0; query < shape.queries; ++query) {
      if (below(100) < percent) mask.keep(0, 0, query, key);
    }
  }
  return mask;
}

std::size_t column_kept(const AttentionMask& mask, std::size_t key) {
  std::size_t kept = 0;
  for (std::size_t query = 0; query < mask.shape().queries; ++query) {
    kept += mask.kept(0, 0, query, key) ? 1 : 0;
  }
  return kept;
}

/// A split keeps the cells of its mask, all of them and in order.
void expect_split_of(const AttentionMask& mask, const hw::SparseHead& head) {
  ASSERT_NO_THROW(hw::check_sparse_head(head));
  EXPECT_TRUE(std::is_sorted(head.sparse_columns.begin(), head.sparse_columns.end()));
  AttentionMask found(mask.shape());
  for (std::size_t i = 0; i < head.dense_keep.size(); ++i) {
    const std::size_t key = head.dense_columns[i / head.queries];
    if (head.dense_keep[i]) found.keep(0, 0, i % head.queries, key);
  }
  for (std::size_t c = 0; c < head.sparse_columns.size(); ++c) {
    for (auto i = head.column_pointers[c]; i < head.column_pointers[c + 1]; ++i) {
      found.keep(0, 0, head.row_indices[i], head.sparse_columns[c]);
    }
  }
  EXPECT_EQ(head.kept(), mask.kept_count());
  for (std::size_t cell = 0; cell < mask.shape().cells(); ++cell) {
    ASSERT_EQ(found.kept(cell), mask.kept(cell)) << cell;
  }
}

TEST(GlobalColumns, ThresholdIsThePublishedShareOfTheQueries) {
  EXPECT_EQ(default_threshold(197), 50U);
  EXPECT_EQ(default_threshold(394), 100U);
  EXPECT_EQ(default_threshold(65), 16U);        // 16.497
  EXPECT_EQ(default_threshold(65535), 16633U);  // 16633.25
  EXPECT_EQ(default_threshold(1), 0U);
}

TEST(GlobalColumns, AreSplitOffInTheOrderGiven) {
  AttentionMask mask({1, 1, 2, 4});
  for (const std::size_t cell : {0U, 2U, 4U, 7U}) mask.keep(cell);
  const hw::SparseHead head = with_global_columns(mask.head(0, 0), {3, 0});
  EXPECT_THAT(head.dense_columns, ElementsAre(3, 0));
  EXPECT_THAT(head.dense_keep, ElementsAre(false, true, true, true));
  EXPECT_THAT(head.sparse_columns, ElementsAre(1, 2));
  EXPECT_THAT(head.column_pointers, ElementsAre(0, 0, 1));
  EXPECT_THAT(head.row_indices, ElementsAre(0));
}

TEST(GlobalColumns, AreASetOfTheKeysOfAWholeHead) {
  const hw::SparseHead whole = AttentionMask({1, 1, 2, 4}).head(0, 0);
  EXPECT_THROW(with_global_columns(whole, {1, 2, 1}), std::invalid_argument);
  EXPECT_THROW(with_global_columns(whole, {4}), std::invalid_argument);
  const hw::SparseHead split = with_global_columns(whole, {1});
  EXPECT_THROW(with_global_columns(split, {2}), std::invalid_argument);
}

TEST(GlobalColumns, ByThresholdKeepMoreCellsThanIt) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const AttentionMask mask = random_mask(random);
    const std::size_t threshold = random() % 26;
    const hw::SparseHead head = split_by_threshold(mask.head(0, 0), threshold);
    expect_split_of(mask, head);
    std::vector<std::uint16_t> expected;
    for (std::size_t key = 0; key < mask.shape().keys; ++key) {
      if (column_kept(mask, key) > threshold) expected.push_back(static_cast<std::uint16_t>(key));
    }
    EXPECT_EQ(head.dense_columns, expected);
  }
}

TEST(GlobalColumns, ByCyclesBeatEveryOtherNumberOfThem) {
  std::mt19937 random(2);
  for (int round = 0; round < 400; ++round) {
    const AttentionMask mask = random_mask(random);
    const auto array = array_of(
        2 + static_cast<std::uint32_t>(random() % 12),
        round % 2 == 0 ? hw::SparserMapping::kColumnPerLine : hw::SparserMapping::kBroadcast);
    const hw::SparseHead whole = mask.head(0, 0);
    const hw::SparseHead head = split_by_cycles(whole, kDim, array);
    expect_split_of(mask, head);

    std::vector<std::uint16_t> ranked(mask.shape().keys), best, columns;
    std::iota(ranked.begin(), ranked.end(), std::uint16_t{0});
    std::stable_sort(ranked.begin(), ranked.end(), [&](std::uint16_t a, std::uint16_t b) {
      return column_kept(mask, a) > column_kept(mask, b);
    });
    std::uint64_t least = cycles_of(whole, array);
    for (const std::uint16_t key : ranked) {
      columns.insert(std::upper_bound(columns.begin(), columns.end(), key), key);
      const std::uint64_t cycles = cycles_of(with_global_columns(whole, columns), array);
      if (cycles >= least) continue;
      least = cycles;
      best = columns;
    }
    EXPECT_EQ(cycles_of(head, array), least);
    EXPECT_EQ(head.dense_columns, best);
  }
}

TEST(GlobalColumns, OfEmptyAndFullHeadsCostWhatTheyMust) {
  const auto array = array_of(8, hw::SparserMapping::kColumnPerLine);
  const hw::SparseHead empty = AttentionMask({1, 1, 9, 5}).head(0, 0);
  EXPECT_EQ(split_by_cycles(empty, kDim, array).dense_columns.size(), 0U);
  EXPECT_EQ(split_by_threshold(empty, 0).dense_columns.size(), 0U);
  AttentionMask full({1, 1, 8, 5});
  for (std::size_t cell = 0; cell < 40; ++cell) full.keep(cell);
  const hw::SparseHead dense = split_by_cycles(full.head(0, 0), kDim, array);
  EXPECT_THAT(dense.dense_columns, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(cycles_of(dense, array), 5U * 8);  // a query per line, 8 cycles per score
}

/// Heads of the most keys: a choice among 65,536 splits takes no more than a moment.
TEST(GlobalColumns, OfTheWidestHeadsAreFoundAtOnce) {
  std::mt19937 random(3);
  AttentionMask mask({1, 1, 8, 65535});
  for (std::size_t cell = 0; cell < mask.shape().cells(); ++cell) {
    if (random() % 3 == 0) mask.keep(cell);
  }
  const hw::SparseHead whole = mask.head(0, 0);
  for (const auto mapping : {hw::SparserMapping::kColumnPerLine, hw::SparserMapping::kBroadcast}) {
    const auto array = array_of(64, mapping);
    EXPECT_LE(cycles_of(split_by_cycles(whole, kDim, array), array), cycles_of(whole, array));
  }
}

TEST(CscBytes, GrowWithTheWidthOfIndicesAndPointers) {
  const auto bytes = [](std::size_t queries, std::size_t keys) {
    AttentionMask mask({1, 1, queries, keys});
    for (std::size_t cell = 0; cell < queries * keys; ++cell) mask.keep(cell);
    return csc_bytes(mask.head(0, 0));
  };
  EXPECT_EQ(bytes(256, 2), 256U * 2 + 3 * 2);
  EXPECT_EQ(bytes(257, 2), 2 * 257U * 2 + 3 * 2);
  EXPECT_EQ(bytes(255, 257), 65535U + 258 * 2);
  EXPECT_EQ(bytes(256, 256), 65536U + 257 * 4);
  EXPECT_EQ(csc_bytes(AttentionMask({1, 1, 3, 4}).head(0, 0)), 5U * 2);
}

/// The mask of DeiT-Tiny at 95 % sparsity, as its authors published it.
class DeitTiny : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = shared_data("vitcod/deit_tiny_0.95_pruned.npy");
    if (path.empty()) GTEST_SKIP() << "NOT TESTED: the DeiT-Tiny mask, its file is not there";
    const AttentionMask mask = load_mask(Npy::open(path));
    for (std::size_t i = 0; i < 36; ++i) whole_.push_back(mask.head(i / 3, i % 3));
  }

  std::vector<hw::SparseHead> whole_;
};

TEST_F(DeitTiny, SplitsByThresholdAsPublished) {
  const std::vector<std::size_t> published = {1, 10, 1, 1,  1, 1, 70, 1, 1,  1,  1,  1,
                                              1, 1,  1, 20, 3, 1, 17, 1, 1,  1,  1,  1,
                                              1, 5,  1, 9,  1, 7, 10, 6, 15, 31, 21, 28};
  std::vector<std::size_t> global, csc(12);
  std::size_t dense_cells = 0, dense_kept = 0, sparse_kept = 0;
  for (std::size_t i = 0; i < whole_.size(); ++i) {
    const hw::SparseHead head = split_by_threshold(whole_[i], default_threshold(197));
    global.push_back(head.dense_columns.size());
    dense_cells += head.dense_cells();
    dense_kept += head.dense_kept();
    sparse_kept += head.sparse_kept();
    csc[i / 3] += csc_bytes(head);
  }
  EXPECT_EQ(global, published);
  EXPECT_EQ(std::accumulate(global.begin(), global.end(), std::size_t{0}), 274U);
  EXPECT_EQ(dense_cells, 53978U);
  EXPECT_EQ(dense_kept, 34508U);
  EXPECT_EQ(sparse_kept, 39891U);
  EXPECT_EQ(std::accumulate(csc.begin(), csc.end(), std::size_t{0}), 53599U);
  EXPECT_EQ(*std::max_element(csc.begin(), csc.end()), 8144U);
}

TEST_F(DeitTiny, SplitsByCyclesFasterThanByThreshold) {
  const auto array = array_of(64, hw::SparserMapping::kColumnPerLine);
  std::uint64_t by_threshold = 0, by_cycles = 0;
  std::size_t global = 0;
  for (const hw::SparseHead& whole : whole_) {
    const hw::SparseHead head = split_by_cycles(whole, kDim, array);
    by_threshold += cycles_of(split_by_threshold(whole, 50), array);
    by_cycles += cycles_of(head, array);
    global += head.dense_columns.size();
    EXPECT_LE(cycles_of(head, array), cycles_of(whole, array));
  }
  EXPECT_EQ(by_threshold, 13656U);
  EXPECT_EQ(by_cycles, 11080U);
  EXPECT_EQ(global, 175U);  // 4.9 in a head
}

}  // namespace
}  // namespace systole::model

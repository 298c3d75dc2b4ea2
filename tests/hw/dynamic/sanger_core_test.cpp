#include "hw/dynamic/sanger_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

namespace systole::hw::dynamic {
namespace {

constexpr OperandStream kFast{1e9, 1.0};

/// Cells [queries][keys] as a head without global columns.
SparseHead head_of(const std::vector<bool>& cells, std::size_t queries, std::size_t keys) {
  SparseHead head;
  head.queries = queries;
  head.keys = keys;
  head.column_pointers.push_back(0);
  for (std::size_t key = 0; key < keys; ++key) {
    head.sparse_columns.push_back(static_cast<std::uint16_t>(key));
    for (std::size_t query = 0; query < queries; ++query) {
      if (cells[query * keys + key]) head.row_indices.push_back(static_cast<std::uint16_t>(query));
    }
    head.column_pointers.push_back(static_cast<std::uint32_t>(head.row_indices.size()));
  }
  return head;
}

std::vector<bool> random_cells(std::size_t cells, unsigned period, std::mt19937& random) {
  std::vector<bool> made(cells);
  for (std::size_t i = 0; i < cells; ++i) made[i] = random() % period == 0;
  return made;
}

SangerArray array_of(std::uint32_t rows, bool own) {
  SangerArray array;
  array.rows = rows;
  array.own_predictor = own;
  return array;
}

/// 64 queries keep all of 128 keys: four rows each in a tile of 64 keys, so 256 rows in eight
/// passes, for each of two tiles.
TEST(Sanger, ADenseHeadFillsEveryElement) {
  const SparseHead head = head_of(std::vector<bool>(64 * 128, true), 64, 128);
  const SangerCycles run = run_sanger({head}, 32, array_of(32, false), kFast);
  EXPECT_EQ(run.passes, 16U);
  EXPECT_EQ(run.load(), 1.0);
  EXPECT_EQ(run.prediction, 64U * 128 * 32 / 512);
  EXPECT_EQ(run.packing, 2U * 2 * 64);
  EXPECT_EQ(run.scores, 16U * (32 + kSangerExpCycles) + 32 + 64);
  EXPECT_EQ(run.context, 16U * 32);
  // The first tile is packed before the array begins, the second meanwhile.
  EXPECT_EQ(run.total, run.prediction + 128 + run.scores + run.context + 1) << "1: all bytes";
  EXPECT_EQ(run.products, 2U * 64 * 128 * 32);
  EXPECT_EQ(run.predictions, 64U * 128 * 32);
  EXPECT_EQ(run.moved_bytes, (2 * 64 + 2 * 128) * 32.0);
}

/// As the authors' test drives their RTL: eight by eight keys of eight features, four elements a
/// row. A phase takes d cycles and as many as there are rows and keys, the exponential three, and
/// the sums leave in five.
TEST(Sanger, CommonPhasesAreThoseOfTheReleasedTest) {
  SangerArray array{8, 4, 8, true, true};
  std::vector<bool> cells(64);
  for (std::size_t query = 0; query < 8; ++query) {
    for (std::size_t i = 0; i < 4; ++i) cells[query * 8 + (query + 2 * i) % 8] = true;
  }
  const SangerCycles run = run_sanger({head_of(cells, 8, 8)}, 8, array, kFast);
  EXPECT_EQ(run.passes, 1U);
  EXPECT_EQ(run.scores, 24U + 3);
  EXPECT_EQ(run.context, 24U + 5);
}

/// Rows of every query and tile, filled pass by pass as a person would.
std::uint64_t passes_by_hand(const std::vector<bool>& cells, std::size_t queries, std::size_t keys,
                             const SangerArray& array) {
  std::uint64_t passes = 0;
  for (std::size_t first = 0; first < keys; first += array.tile_keys) {
    std::uint64_t rows = 0, elements = array.row_pes;  // the row in hand is full: none
    for (std::size_t query = 0; query < queries; ++query) {
      elements = array.row_pes;
      for (std::size_t key = first; key < std::min(keys, first + array.tile_keys); ++key) {
        if (!cells[query * keys + key]) continue;
        if (elements == array.row_pes) {
          ++rows;
          elements = 0;
        }
        ++elements;
      }
    }
    while (rows > 0) {
      rows -= std::min<std::uint64_t>(rows, array.rows);
      ++passes;
    }
  }
  return passes;
}

TEST(Sanger, PacksHeadsOfEveryShape) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const std::size_t queries = 1 + random() % 90, keys = 1 + random() % 150;
    SangerArray array = array_of(1 + random() % 40, random() % 2 == 0);
    array.row_pes = 1 + random() % 20;
    array.tile_keys = 1 + random() % 80;
    array.common_phases = random() % 2 == 0;
    const std::vector<bool> cells = random_cells(queries * keys, 1 + random() % 20, random);
    const SparseHead head = head_of(cells, queries, keys);
    const std::size_t dim = 1 + random() % 64;
    const SangerCycles run = run_sanger({head}, dim, array, kFast);
    EXPECT_EQ(run.passes, passes_by_hand(cells, queries, keys, array));
    EXPECT_EQ(run.kept, head.kept());
    EXPECT_LE(run.load(), 1.0);
    EXPECT_GE(run.total, run.prediction + (run.passes == 0 ? 0 : run.scores + run.context));
  }
}

/// No unit is busy for longer than the run; more of anything is never slower; one after the other
/// is the slowest there is.
TEST(Sanger, UnitsOverlapWithinBounds) {
  std::mt19937 random(9);
  for (int i = 0; i < 60; ++i) {
    std::vector<SparseHead> heads;
    const std::size_t queries = 20 + random() % 90, keys = 20 + random() % 90;
    for (int h = 0; h < 6; ++h) {
      heads.push_back(
          head_of(random_cells(queries * keys, 1 + random() % 30, random), queries, keys));
    }
    const OperandStream stream{1.0 + static_cast<double>(random() % 200), 2.0};
    SangerArray array = array_of(8 << random() % 3, true);
    const SangerCycles own = run_sanger(heads, 32, array, stream);
    EXPECT_GE(own.total, std::max({own.memory, own.prediction, own.scores + own.context}));
    EXPECT_LE(own.total, own.memory + own.prediction + own.packing + own.scores + own.context + 6);
    OperandStream twice = stream;
    twice.bytes_per_cycle *= 2;
    EXPECT_LE(run_sanger(heads, 32, array, twice).total, own.total);
    array.common_phases = true;
    EXPECT_GE(run_sanger(heads, 32, array, stream).total, own.total);
  }
}

/// The second head's 96 cycles of loading are over while the first one is computed, and so on.
TEST(Sanger, LoadsAHeadWhileTheOneBeforeIsComputed) {
  const std::vector<SparseHead> heads(3, head_of(std::vector<bool>(32 * 32, true), 32, 32));
  const OperandStream stream{16.0, 1.0};
  const SangerCycles one = run_sanger({heads[0]}, 16, array_of(32, false), stream);
  const SangerCycles three = run_sanger(heads, 16, array_of(32, false), stream);
  EXPECT_EQ(one.total, 96U + one.prediction + one.packing + one.scores + one.context);
  EXPECT_EQ(three.total, one.total + 2 * (one.total - 96));
  EXPECT_EQ(three.memory, 3 * one.memory);
}

/// A dense head of 32 passes, then two with a cell each; a load takes 384 cycles. The first head is
/// over at 384 + 80 (prediction) + 64 (packing) + 32 passes of 35 and the skew of 96 = 1744. Only
/// then is there room for the third, whose rows come in until 2128, and which takes 80 + 64 + 35
/// + 96.
TEST(Sanger, HasRoomForTwoHeads) {
  std::vector<bool> cell(32 * 32, false);
  cell[5] = true;
  const SparseHead dense = head_of(std::vector<bool>(32 * 32, true), 32, 32);
  const SparseHead sparse = head_of(cell, 32, 32);
  SangerArray array = array_of(32, true);
  array.row_pes = 1;
  EXPECT_EQ(run_sanger({dense, sparse, sparse}, 16, array, {4.0, 1.0}).total, 2403U);
}

TEST(Sanger, RefusesWhatItCannotRun) {
  SparseHead global = head_of(std::vector<bool>(4, true), 2, 2);
  global.dense_columns.push_back(0);
  const SparseHead head = head_of(std::vector<bool>(4, true), 2, 2);
  const SangerArray array;
  EXPECT_THROW(static_cast<void>(run_sanger({global}, 8, array, kFast)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(run_sanger({head}, 0, array, kFast)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(run_sanger({head}, 8, array, {0.0, 1.0})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(run_sanger({head}, 8, array_of(0, true), kFast)),
               std::invalid_argument);
}

/// Of whole numbers up to 7 the rounding loses nothing: the mask is that of the softmax itself.
TEST(PredictMask, IsTheThresholdOfTheSoftmax) {
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i) {
    const std::size_t queries = 1 + random() % 12, keys = 1 + random() % 20, dim = 1 + random() % 9;
    const auto numbers = [&](std::size_t count) {
      std::vector<double> values(count);
      for (double& value : values) value = static_cast<double>(random() % 15) - 7.0;
      values[0] = 7.0;
      return values;
    };
    const std::vector<double> q = numbers(queries * dim), k = numbers(keys * dim);
    const double threshold = static_cast<double>(random() % 100) / 200.0;
    const std::vector<std::uint8_t> mask = predict_mask(q, k, dim, threshold);
    for (std::size_t a = 0; a < queries; ++a) {
      std::vector<double> weight(keys);
      double sum = 0.0, largest = 0.0;
      for (std::size_t b = 0; b < keys; ++b) {
        double score = 0.0;
        for (std::size_t f = 0; f < dim; ++f) score += q[a * dim + f] * k[b * dim + f];
        sum += weight[b] = std::exp(score / std::sqrt(static_cast<double>(dim)));
        largest = std::max(largest, weight[b]);
      }
      for (std::size_t b = 0; b < keys; ++b) {
        if (std::fabs(weight[b] / sum - threshold) < 1e-9 || weight[b] > largest * (1 - 1e-9))
          continue;
        EXPECT_EQ(mask[a * keys + b] != 0, weight[b] / sum > threshold);
      }
    }
  }
}

TEST(PredictMask, RoundsToFourBits) {
  // 0.49 of a step is lost: both keys are alike to the first query, whose mask has both.
  const std::vector<std::uint8_t> mask =
      predict_mask({7.0, 0.0, 0.0, 7.0}, {7.0, 0.49, 7.0, -0.49}, 2, 0.4999);
  EXPECT_EQ(mask, (std::vector<std::uint8_t>{1, 1, 1, 1}));
  EXPECT_EQ(predict_mask({1.0, 0.0}, {1.0, 0.0, 0.0, 1.0}, 2, 0.9),
            (std::vector<std::uint8_t>{1, 0}))
      << "the largest cell stays";
  EXPECT_THROW(static_cast<void>(predict_mask({1.0}, {1.0}, 2, 0.5)), std::invalid_argument);
}

}  // namespace
}  // namespace systole::hw::dynamic

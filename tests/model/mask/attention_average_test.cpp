#include "model/mask/attention_average.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "model/float/float_vit.h"
#include "model/format/npy.h"
#include "tests/model/vision.h"

namespace systole::model {
namespace {

AttentionAverage average_of(const char* name, std::size_t pictures) {
  const FloatVit vit(load_vit_checkpoint(checkpoint_path(name)));
  const EncoderShape& encoder = vit.shape().encoder;
  const std::size_t tokens = vit.shape().tokens();
  AttentionAverage average({encoder.layers, encoder.heads, tokens, tokens});
  const Dataset data = digits("calib");
  for (std::size_t i = 0; i < pictures; ++i) {
    static_cast<void>(vit.logits(patches_of(data, i, vit.shape()), &average));
  }
  return average;
}

/// PyTorch averaged the same network over 1437 pictures: those of fewer are near, and nearer than
/// those of any other head.
TEST(AttentionAverage, IsThatOfPyTorch) {
  const AttentionAverage ours = average_of("vit65", 64);
  const std::vector<double> averages = ours.averages();
  const Npy file = Npy::open(source_path("traces/data/vit65_attention.npy"));
  const std::vector<double> theirs = file.numbers(0, file.element_count());
  ASSERT_EQ(averages.size(), theirs.size());
  const std::size_t cells = ours.shape().head_cells(), heads = averages.size() / cells;
  const auto distance = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t i = 0; i < cells; ++i) {
      sum += std::fabs(averages[a * cells + i] - theirs[b * cells + i]);
    }
    return sum / static_cast<double>(ours.shape().queries);
  };
  for (std::size_t head = 0; head < heads; ++head) {
    EXPECT_LT(distance(head, head), 0.25) << head;  // 2: nothing in common
    for (std::size_t other = 0; other < heads; ++other) {
      if (other != head) EXPECT_LT(distance(head, head), distance(head, other)) << other;
    }
  }
}

TEST(AttentionAverage, OfPrunedCellsIsZero) {
  const AttentionAverage ours = average_of("vit65-sparse90", 2);
  const std::vector<double> averages = ours.averages();
  const VitCheckpoint checkpoint = load_vit_checkpoint(checkpoint_path("vit65-sparse90"));
  std::size_t cell = 0;
  for (const FloatBlock& block : checkpoint.blocks) {
    for (const std::uint8_t keep : block.keep) EXPECT_EQ(averages[cell++] > 0.0, keep != 0);
  }
  EXPECT_EQ(cell, averages.size());
}

TEST(AttentionAverage, WeighsInputsAlike) {
  AttentionAverage average({1, 2, 2, 2});
  for (const double share : {0.25, 0.5, 0.0}) {
    for (const std::size_t head : {0U, 1U}) {
      const double attention[] = {share, 1 - share, head == 0 ? 1.0 : share, 0.0};
      average.observe_attention(0, head, attention, 2);
    }
  }
  const std::vector<double> expected{0.25, 0.75, 1.0, 0.0, 0.25, 0.75, 0.25, 0.0};
  EXPECT_EQ(average.averages(), expected);
}

TEST(AttentionAverage, RefusesWhatItsShapeDoesNotHave) {
  EXPECT_THROW(AttentionAverage({1, 1, 2, 3}), std::invalid_argument);
  AttentionAverage average({1, 2, 2, 2});
  const double attention[] = {1, 0, 0, 1};
  EXPECT_THROW(average.observe_attention(1, 0, attention, 2), std::invalid_argument);
  EXPECT_THROW(average.observe_attention(0, 2, attention, 2), std::invalid_argument);
  EXPECT_THROW(average.observe_attention(0, 0, attention, 1), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(average.averages()), std::logic_error);
  average.observe_attention(0, 0, attention, 2);
  EXPECT_THROW(static_cast<void>(average.averages()), std::logic_error);
  const double bad[] = {1, std::numeric_limits<double>::quiet_NaN(), 0, 1};
  EXPECT_THROW(average.observe_attention(0, 1, bad, 2), hw::InputError);
}

/// A random mask with a key in every row.
AttentionMask random_mask(const AttentionShape& shape, std::mt19937& random, unsigned period) {
  AttentionMask mask(shape);
  for (std::size_t cell = 0; cell < shape.cells(); ++cell) {
    const std::size_t query = cell / shape.keys % shape.queries;
    if (cell % shape.keys == query % shape.keys || random() % period == 0) {
      mask.keep(cell);
    }
  }
  return mask;
}

TEST(ShuffledMask, KeepsAsManyCellsInEveryHeadAndAKeyInEveryRow) {
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const AttentionShape shape{1 + random() % 3, 1 + random() % 3, 2 + random() % 30,
                               2 + random() % 30};
    AttentionMask mask = random_mask(shape, random, 2 + random() % 12);
    const bool cls = random() % 2 == 0;
    for (std::size_t cell = 0; cls && cell < shape.cells(); ++cell) {
      if (cell % shape.keys == 0 || cell / shape.keys % shape.queries == 0) mask.keep(cell);
    }
    const AttentionMask other = shuffled(mask, cls, 1 + random() % 9);
    EXPECT_FALSE(other.first_empty_row());
    for (std::size_t layer = 0; layer < shape.layers; ++layer) {
      for (std::size_t head = 0; head < shape.heads; ++head) {
        EXPECT_EQ(other.kept_count(layer, head), mask.kept_count(layer, head));
        for (std::size_t q = 0; cls && q < shape.queries; ++q) {
          EXPECT_TRUE(other.kept(layer, head, q, 0));
        }
        for (std::size_t k = 0; cls && k < shape.keys; ++k) {
          EXPECT_TRUE(other.kept(layer, head, 0, k));
        }
      }
    }
  }
}

/// Where every cell goes is equally likely, within what 400 draws tell.
TEST(ShuffledMask, PutsCellsAnywhere) {
  const AttentionShape shape{1, 1, 9, 9};
  AttentionMask mask(shape);
  for (std::size_t q = 0; q < 9; ++q) mask.keep(0, 0, q, q);
  for (std::size_t k = 0; k < 9; ++k) mask.keep(0, 0, 3, k);
  std::vector<int> kept(shape.cells());
  std::set<std::vector<bool>> different;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const AttentionMask other = shuffled(mask, false, seed);
    std::vector<bool> cells;
    for (std::size_t cell = 0; cell < shape.cells(); ++cell) {
      cells.push_back(other.kept(cell));
      kept[cell] += other.kept(cell) ? 1 : 0;
    }
    different.insert(cells);
  }
  EXPECT_EQ(different.size(), 400U);
  // 17 of 81 cells: 84 times each, deviation 8.
  for (const int count : kept) EXPECT_NEAR(count, 84, 40);
}

}  // namespace
}  // namespace systole::model

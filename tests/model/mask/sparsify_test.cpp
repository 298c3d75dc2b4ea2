#include "model/mask/sparsify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/input_error.h"
#include "tests/support/npy_bytes.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_directory.h"

namespace systole::model {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::StartsWith;

class Sparsify : public testing::Test {
 protected:
  RankedMaps ranked(const AttentionShape& shape, const std::vector<float>& values,
                    std::size_t margin = kPublishedMargin) const {
    const std::string path = directory_.path("a.npy");
    write_npy(path, {shape.layers, shape.heads, shape.queries, shape.keys}, values);
    return RankedMaps(Npy::open(path), margin);
  }
  /// The error of a file, without its name.
  std::string error_of(const std::string& bytes) const {
    const std::string path = directory_.write("a.npy", bytes);
    const std::string error = input_error_of([&] { RankedMaps maps(Npy::open(path)); });
    const std::string begin = path + ": ";
    return error.rfind(begin, 0) == 0 ? error.substr(begin.size()) : error;
  }

  TempDirectory directory_;
};

/// Maps whose rows sum to 1: from nearly equal entries to nearly all in one, with many equal ones.
std::vector<float> random_attention(const AttentionShape& shape, std::mt19937& random) {
  std::vector<float> values(shape.cells());
  for (std::size_t row = 0; row < values.size(); row += shape.keys) {
    const double sharpness = std::uniform_real_distribution<>(0, 12)(random);
    double sum = 0;
    for (std::size_t key = 0; key < shape.keys; ++key) {
      const double level = static_cast<double>(random() % 9) / 8;
      values[row + key] = static_cast<float>(std::exp(sharpness * level));
      sum += values[row + key];
    }
    for (std::size_t key = 0; key < shape.keys; ++key) {
      values[row + key] = static_cast<float>(values[row + key] / sum);
    }
  }
  return values;
}

/// The rule, applied to one row step by step: the largest entry of those left, the lower key of
/// equal ones, until the sum reaches theta, and `margin` more.
std::vector<bool> row_by_hand(const std::vector<float>& row, double theta, std::size_t margin) {
  std::vector<bool> kept(row.size(), false);
  const auto take = [&] {
    std::size_t largest = row.size();
    for (std::size_t key = 0; key < row.size(); ++key) {
      if (!kept[key] && (largest == row.size() || row[key] > row[largest])) largest = key;
    }
    if (largest == row.size()) return std::numeric_limits<double>::infinity();
    kept[largest] = true;
    return static_cast<double>(row[largest]);
  };
  double sum = 0;
  while (sum < theta) sum += take();
  for (std::size_t i = 0; i < margin; ++i) take();
  return kept;
}

std::vector<std::size_t> keys_of(const AttentionMask& mask, std::size_t query) {
  std::vector<std::size_t> keys;
  for (std::size_t key = 0; key < mask.shape().keys; ++key) {
    if (mask.kept(0, 0, query, key)) keys.push_back(key);
  }
  return keys;
}

TEST_F(Sparsify, KeepsOneEntryMoreThanThetaNeeds) {
  const RankedMaps maps = ranked({1, 1, 1, 5}, {0.0625F, 0.5F, 0.0625F, 0.125F, 0.25F});
  EXPECT_THAT(keys_of(maps.mask(0.5, false), 0), ElementsAre(1, 4));
  EXPECT_THAT(keys_of(maps.mask(std::nextafter(0.5, 1), false), 0), ElementsAre(1, 3, 4));
  EXPECT_THAT(keys_of(maps.mask(0.75, false), 0), ElementsAre(1, 3, 4));
  EXPECT_THAT(keys_of(maps.mask(0.875, false), 0), ElementsAre(0, 1, 3, 4));  // not its equal, 2
  EXPECT_THAT(keys_of(maps.mask(0.9, false), 0), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(keys_of(maps.mask(2, false), 0), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(keys_of(maps.mask(1e-9, false), 0), ElementsAre(1, 4));
}

TEST_F(Sparsify, KeepsAsManyMoreEntriesAsItsMargin) {
  const AttentionShape shape{1, 1, 1, 5};
  const std::vector<float> row{0.0625F, 0.5F, 0.0625F, 0.125F, 0.25F};
  EXPECT_EQ(ranked(shape, row).margin(), 1U);
  EXPECT_THAT(keys_of(ranked(shape, row, 0).mask(0.5, false), 0), ElementsAre(1));
  EXPECT_THAT(keys_of(ranked(shape, row, 0).mask(0.75, false), 0), ElementsAre(1, 4));
  EXPECT_THAT(keys_of(ranked(shape, row, 2).mask(0.5, false), 0), ElementsAre(1, 3, 4));
  EXPECT_THAT(keys_of(ranked(shape, row, 65535).mask(0.5, false), 0), ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(Sparsify, KeepsTheClsRowAndColumnIfAsked) {
  const RankedMaps maps = ranked({1, 1, 3, 3}, {1, 0, 0, 0, 0.75F, 0.25F, 0.75F, 0, 0.25F});
  const AttentionMask mask = maps.mask(0.5, true);
  EXPECT_THAT(keys_of(mask, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(keys_of(mask, 1), ElementsAre(0, 1, 2));
  EXPECT_THAT(keys_of(mask, 2), ElementsAre(0, 2));
  EXPECT_THAT(keys_of(maps.mask(0.5, false), 1), ElementsAre(1, 2));
  EXPECT_EQ(maps.kept_count(0.5, true), 8U);
  EXPECT_EQ(maps.kept_count(0.5, false), 6U);
}

TEST_F(Sparsify, FollowsTheRuleOnMapsOfEveryShape) {
  std::mt19937 random(5);
  for (int round = 0; round < 150; ++round) {
    const auto side = [&](std::size_t most) { return 1 + random() % most; };
    const AttentionShape shape{side(2), side(3), side(12), side(30)};
    const std::vector<float> values = random_attention(shape, random);
    const std::size_t margin = random() % 4;
    const RankedMaps maps = ranked(shape, values, margin);
    const double theta = round % 10 == 0 ? 2 : std::uniform_real_distribution<>(0.01, 1)(random);
    const bool cls = round % 2 == 0;
    const AttentionMask mask = maps.mask(theta, cls);
    for (std::size_t row = 0; row < shape.cells() / shape.keys; ++row) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * shape.keys);
      const auto end = begin + static_cast<std::ptrdiff_t>(shape.keys);
      const std::vector<bool> by_hand = row_by_hand({begin, end}, theta, margin);
      for (std::size_t key = 0; key < shape.keys; ++key) {
        const bool forced = cls && (row % shape.queries == 0 || key == 0);
        ASSERT_EQ(mask.kept(row * shape.keys + key), by_hand[key] || forced) << round;
      }
    }
    EXPECT_EQ(maps.kept_count(theta, cls), mask.kept_count());
    EXPECT_EQ(mask.first_empty_row(), std::nullopt);
  }
}

TEST_F(Sparsify, RefusesThetasThatItsCallerMustNotPass) {
  const RankedMaps maps = ranked({1, 1, 1, 2}, {0.5F, 0.5F});
  for (const double theta : {0.0, -1.0, 2.01, std::nan("")}) {
    EXPECT_THROW((void)maps.mask(theta, false), std::invalid_argument) << theta;
    EXPECT_THROW((void)maps.kept_count(theta, false), std::invalid_argument) << theta;
  }
}

TEST_F(Sparsify, RefusesWhatIsNoAttention) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::string shape = "(1, 2, 1, 2)";
  const auto row_error = [&](float a, float b) {
    return error_of(npy_floats(shape, {0.5F, 0.5F, a, b}));
  };
  EXPECT_EQ(row_error(0.5F, kNan),
            "layer 0, head 1, row 0: key 1: attention is nan, expected a number from 0 to 1");
  EXPECT_EQ(row_error(kInf, 0),
            "layer 0, head 1, row 0: key 0: attention is inf, expected a number from 0 to 1");
  EXPECT_EQ(row_error(-0.25F, 1.25F),
            "layer 0, head 1, row 0: key 0: attention is -0.25, expected a number from 0 to 1");
  EXPECT_EQ(row_error(0.5F, 0.25F),
            "layer 0, head 1, row 0: attention sums to 0.75, expected 1 within 0.001");
  EXPECT_EQ(row_error(0, 0),
            "layer 0, head 1, row 0: attention sums to 0, expected 1 within 0.001");
  EXPECT_EQ(row_error(0.5F, 0.5F - 0.0009F), "no error");
}

TEST_F(Sparsify, RefusesArraysOfAnotherTypeOrShape) {
  EXPECT_EQ(error_of(npy_mask("(1, 1, 1, 2)", std::string(2, '\0'))),
            "elements are BOOL, expected attention as F16, F32 or F64");
  EXPECT_EQ(error_of(npy_of(npy_header("|u1", "(1, 1, 1, 1)"), "\1")),
            "elements are U8, expected attention as F16, F32 or F64");
  EXPECT_THAT(error_of(npy_floats("(1, 2)", {0.5F, 0.5F})),
              StartsWith("shape [1, 2]: expected four dimensions"));
  EXPECT_THAT(error_of(npy_floats("(1, 1, 1, 65536)", std::vector<float>(65536))),
              EndsWith("expected at most 65535 tokens"));
}

TEST_F(Sparsify, ReadsHalfAndDoublePrecision) {
  const auto mask = [&](const std::string& type, const std::string& data) {
    const std::string bytes = npy_of(npy_header(type, "(1, 1, 1, 3)"), data);
    const RankedMaps maps(Npy::open(directory_.write("a.npy", bytes)));
    return keys_of(maps.mask(0.5, false), 0);
  };
  EXPECT_THAT(mask("<f2", std::string("\0\x34\0\x00\0\x3A", 6)), ElementsAre(0, 2));
  const std::string quarter("\0\0\0\0\0\0\xD0\x3F", 8), three("\0\0\0\0\0\0\xE8\x3F", 8);
  EXPECT_THAT(mask("<f8", three + std::string(8, '\0') + quarter), ElementsAre(0, 2));
}

TEST_F(Sparsify, FindsTheThetaClosestToASparsity) {
  std::mt19937 random(6);
  const AttentionShape shape{2, 2, 20, 40};
  const RankedMaps maps = ranked(shape, random_attention(shape, random));
  const auto cells = static_cast<double>(shape.cells());
  for (const bool cls : {false, true}) {
    const auto distance = [&](double theta, double wanted) {
      return std::fabs(1 - static_cast<double>(maps.kept_count(theta, cls)) / cells - wanted);
    };
    for (const double wanted : {0.0, 0.1, 0.5, 0.77, 0.85}) {
      const double found = find_theta(maps, wanted, cls);
      EXPECT_EQ(found * 0x1p20, std::floor(found * 0x1p20));
      for (double theta = 0.001; theta <= 2; theta += 0.001) {
        ASSERT_LE(distance(found, wanted), distance(theta, wanted)) << wanted << " " << theta;
      }
    }
  }
}

TEST_F(Sparsify, RefusesSparsityThatTheRuleCannotReach) {
  std::vector<float> uniform(16, 0.25F);
  const RankedMaps maps = ranked({1, 1, 4, 4}, uniform);
  EXPECT_EQ(maps.mask(find_theta(maps, 0.5, false), false).kept_count(), 8U);
  EXPECT_THAT(input_error_of([&] { find_theta(maps, 0.51, false); }),
              EndsWith("sparsity 0.51: the sparsest mask by theta and margin 1 has 0.500000, "
                       "expected at most that"));
  const RankedMaps without_margin = ranked({1, 1, 4, 4}, uniform, 0);
  EXPECT_EQ(without_margin.mask(find_theta(without_margin, 0.75, false), false).kept_count(), 4U);
  EXPECT_THAT(input_error_of([&] { find_theta(without_margin, 0.76, false); }),
              testing::HasSubstr("theta and margin 0 has 0.750000"));
  EXPECT_THAT(input_error_of([&] { find_theta(maps, 0.5, true); }), testing::HasSubstr("0.375000"));
  for (const double sparsity : {-0.1, 1.0, std::nan("")}) {
    EXPECT_THAT(input_error_of([&] { find_theta(maps, sparsity, false); }),
                EndsWith("expected 0 to less than 1"));
  }
}

/// Average attention of LeViT-128, and the thetas with which its authors prune 80 % of it.
struct LevitStage {
  const char* name;
  AttentionShape shape;
  double theta;
};
const std::array<LevitStage, 5> kLevit{{{"dpt0", {4, 4, 196, 196}, 0.66},
                                        {"subsample0", {1, 8, 49, 196}, 0.94},
                                        {"dpt1", {4, 8, 49, 49}, 0.8},
                                        {"subsample1", {1, 16, 16, 49}, 0.93},
                                        {"dpt2", {4, 12, 16, 16}, 2}}};

std::string levit_path(const LevitStage& stage) {
  return shared_data("vitcod/levit128_average_attention_" + std::string(stage.name) + ".npy");
}

TEST(Levit, IsPrunedByTheRule) {
  std::size_t kept = 0, cells = 0;
  for (const LevitStage& stage : kLevit) {
    const std::string path = levit_path(stage);
    if (path.empty()) GTEST_SKIP() << "NOT TESTED: LeViT-128, its attention maps are not there";
    const Npy array = Npy::open(path);
    const AttentionMask mask = RankedMaps(array).mask(stage.theta, false);
    EXPECT_EQ(mask.shape(), stage.shape);
    const std::size_t keys = stage.shape.keys;
    for (std::size_t first = 0; first < stage.shape.cells(); first += keys) {
      const std::vector<double> values = array.numbers(first, keys);
      const std::vector<bool> by_hand = row_by_hand({values.begin(), values.end()}, stage.theta, 1);
      for (std::size_t key = 0; key < keys; ++key) {
        ASSERT_EQ(mask.kept(first + key), by_hand[key]) << stage.name;
      }
    }
    kept += mask.kept_count();
    cells += stage.shape.cells();
  }
  EXPECT_NEAR(1 - static_cast<double>(kept) / static_cast<double>(cells), 0.80, 0.001);
}

/// Every head's theta is the one that find_theta() finds for that head alone.
TEST_F(Sparsify, FindsAThetaForEveryHead) {
  std::mt19937 random(11);
  for (int round = 0; round < 12; ++round) {
    const AttentionShape shape{1 + random() % 3, 1 + random() % 3, 4 + random() % 12,
                               8 + random() % 24};
    const std::vector<float> values = random_attention(shape, random);
    const bool cls = round % 2 == 0;
    const RankedMaps maps = ranked(shape, values);
    const std::vector<double> thetas = find_head_thetas(maps, 0.4, cls);
    const AttentionMask mask = maps.mask(thetas, cls);
    ASSERT_EQ(thetas.size(), shape.layers * shape.heads);
    for (std::size_t head = 0; head < thetas.size(); ++head) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(head * shape.head_cells());
      const RankedMaps alone =
          ranked({1, 1, shape.queries, shape.keys},
                 {begin, begin + static_cast<std::ptrdiff_t>(shape.head_cells())});
      EXPECT_EQ(thetas[head], find_theta(alone, 0.4, cls)) << head;
      EXPECT_EQ(mask.kept_count(head / shape.heads, head % shape.heads),
                alone.kept_count(thetas[head], cls));
    }
  }
}

TEST_F(Sparsify, NumbersAreAsGoodAsAFile) {
  std::mt19937 random(3);
  const AttentionShape shape{2, 2, 7, 9};
  const std::vector<float> values = random_attention(shape, random);
  const RankedMaps file = ranked(shape, values);
  const RankedMaps numbers(shape, std::vector<double>(values.begin(), values.end()), "mine");
  for (const double theta : {0.2, 0.5, 0.9}) {
    for (std::size_t cell = 0; cell < shape.cells(); ++cell) {
      ASSERT_EQ(numbers.mask(theta, false).kept(cell), file.mask(theta, false).kept(cell));
    }
  }
  EXPECT_THROW(RankedMaps(shape, {1.0}, "mine"), std::invalid_argument);
  std::vector<double> bad(shape.cells(), 0.0);
  EXPECT_THAT(input_error_of([&] { RankedMaps(shape, bad, "mine"); }),
              StartsWith("mine: layer 0, head 0, row 0: attention sums to 0"));
  EXPECT_THROW(static_cast<void>(numbers.mask(std::vector<double>{0.5}, false)),
               std::invalid_argument);
}

}  // namespace
}  // namespace systole::model

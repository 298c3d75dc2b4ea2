#include "hw/dynamic/spatten_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

namespace systole::hw::dynamic {
namespace {

constexpr OperandStream kNoWait{1e9, 1.0};

AttentionProbabilities random_attention(std::size_t layers, std::size_t heads, std::size_t tokens,
                                        std::mt19937& random) {
  AttentionProbabilities network{layers, heads, tokens, {}, {}};
  for (std::size_t row = 0; row < layers * heads * tokens; ++row) {
    std::vector<double> weights(tokens);
    double sum = 0;
    for (double& weight : weights) sum += weight = 1.0 + static_cast<double>(random() % 1000);
    for (const double weight : weights) network.attention.push_back(weight / sum);
  }
  return network;
}

SpattenSchedule all_of(const AttentionProbabilities& network) {
  return {std::vector<std::size_t>(network.layers, network.tokens),
          std::vector<std::size_t>(network.layers, network.heads), 1.0};
}

/// Without pruning a head is a pipeline of three stages that all queries pass at the pace of the
/// slowest.
TEST(Spatten, AWholeNetworkIsAPipelineOfQueries) {
  std::mt19937 random(1);
  for (int i = 0; i < 30; ++i) {
    const std::size_t layers = 1 + random() % 3, heads = 1 + random() % 3, n = 1 + random() % 40;
    SpattenArray array{static_cast<std::uint32_t>(16 * (1 + random() % 4)),
                       static_cast<std::uint32_t>(16 * (1 + random() % 4)), 16};
    const AttentionProbabilities network = random_attention(layers, heads, n, random);
    const SpattenCycles run = run_spatten(network, 16, all_of(network), array, kNoWait);
    const std::uint64_t scores = (n + array.key_macs / 16 - 1) / (array.key_macs / 16);
    const std::uint64_t values = (n + array.value_macs / 16 - 1) / (array.value_macs / 16);
    const std::uint64_t head = 2 * scores + values + (n - 1) * std::max(scores, values);
    EXPECT_NEAR(static_cast<double>(run.total),
                static_cast<double>(layers * (heads * head + kSpattenDrain)), 1.0);
    EXPECT_EQ(run.top_k, 0U);
    EXPECT_EQ(run.selection, 0U);
    EXPECT_EQ(run.cells, layers * heads * n * n);
    EXPECT_EQ(run.value_cells, run.cells);
  }
}

/// The tokens that have been paid most attention so far, by a count that knows no machine.
TEST(Spatten, KeepsTheTokensOfMostImportance) {
  std::mt19937 random(2);
  for (int i = 0; i < 20; ++i) {
    const std::size_t layers = 4, heads = 2, n = 6 + random() % 20;
    const AttentionProbabilities network = random_attention(layers, heads, n, random);
    SpattenSchedule schedule = all_of(network);
    for (std::size_t layer = 1; layer < layers; ++layer) {
      schedule.tokens[layer] = 1 + random() % schedule.tokens[layer - 1];
    }
    const SpattenCycles run = run_spatten(network, 8, schedule, SpattenArray{}, kNoWait);
    std::vector<std::uint32_t> kept;
    for (std::uint32_t token = 0; token < n; ++token) kept.push_back(token);
    std::map<std::uint32_t, double> importance;
    for (std::size_t layer = 0; layer < layers; ++layer) {
      while (kept.size() > schedule.tokens[layer]) {
        auto least = std::min_element(kept.begin(), kept.end(), [&](auto a, auto b) {
          return importance[a] < importance[b];
        });
        kept.erase(least);
      }
      EXPECT_EQ(run.tokens[layer], kept) << layer;
      for (std::size_t head = 0; head < heads; ++head) {
        for (const std::uint32_t query : kept) {
          const std::size_t row = ((layer * heads + head) * n + query) * n;
          double sum = 0.0;
          for (const std::uint32_t key : kept) sum += network.attention[row + key];
          for (const std::uint32_t key : kept)
            importance[key] += network.attention[row + key] / sum;
        }
      }
    }
    EXPECT_GT(run.selection, 0U);
  }
}

TEST(Spatten, KeepsTheHeadsOfLargestOutputs) {
  std::mt19937 random(3);
  AttentionProbabilities network = random_attention(3, 4, 8, random);
  network.magnitudes = {1, 5, 2, 4, 9, 0, 0, 1, 0, 0, 0, 0};
  SpattenSchedule schedule = all_of(network);
  schedule.heads = {4, 3, 2};
  const SpattenCycles run = run_spatten(network, 8, schedule, SpattenArray{}, kNoWait);
  EXPECT_EQ(run.heads[1], (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(run.heads[2], (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(run.cells, (4 + 3 + 2) * 64U);
}

TEST(Spatten, PrunesValuesQueryByQuery) {
  std::mt19937 random(4);
  const AttentionProbabilities network = random_attention(2, 2, 64, random);
  SpattenSchedule schedule = all_of(network);
  schedule.values = 0.25;
  const SpattenArray array{64, 64, 16};
  const SpattenCycles run = run_spatten(network, 16, schedule, array, kNoWait);
  const SpattenCycles whole = run_spatten(network, 16, all_of(network), array, kNoWait);
  EXPECT_EQ(run.value_cells, run.cells / 4);
  EXPECT_EQ(run.values, whole.values / 4);
  EXPECT_EQ(run.scores, whole.scores);
  EXPECT_GT(run.top_k, 0U);
  // The engine that selects is slower here than the products that it saves.
  EXPECT_GT(run.total, whole.total);
}

TEST(Spatten, WaitsForItsMemory) {
  std::mt19937 random(5);
  const AttentionProbabilities network = random_attention(2, 3, 30, random);
  const SpattenArray array;
  const OperandStream slow{0.5, 1.5};
  const SpattenCycles run = run_spatten(network, 16, all_of(network), array, slow);
  // Q, K, V and outputs of 2 layers, 3 heads and 30 tokens.
  EXPECT_EQ(run.memory, 4U * 2 * 3 * 30 * 16 * 3 / 2 * 2);
  EXPECT_GE(run.total, run.memory);
  EXPECT_LE(run.total,
            run.memory + run_spatten(network, 16, all_of(network), array, kNoWait).total);
}

/// Eight tokens of 16 features: Q, K and V come in 48 cycles, the head takes 2 + 1 + 7 after them,
/// and the layer 101 to run empty. Which rows the next layer wants is known only then.
TEST(Spatten, LoadsALayerWhenTheOneBeforeIsOver) {
  std::mt19937 random(9);
  const AttentionProbabilities network = random_attention(2, 1, 8, random);
  const SpattenArray array{128, 128, 16};
  const OperandStream stream{8.0, 1.0};
  EXPECT_EQ(run_spatten(network, 16, all_of(network), array, stream).total, 2U * (48 + 10 + 101));
}

TEST(QuickSelect, EndsWithinItsBounds) {
  std::mt19937 random(6);
  double total = 0.0, elements = 0.0;
  for (int i = 0; i < 400; ++i) {
    const std::size_t n = 1 + random() % 300, k = 1 + random() % n;
    const std::uint32_t lanes = 1 + random() % 32;
    std::vector<double> values(n);
    const unsigned different = i % 3 == 0 ? 4 : 100000;
    for (double& value : values) value = static_cast<double>(random() % different);
    const std::uint64_t cycles = quick_select_cycles(values, k, lanes);
    const std::uint64_t fill = (n + lanes - 1) / lanes, drain = (k + lanes - 1) / lanes;
    EXPECT_GE(cycles, 2 * fill + drain + 3);
    EXPECT_LE(cycles, fill + drain + n * (fill + 3));
    if (lanes == 1 && different > 4) {
      total += static_cast<double>(cycles - fill - drain);
      elements += static_cast<double>(n);
    }
  }
  // About 2 to 3.4 comparisons an element are expected, and some rounds.
  EXPECT_LT(total / elements, 5.0);
}

TEST(QuickSelect, OfEqualValuesTakesOneRound) {
  EXPECT_EQ(quick_select_cycles(std::vector<double>(40, 1.0), 7, 16), 3U + 1 + 3 + 3);
  EXPECT_EQ(quick_select_cycles({1.0}, 1, 4), 1U + 1 + 1 + 3);
  EXPECT_THROW(static_cast<void>(quick_select_cycles({1.0}, 2, 4)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(quick_select_cycles({1.0}, 0, 4)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(quick_select_cycles({1.0}, 1, 0)), std::invalid_argument);
}

TEST(Spatten, RefusesWhatItCannotRun) {
  std::mt19937 random(8);
  const AttentionProbabilities network = random_attention(2, 2, 8, random);
  const auto fails = [&](SpattenSchedule schedule, std::size_t dim = 8, SpattenArray array = {},
                         OperandStream stream = kNoWait) {
    EXPECT_THROW(static_cast<void>(run_spatten(network, dim, schedule, array, stream)),
                 std::invalid_argument);
  };
  const SpattenSchedule good = all_of(network);
  SpattenSchedule bad = good;
  bad.tokens = {4, 5};
  fails(bad);
  bad = good;
  bad.heads = {2, 0};
  fails(bad);
  bad = good;
  bad.tokens.pop_back();
  fails(bad);
  bad = good;
  bad.values = 0.0;
  fails(bad);
  fails(good, 0);
  fails(good, 600);
  fails(good, 8, SpattenArray{512, 512, 0});
  fails(good, 8, {}, {1.0, 0.0});
}

}  // namespace
}  // namespace systole::hw::dynamic

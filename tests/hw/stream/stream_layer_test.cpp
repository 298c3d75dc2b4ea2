#include "hw/stream/stream_layer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace systole::hw::stream {
namespace {

std::mt19937_64 random_source(7);

template <typename Value>
std::vector<Value> drawn(std::size_t count, int largest) {
  std::vector<Value> values(count);
  for (Value& value : values) {
    value = static_cast<Value>(static_cast<int>(random_source() % (2U * largest + 1)) - largest);
  }
  return values;
}

/// Element by element.
template <typename A>
std::vector<std::int8_t> plain(const std::vector<A>& a, const std::vector<std::int8_t>& b,
                               std::size_t m, std::size_t n, std::size_t k, bool transposed,
                               const std::vector<std::int32_t>& bias, const Requantiser& by) {
  std::vector<std::int8_t> c;
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      std::int64_t sum = bias.empty() ? 0 : bias[j];
      for (std::size_t l = 0; l < k; ++l) {
        sum += std::int64_t{a[i * k + l]} * b[transposed ? j * k + l : l * n + j];
      }
      c.push_back(requantise(wrap(sum, kAccumulatorBits), by));
    }
  }
  return c;
}

TEST(StreamLayer, EqualsTheSameLayerElementByElement) {
  for (const LayerShape& shape : {LayerShape{32, 24, 16, 40}, LayerShape{48, 64, 20, 8}}) {
    const std::size_t s = shape.sequence, e = shape.embedding, p = shape.projection,
                      f = shape.hidden;
    const auto x_q = drawn<std::int8_t>(s * e, 127), x_kv = drawn<std::int8_t>(s * e, 127);
    HeadWeights weights{
        drawn<std::int8_t>(e * p, 127),
        drawn<std::int8_t>(e * p, 127),
        drawn<std::int8_t>(e * p, 127),
        drawn<std::int8_t>(p * e, 127),
        drawn<std::int32_t>(p, 5000),
        drawn<std::int32_t>(p, 5000),
        drawn<std::int32_t>(p, 5000),
        drawn<std::int32_t>(e, 5000),
        {{{100, 16, 1}, {90, 16, -2}, {80, 16, 3}, {110, 14, 0}, {90, 11, 5}, {70, 15, -7}}}};
    const HeadResult head = attend(shape, x_q, x_kv, weights);
    const auto by = [&](Phase phase) {
      return weights.requantisers[static_cast<std::size_t>(phase)];
    };
    const auto q = plain(x_q, weights.q, s, p, e, false, weights.q_bias, by(Phase::kQ));
    const auto k = plain(x_kv, weights.k, s, p, e, false, weights.k_bias, by(Phase::kK));
    const auto v = plain(x_kv, weights.v, s, p, e, false, weights.v_bias, by(Phase::kV));
    const auto scores = plain(q, k, s, s, p, true, {}, by(Phase::kQk));
    EXPECT_EQ(head.of(Phase::kQk).results, scores);
    std::vector<std::uint8_t> probabilities;
    for (std::size_t i = 0; i < s; ++i) {
      SoftmaxRow row;
      for (std::size_t j = 0; j < s; j += kGroup) row.take(&scores[i * s + j]);
      for (std::size_t j = 0; j < s; ++j) {
        probabilities.push_back(row.probability(scores[i * s + j], row.inverse()));
      }
    }
    EXPECT_EQ(head.probabilities, probabilities);
    const auto context = plain(probabilities, v, s, p, s, false, {}, by(Phase::kAv));
    EXPECT_EQ(head.of(Phase::kAv).results, context);
    EXPECT_EQ(head.of(Phase::kOw).results,
              plain(context, weights.o, s, e, p, false, weights.o_bias, by(Phase::kOw)));

    const FeedForwardWeights mlp{drawn<std::int8_t>(e * f, 127),
                                 drawn<std::int8_t>(f * e, 127),
                                 drawn<std::int32_t>(f, 5000),
                                 drawn<std::int32_t>(e, 5000),
                                 {100, 16, 0},
                                 {90, 15, 2},
                                 {ActivationKind::kGelu, {-80, -7091}, {74, 20, 0}}};
    const FeedForwardResult result = feed_forward(shape, x_q, mlp);
    std::vector<std::int8_t> hidden =
        plain(x_q, mlp.w1, s, f, e, false, mlp.bias1, mlp.requantiser1);
    EXPECT_EQ(result.f1.results, hidden);
    for (std::int8_t& value : hidden) value = activate(value, mlp.activation);
    EXPECT_EQ(result.hidden, hidden);
    EXPECT_EQ(result.f2.results,
              plain(hidden, mlp.w2, s, e, f, false, mlp.bias2, mlp.requantiser2));

    const Product sum = add_heads({head, head}, {60, 7, 0});
    for (std::size_t i = 0; i < s * e; ++i) {
      const std::int32_t twice = 2 * head.of(Phase::kOw).results[i];
      EXPECT_EQ(sum.sums[i], twice);
      EXPECT_EQ(sum.results[i], requantise(twice, {60, 7, 0}));
    }
  }
}

}  // namespace
}  // namespace systole::hw::stream

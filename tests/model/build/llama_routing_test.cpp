#include "model/build/llama_routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "model/build/llama_graph.h"
#include "model/graph/reference.h"
#include "model/integer/integer_llama.h"
#include "model/seeded/seeded_llama.h"
#include "model/seeded/shapes.h"

namespace systole::model {
namespace {

LlamaShape routed_llama(std::uint32_t experts, std::uint32_t active) {
  LlamaShape shape{2, 32, 4, 2, 8, 64, 40, 64, 0, 1e4, true, true};
  shape.experts = experts;
  shape.active_experts = active;
  return shape;
}

double mean_experts(const Routing& routing) {
  const std::size_t sum = std::accumulate(
      routing.begin(), routing.end(), std::size_t{0},
      [](std::size_t so_far, const auto& experts) { return so_far + experts.size(); });
  return static_cast<double>(sum) / static_cast<double>(routing.size());
}

TEST(SeededRouting, HasAsManyExpertsAsExpected) {
  LlamaShape shape = routed_llama(32, 4);
  shape.layers = 400;
  for (const std::uint32_t tokens : {1U, 2U, 8U, 30U}) {
    const Routing uniform = seeded_routing(shape, tokens, RoutingKind::kUniform, 1);
    ASSERT_EQ(uniform.size(), shape.layers);
    EXPECT_NEAR(mean_experts(uniform), expected_experts(shape, tokens), 0.35) << tokens;
    for (const auto& experts : uniform) {
      EXPECT_TRUE(std::is_sorted(experts.begin(), experts.end()));
      EXPECT_EQ(std::adjacent_find(experts.begin(), experts.end()), experts.end());
      EXPECT_LT(experts.back(), 32U);
      EXPECT_LE(experts.size(), most_experts(shape, tokens));
    }
    const Routing worst = seeded_routing(shape, tokens, RoutingKind::kWorst, 1);
    EXPECT_EQ(mean_experts(worst), most_experts(shape, tokens));
    // More tokens go to no fewer experts.
    const Routing more = seeded_routing(shape, tokens + 1, RoutingKind::kUniform, 1);
    for (std::size_t i = 0; i < more.size(); ++i) {
      EXPECT_TRUE(
          std::includes(more[i].begin(), more[i].end(), uniform[i].begin(), uniform[i].end()));
    }
  }
  EXPECT_EQ(expected_experts(shape, 1), 4);
  EXPECT_NEAR(expected_experts(shape, 8), 32 * (1 - std::pow(28.0 / 32, 8)), 1e-9);
  // Every expert is as likely.
  std::vector<int> times(32);
  for (const auto& experts : seeded_routing(shape, 1, RoutingKind::kUniform, 1)) {
    for (const std::uint32_t expert : experts) ++times[expert];
  }
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  EXPECT_GT(*least, 25);
  EXPECT_LT(*most, 80);
}

std::vector<std::int32_t> logits_of(const Graph& graph, const std::vector<std::int32_t>& in) {
  Reference reference(graph, {true, true});
  reference.set_input("embedding", in);
  reference.run();
  return reference.values("logits");
}

// Experts that no token goes to add nothing, bit for bit; one that is left out is missed.
TEST(RoutedGraph, GivesWhatAllExpertsGive) {
  for (const auto& [experts, active] : {std::pair(3U, 1U), std::pair(8U, 2U), std::pair(16U, 4U)}) {
    for (const std::uint32_t length : {1U, 5U}) {
      for (const unsigned residual_bits : {16U, 24U}) {
        const LlamaShape shape = routed_llama(experts, active);
        hw::Machine::Datapath datapath;
        datapath.residual_bits = residual_bits;
        const IntegerLlama llama = make_seeded_llama("llama", shape, length, 3, datapath, true);
        EncoderShape encoder;
        encoder.width = shape.width;
        const std::vector<std::int32_t> in = seeded_embedding(encoder, length, 7, datapath);
        const Graph all = make_llama_graph(llama, length);
        const Routing routing = find_routing(all, shape, in);
        EXPECT_LE(mean_experts(routing), most_experts(shape, length));
        EXPECT_GE(mean_experts(routing), 1);
        const std::vector<std::int32_t> expected = logits_of(all, in);
        const Graph routed = make_llama_graph(llama, length, 1, routing);
        EXPECT_LT(routed.nodes.size(), all.nodes.size() + (experts > active * length ? 0 : 1));
        EXPECT_EQ(logits_of(routed, in), expected);
        if (length != 1) continue;  // the logits are of the last token alone
        Routing fewer = routing;
        fewer.back().pop_back();
        if (fewer.back().empty()) fewer.back().push_back((routing.back().back() + 1) % experts);
        EXPECT_NE(logits_of(make_llama_graph(llama, length, 1, fewer), in), expected);
      }
    }
  }
}

}  // namespace
}  // namespace systole::model

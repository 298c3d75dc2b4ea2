#include "mapper/fuse/split_norms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "hw/description/machine_file.h"
#include "model/seeded/shapes.h"

namespace systole::mapper {
namespace {

constexpr std::uint32_t kTokens = 10;
/// Words of row statistics that a norm of all tokens takes.
constexpr std::uint32_t kNorm = 4 * kTokens;

model::Graph encoder(bool post_norm) {
  return model::make_seeded_encoder("encoder", {2, 32, 2, 48, post_norm}, kTokens, 1);
}

std::size_t split(const model::Graph& graph, std::uint32_t statistics,
                  hw::FusionLevel fusion = hw::FusionLevel::kAll) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.postop.row_statistics = statistics;
  machine.mapper.fusion = fusion;
  const model::Graph parted = split_norms(graph, machine);
  return static_cast<std::size_t>(
      std::count_if(parted.nodes.begin(), parted.nodes.end(),
                    [](const model::Node& node) { return node.is(hw::StageOp::kLayerNormApply); }));
}

TEST(SplitNorms, WhatOneMatmulReadsIsSplitWhereTheStatisticsHaveRoom) {
  const model::Graph graph = encoder(false);
  // The first norm of all works on the network's input.
  EXPECT_EQ(split(graph, kNorm), 3U);
  EXPECT_EQ(split(graph, kNorm - 1), 0U);
  EXPECT_EQ(split(graph, kNorm, hw::FusionLevel::kPost), 0U);
  EXPECT_EQ(split(encoder(true), 1024), 0U) << "a residual addition reads them, too";
}

TEST(SplitNorms, RoomIsWhatOtherStatisticsLeaveMeanwhile) {
  model::Graph graph = encoder(false);
  // Row sums of the first head are wanted up to the end.
  const auto has_sums = [](const model::Node& node) {
    return node.statistics() != model::kNoTensor;
  };
  const auto first = std::find_if(graph.nodes.begin(), graph.nodes.end(), has_sums);
  ASSERT_NE(first, graph.nodes.end());
  const auto last = std::find_if(graph.nodes.rbegin(), graph.nodes.rend(), has_sums);
  last->stage()->statistics = first->statistics();
  EXPECT_EQ(split(graph, kNorm + kTokens), 3U);
  // Only what comes after the last of them has the room.
  EXPECT_EQ(split(graph, kNorm + kTokens - 1), 1U);
}

}  // namespace
}  // namespace systole::mapper

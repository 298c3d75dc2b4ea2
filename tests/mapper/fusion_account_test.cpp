#include "mapper/fusion_account.h"

#include <gtest/gtest.h>

#include <string>

#include "hw/description/machine_file.h"
#include "model/seeded/gpt_layer_graph.h"

namespace systole::mapper {
namespace {

using hw::FusionLevel;
using model::GptLayerShape;

hw::Machine gpt_machine(FusionLevel level) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.mapper.fusion = level;
  machine.mapper.on_chip = 0;  // results spilled to memory, as the closed forms count
  if (level == FusionLevel::kAll) machine.preop.lanes = machine.postop.lanes;
  return machine;
}

/// Of the layer alone: the embedding in front is not a part of it.
FusionAccount gpt_account(const GptLayerShape& shape, FusionLevel level) {
  const hw::Machine machine = gpt_machine(level);
  const model::Graph graph = model::make_gpt_layer_graph(shape, machine.datapath, 1, true);
  FusionAccount account = account_fusion(graph, map_graph(graph, machine));
  if (shape.embedding) {
    EXPECT_EQ(account.passes.front().name, "embedding.add");
    account.passes.erase(account.passes.begin());
  }
  return account;
}

/// What the table of passes says of every token.
void expect_accesses(const GptLayerShape& shape, FusionLevel level, std::uint64_t passes,
                     std::uint64_t d, std::uint64_t hc) {
  const FusionAccount account = gpt_account(shape, level);
  std::string names;
  for (const PassAccount& pass : account.passes) names += pass.name + " ";
  EXPECT_EQ(account.passes.size(), passes) << names;
  EXPECT_EQ(account.total().accesses(),
            shape.tokens * (d * shape.width + hc * shape.heads * shape.context))
      << names;
}

TEST(FusionAccount, AGpt2LayerMovesWhatItsClosedFormsSay) {
  for (GptLayerShape shape :
       {GptLayerShape{64, 4, 32, 32}, GptLayerShape{96, 3, 40, 8}, GptLayerShape{64, 2, 80, 1}}) {
    shape.keeps_scores = true;
    shape.embedding = true;
    expect_accesses(shape, FusionLevel::kOff, 18, 54, 8);
    expect_accesses(shape, FusionLevel::kPost, 9, 24, 4);
    expect_accesses(shape, FusionLevel::kAll, 7, 20, 4);
  }
}

TEST(FusionAccount, AFusedSoftmaxIsNoPassOfItsOwn) {
  expect_accesses({64, 4, 32, 32, true}, FusionLevel::kAll, 6, 20, 2);
  expect_accesses({64, 4, 32, 32}, FusionLevel::kPost, 8, 24, 2);
}

TEST(FusionAccount, WeightsKeysAndValuesStandApart) {
  const GptLayerShape shape{64, 4, 48, 16};
  for (const FusionLevel level : {FusionLevel::kOff, FusionLevel::kPost}) {
    const PassAccount total = gpt_account(shape, level).total();
    EXPECT_EQ(total.stationary.count, 12U * 64 * 64 + 2U * 48 * 64);
    EXPECT_EQ(total.stationary.bytes, total.stationary.count) << "int8";
    EXPECT_EQ(total.streamed.bytes + total.written.bytes, total.accesses());
  }
}

TEST(FusionAccount, ElementsThatGoThroughStagesInFrontAreTripsToo) {
  const GptLayerShape shape{64, 4, 32, 32, true};
  const FusionAccount account = gpt_account(shape, FusionLevel::kAll);
  const PassAccount& qkv = account.passes.front();
  EXPECT_EQ(qkv.name, "attn.qkv");
  EXPECT_EQ(qkv.trips, 32U * (64 + 3 * 64)) << "norm1 in front, results after";
  EXPECT_EQ(qkv.groups, 1U);
  const PassAccount& scores = account.passes[1];
  EXPECT_EQ(scores.name, "attn.head*.scores");
  EXPECT_EQ(scores.groups, 4U);
  EXPECT_EQ(scores.trips, 4U * 32 * 32);
}

TEST(FusionAccount, HeadsAndSequencesAreNumberedParts) {
  EXPECT_EQ(pass_of("blocks.0.attn.head12.scores"), "blocks.0.attn.head*.scores");
  EXPECT_EQ(pass_of("attn.seq3.head0.softmax"), "attn.seq*.head*.softmax");
  EXPECT_EQ(pass_of("head"), "head");
  EXPECT_EQ(pass_of("head.bias"), "head.bias");
  EXPECT_EQ(pass_of("headless2.x"), "headless2.x");
}

}  // namespace
}  // namespace systole::mapper

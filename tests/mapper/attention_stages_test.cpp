/// Which stages around the products of attention become part of its command.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "mapper/fuse/fusion.h"
#include "mapper/mapping.h"
#include "support/network/attention_graph.h"

namespace systole::mapper {
namespace {

using test::AttentionSketch;

hw::Machine staged_machine() {
  hw::Machine machine = hw::find_machine("vitcod");
  machine.postop.max_stages = 4;
  machine.preop.lanes = 16;
  machine.mapper.fusion = hw::FusionLevel::kAll;
  return machine;
}

hw::Stage relu() {
  hw::Stage stage;
  stage.op = hw::StageOp::kRelu;
  return stage;
}

hw::Stage times(std::int64_t factor, std::int64_t largest) {
  hw::Stage stage;
  stage.op = hw::StageOp::kMul;
  stage.imm = {0, -largest, largest, factor};
  return stage;
}

hw::Stage minus_sums() {
  hw::Stage stage;
  stage.op = hw::StageOp::kSub;
  stage.operand = hw::Operand::kTensor;
  stage.tensor = hw::DType::kS32;
  return stage;
}

AttentionSketch staged_sketch() {
  AttentionSketch sketch;
  sketch.heads = 2;
  sketch.queries = sketch.keys = 12;
  sketch.dim = 16;
  sketch.outputs = {model::divide_row_sum_stage(),
                    model::requantise_stage({1, 8}, 8, hw::Rounding::kHalfUp)};
  return sketch;
}

AttentionSketch masked_sketch(std::vector<hw::Stage> scores, const hw::Stage& masking) {
  AttentionSketch result = staged_sketch();
  result.scores = std::move(scores);
  result.keep.assign(std::size_t{2} * 12 * 12, 1);
  for (std::size_t i = 0; i < result.keep.size(); i += 5) result.keep[i] = 0;
  result.mask = masking.op == hw::StageOp::kMask ? AttentionSketch::Mask::kSelects
                                                 : AttentionSketch::Mask::kAdded;
  result.masking = masking;
  return result;
}

model::Graph staged_attention_graph(const AttentionSketch& sketch) {
  return test::AttentionGraph(sketch).build();
}

/// The attention groups.
std::vector<Group> attention_of(const model::Graph& graph,
                                const hw::Machine& machine = staged_machine()) {
  std::vector<Group> groups = fuse(graph, machine).groups;
  groups.erase(std::remove_if(groups.begin(), groups.end(),
                              [](const Group& group) { return !group.attention(); }),
               groups.end());
  return groups;
}

TEST(AttentionStages, OfScoresAndOutputsBelongToTheEngines) {
  AttentionSketch staged = staged_sketch();
  staged.scores = {times(-1, 100000), relu(), minus_sums()};
  staged.outputs.insert(staged.outputs.begin() + 1, relu());
  const model::Graph graph = staged_attention_graph(staged);
  const std::vector<Group> groups = attention_of(graph);
  ASSERT_EQ(groups.size(), 1U);
  const AttentionGroup& attention = *groups[0].attention();
  EXPECT_EQ(attention.heads.size(), 2U);
  ASSERT_EQ(attention.softmax.stages.size(), 4U);
  EXPECT_EQ(attention.softmax.stages[1], relu());
  EXPECT_EQ(attention.softmax.stages[2].operand, hw::Operand::kSaved);
  EXPECT_EQ(attention.chain.stages.size(), 3U);
  EXPECT_FALSE(attention.stages_operands());
  EXPECT_EQ(groups[0].nodes.size(), graph.nodes.size());
}

TEST(AttentionStages, ThatAreTooManyKeepItFromThem) {
  AttentionSketch staged = staged_sketch();
  staged.scores = {relu(), relu(), relu()};
  EXPECT_EQ(attention_of(staged_attention_graph(staged)).size(), 1U);
  staged.scores.push_back(relu());
  EXPECT_TRUE(attention_of(staged_attention_graph(staged)).empty());
}

TEST(AttentionStages, ThatDifferFromHeadToHeadPartThem) {
  AttentionSketch staged = staged_sketch();
  staged.scores = {times(3, 100000)};
  model::Graph graph = staged_attention_graph(staged);
  for (model::Node& node : graph.nodes) {
    if (node.name == "head1.score.0") node.stage()->stage.imm[3] = 5;
  }
  const std::vector<Group> groups = attention_of(graph);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[1].attention()->softmax.stages[0].imm[3], 5);
}

TEST(AttentionStages, BehindTheLastByteAreAnotherOperator) {
  AttentionSketch staged = staged_sketch();
  staged.heads = 1;
  model::Graph graph = staged_attention_graph(staged);
  // After the outputs s8 -> s16, which the engines do not write.
  model::Node widen = graph.nodes.back();
  widen.name = "widen";
  widen.in = widen.out;
  widen.op = model::StageUse{times(3, 1000), {}, {}, model::kNoTensor, 0};
  graph.tensors[widen.in.tensor].kind = model::Tensor::Kind::kActivation;
  graph.tensors.push_back({"wide", 12, 16, hw::DType::kS16, model::Tensor::Kind::kOutput, {}, 0.0});
  widen.out = {static_cast<model::TensorId>(graph.tensors.size() - 1), 0, 0, 12, 16};
  graph.nodes.push_back(widen);
  const Fusion fusion = fuse(graph, staged_machine());
  ASSERT_EQ(fusion.groups.size(), 2U);
  EXPECT_EQ(fusion.groups[0].attention()->chain.stages.size(), 2U);
  EXPECT_EQ(fusion.groups[1].name, "widen");
}

TEST(AttentionStages, SumsThatOthersReadStayWithTheArray) {
  for (const bool with_stage : {false, true}) {
    AttentionSketch staged = staged_sketch();
    if (with_stage) staged.scores = {relu()};
    model::Graph graph = staged_attention_graph(staged);
    model::Node copy = graph.nodes[0];
    copy.name = "copy";
    copy.in = copy.out;
    copy.op = model::StageUse{relu(), {}, {}, model::kNoTensor, 0};
    graph.tensors.push_back(
        {"copy", 12, 12, hw::DType::kS32, model::Tensor::Kind::kOutput, {}, 0.0});
    copy.out = {static_cast<model::TensorId>(graph.tensors.size() - 1), 0, 0, 12, 12};
    graph.nodes.push_back(copy);
    const std::vector<Group> groups = attention_of(graph);
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].attention()->heads.size(), 1U) << "the other head";
  }
}

TEST(AttentionStages, LeaveAMaskWhatItIsWhereItGoesDeepEnough) {
  constexpr std::int64_t kLargest = 5000;
  EXPECT_EQ(attention_of(staged_attention_graph(
                             masked_sketch({times(3, kLargest)}, test::added_mask(kLargest))))
                .size(),
            1U);
  // Deep enough for less.
  EXPECT_TRUE(attention_of(staged_attention_graph(
                               masked_sketch({times(3, 2 * kLargest)}, test::added_mask(kLargest))))
                  .empty());
  // Sums are as large as they like.
  EXPECT_TRUE(attention_of(staged_attention_graph(masked_sketch({times(3, kLargest), minus_sums()},
                                                                test::added_mask(kLargest))))
                  .empty());
}

TEST(AttentionStages, LeaveASelectionAMaskWhereItFillsWithLessThanAnyScore) {
  constexpr std::int64_t kLargest = 5000;
  const std::int64_t distance =
      model::vanishing_distance(hw::make_softmax_constants(test::AttentionGraph::kScoreScale).score,
                                hw::kDefaultExpFractionBits);
  const auto groups = [&](std::int64_t fill) {
    return attention_of(
        staged_attention_graph(masked_sketch({times(3, kLargest)}, test::selecting_mask(fill))));
  };
  const std::vector<Group> found = groups(-kLargest - distance);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(groups(-kLargest - distance + 1).empty());
  std::size_t kept = 0;
  for (const hw::SparseHead& head : found[0].attention()->heads) kept += head.kept();
  EXPECT_EQ(kept, 2U * 144 - 58);
}

TEST(AttentionStages, OfARowWithoutAKeptCellKeepItFromTheEngines) {
  AttentionSketch masked = masked_sketch({}, test::selecting_mask(-2147483648LL));
  EXPECT_EQ(attention_of(staged_attention_graph(masked)).size(), 1U);
  std::fill_n(masked.keep.begin() + 24, 12, 0);
  const std::vector<Group> groups = attention_of(staged_attention_graph(masked));
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].attention()->heads.size(), 1U) << "the other head";
}

TEST(AttentionStages, InFrontOfOperandsBelongToTheCommand) {
  AttentionSketch staged = staged_sketch();
  staged.operands[0] = {relu(), model::clamp_stage(8)};
  staged.operands[2] = {times(3, 127)};
  const model::Graph graph = staged_attention_graph(staged);
  const Mapping mapping = map_graph(graph, staged_machine());
  ASSERT_EQ(mapping.groups.size(), 1U);
  const AttentionGroup& attention = *mapping.groups[0].attention();
  EXPECT_EQ(attention.query.tensor, 0U) << "that of the input";
  EXPECT_EQ(attention.operand_chains[0].stages, staged.operands[0]);
  EXPECT_TRUE(attention.operand_chains[1].stages.empty());
  EXPECT_EQ(attention.operand_chains[2].stages, staged.operands[2]);
  const auto& command = *mapping.program.commands[0].as<hw::cmd::Attention>();
  EXPECT_TRUE(command.operand_chains);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(mapping.program.chains[command.softmax + 1 + i], attention.operand_chains[i]);
  }
  const Fusion fusion = fuse(graph, staged_machine());
  for (const FusionDecision& decision : fusion.decisions) {
    const bool pre = graph.nodes[decision.node].name.find("operand") == 0;
    EXPECT_EQ(decision.role, pre ? FusionDecision::Role::kPre : FusionDecision::Role::kInside);
    EXPECT_EQ(decision.group, 0U);
  }
}

TEST(AttentionStages, OfOperandsThatAreOneTensorAreOfBoth) {
  AttentionSketch staged = staged_sketch();
  staged.operands[1] = {times(3, 127)};
  model::Graph graph = staged_attention_graph(staged);
  model::Node* key = nullptr;
  for (model::Node& node : graph.nodes) {
    if (node.name.find(".scores") != std::string::npos) key = &node;
    if (node.name.find(".sums") != std::string::npos) node.product()->b = key->product()->b;
  }
  const std::vector<Group> groups = attention_of(graph);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].attention()->operand_chains[1], groups[0].attention()->operand_chains[2]);
  EXPECT_EQ(groups[0].attention()->operand_chains[1].stages, staged.operands[1]);
}

TEST(AttentionStages, InFrontStayAPassOfTheirOwnWhereTheyMust) {
  AttentionSketch staged = staged_sketch();
  staged.operands[0] = {relu(), model::clamp_stage(8)};
  const model::Graph graph = staged_attention_graph(staged);
  const auto why = [&](const hw::Machine& machine, const model::Graph& of) {
    const Fusion fusion = fuse(of, machine);
    EXPECT_EQ(fusion.groups.size(), 2U);
    return fusion.decisions[0].why;
  };
  hw::Machine machine = staged_machine();
  machine.preop.lanes = 0;
  EXPECT_NE(why(machine, graph).find("preop.lanes is 0"), std::string::npos);
  machine = staged_machine();
  machine.mapper.fusion = hw::FusionLevel::kPost;
  EXPECT_NE(why(machine, graph).find("mapper.fusion is \"post\""), std::string::npos);
  model::Graph channels = graph;
  channels.nodes[0].stage()->stage.op = hw::StageOp::kAdd;
  channels.nodes[0].stage()->stage.operand = hw::Operand::kChannel;
  channels.nodes[0].stage()->parameters = std::vector<std::int32_t>(32, 1);
  EXPECT_NE(why(staged_machine(), channels).find("no ports for operands"), std::string::npos);
  // One element a cycle, and buffers that each row comes into many times.
  machine = staged_machine();
  machine.preop.lanes = 1;
  machine.postop.lanes = 64;
  staged.queries = staged.keys = 300;
  machine.attention.query_kib = machine.attention.key_kib = 1;
  EXPECT_NE(why(machine, staged_attention_graph(staged)).find("together"), std::string::npos);
}

}  // namespace
}  // namespace systole::mapper

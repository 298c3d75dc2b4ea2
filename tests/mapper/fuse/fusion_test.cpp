#include "mapper/fuse/fusion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "model/seeded/shapes.h"
#include "support/input_error.h"
#include "support/random/random_graph.h"

namespace systole::mapper {
namespace {

using hw::DType;
using test::GraphSketch;

/// The node names of every group, "a+b c" for two groups.
std::string fused(const model::Graph& graph, const hw::Machine& machine) {
  std::string text;
  for (const Group& group : fuse(graph, machine).groups) {
    if (!text.empty()) text += ' ';
    for (std::size_t i = 0; i < group.nodes.size(); ++i) {
      text += (i == 0 ? "" : "+") + graph.nodes[group.nodes[i]].name;
    }
  }
  return text;
}

std::string fused(const model::Graph& graph) { return fused(graph, hw::Machine{}); }

model::View residual_add(GraphSketch& g, const std::string& name, model::View x, model::View with) {
  return g.stage(name, x, model::add_tensor_stage(DType::kS16, {}, 16, hw::Rounding::kHalfUp),
                 DType::kS32, with);
}

class FusionTest : public ::testing::Test {
 protected:
  model::View product(std::uint32_t cols = 20) {
    return g_.matmul("c", x_, g_.weight("w", 12, cols));
  }
  GraphSketch g_{"fusion", 1};
  model::View x_ = g_.input("x", 10, 12);
};

TEST_F(FusionTest, StagesJoinTheMatmulInFront) {
  model::View y = g_.stage("bias", product(), model::bias_stage(), DType::kS32);
  y = g_.stage("q", y, GraphSketch::to_bits(8, 6), DType::kS8);
  y = g_.stage("gelu", y, GraphSketch::gelu(), DType::kS8);
  const model::Graph graph = g_.take(y);
  EXPECT_EQ(fused(graph), "c+bias+q+gelu");
  const Group group = fuse(graph, hw::Machine{}).groups.front();
  EXPECT_EQ(group.name, "c");
  EXPECT_TRUE(group.matmul() != nullptr);
  EXPECT_EQ(group.m(), 10U);
  EXPECT_EQ(group.n(), 20U);
  EXPECT_EQ(group.k(), 12U);
  EXPECT_EQ(group.chain.stages.size(), 3U);
  EXPECT_EQ(group.chain.out, DType::kS8);
  EXPECT_EQ(group.parameters.size(), 20U) << "the bias";
  EXPECT_EQ(group.out.tensor, y.tensor);
}

TEST_F(FusionTest, AMatmulNeverJoins) {
  const model::View y = g_.stage("q", product(), GraphSketch::to_bits(8, 6), DType::kS8);
  EXPECT_EQ(fused(g_.take(g_.matmul("d", y, g_.weight("v", 20, 5)))), "c+q d");
}

TEST_F(FusionTest, AStageOnAnInputLoadsTheAccumulator) {
  const model::Graph graph = g_.take(g_.stage("relu", x_, GraphSketch::relu(), DType::kS8));
  const std::vector<Group> groups = fuse(graph, hw::Machine{}).groups;
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_FALSE(groups[0].matmul() != nullptr);
  EXPECT_EQ(groups[0].name, "relu");
  EXPECT_EQ(groups[0].a.tensor, x_.tensor);
  EXPECT_EQ(groups[0].k(), 0U);
}

TEST_F(FusionTest, AResultWithTwoReadersIsWritten) {
  const model::View q = g_.stage("q", product(), GraphSketch::to_bits(15, 3), DType::kS16);
  const model::View y = g_.stage("relu", q, GraphSketch::relu(), DType::kS16);
  EXPECT_EQ(fused(g_.take(residual_add(g_, "add", y, q))), "c+q relu+add");
}

TEST_F(FusionTest, AResultReadTwiceByOneStageIsWritten) {
  const model::View q = g_.stage("q", product(), GraphSketch::to_bits(15, 3), DType::kS16);
  EXPECT_EQ(fused(g_.take(residual_add(g_, "add", q, q))), "c+q add");
}

TEST_F(FusionTest, AnOutputIsWritten) {
  const model::View q = g_.stage("q", product(), GraphSketch::to_bits(8, 6), DType::kS8);
  const model::View r = g_.stage("relu", q, GraphSketch::relu(), DType::kS8);
  model::Graph graph = g_.take(r);
  EXPECT_EQ(fused(graph), "c+q+relu");
  graph.tensors[q.tensor].kind = model::Tensor::Kind::kOutput;
  EXPECT_EQ(fused(graph), "c+q relu");
}

TEST_F(FusionTest, APartOfAResultIsNoChain) {
  model::View half = g_.stage("q", product(), GraphSketch::to_bits(8, 6), DType::kS8);
  half.cols = 10;
  EXPECT_EQ(fused(g_.take(g_.stage("relu", half, GraphSketch::relu(), DType::kS8))), "c+q relu");
}

TEST_F(FusionTest, RowsThatAreConstantKeepTheirTensorInMemory) {
  const model::View c = product();
  const model::TensorId id = g_.tensor("whole", 10, 20, DType::kS8);
  g_.stage_to("q", c, GraphSketch::to_bits(8, 6), g_.whole(id));
  const model::View r = g_.stage("relu", g_.whole(id), GraphSketch::relu(), DType::kS8);
  model::Graph graph = g_.take(r);
  EXPECT_EQ(fused(graph), "c+q+relu");
  graph.tensors[id].data = std::vector<std::uint8_t>(graph.tensors[id].bytes(), 0);
  EXPECT_EQ(fused(graph), "c+q relu");
}

TEST_F(FusionTest, ChainsHaveAsManyTensorOperandsAsPorts) {
  const model::View first = g_.input("first", 10, 20, DType::kS16);
  const model::View second = g_.input("second", 10, 20, DType::kS16);
  model::View y = residual_add(g_, "add1", product(), first);
  y = residual_add(g_, "add2", y, second);
  const model::Graph graph = g_.take(y);
  EXPECT_EQ(fused(graph), "c+add1+add2");
  hw::Machine machine;
  machine.postop.tensor_operands = 1;
  const std::vector<Group> groups = fuse(graph, machine).groups;
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].tensors.at(0).tensor, first.tensor);
  EXPECT_EQ(groups[1].tensors.at(0).tensor, second.tensor);
  EXPECT_EQ(groups[1].a.tensor, groups[0].out.tensor);
}

TEST_F(FusionTest, ChainsHaveOneRowWiseStage) {
  model::View y = g_.stage("norm1", product(), GraphSketch::layer_norm(), DType::kS8);
  y = g_.stage("norm2", y, GraphSketch::layer_norm(), DType::kS8);
  EXPECT_EQ(fused(g_.take(y)), "c+norm1 norm2");
}

TEST_F(FusionTest, RowSumsAreNotReadWhereTheyAreWritten) {
  const model::TensorId sums = g_.tensor("sums", 10, 1, DType::kS32);
  model::View y = g_.stage("softmax", product(), GraphSketch::softmax(hw::SoftmaxMode::kDeferred),
                           DType::kU8, {}, sums);
  y = g_.stage("divide", y, model::divide_row_sum_stage(), DType::kS32, {}, sums);
  const model::Graph graph = g_.take(y);
  EXPECT_EQ(fused(graph), "c+softmax divide");
  const std::vector<Group> groups = fuse(graph, hw::Machine{}).groups;
  EXPECT_EQ(groups[0].statistics, sums);
  EXPECT_EQ(groups[1].statistics, sums);
}

TEST_F(FusionTest, ChainsAreCutAtTheLongestLength) {
  model::View y = g_.stage("s0", product(), GraphSketch::to_bits(8, 6), DType::kS8);
  for (int i = 1; i < 7; ++i) {
    y = g_.stage("s" + std::to_string(i), y, GraphSketch::relu(), DType::kS8);
  }
  const model::Graph graph = g_.take(y);
  hw::Machine machine;
  const std::pair<std::uint32_t, const char*> expected[] = {{7, "c+s0+s1+s2+s3+s4+s5+s6"},
                                                            {6, "c+s0+s1+s2+s3+s4+s5 s6"},
                                                            {3, "c+s0+s1+s2 s3+s4+s5 s6"},
                                                            {1, "c+s0 s1 s2 s3 s4 s5 s6"}};
  for (const auto& [longest, groups] : expected) {
    machine.postop.max_stages = longest;
    EXPECT_EQ(fused(graph, machine), groups);
  }
}

// A fused row-wise stage keeps whole rows in a tile. With few rows to a tile the weights stream in
// again and again, and a separate pass is cheaper.
TEST_F(FusionTest, WholeRowsJoinAMatmulOnlyWhereThatPays) {
  const auto norm_of = [](std::uint32_t rows, std::uint32_t depth, std::uint32_t cols) {
    GraphSketch g("rows", 1);
    const model::View x = g.input("x", rows, depth);
    const model::View c = g.matmul("c", x, g.weight("w", depth, cols));
    return g.take(g.stage("norm", c, GraphSketch::layer_norm(), DType::kS8));
  };
  hw::Machine machine;  // 16 x 16
  EXPECT_EQ(fused(norm_of(40, 12, 64), machine), "c+norm");
  // The feed-forward output of BERT-Base: half of 256 KiB holds 42 rows of 768, half of 64 KiB 10.
  machine.accumulator.kib = 64;
  EXPECT_EQ(fused(norm_of(512, 3072, 768), machine), "c norm");
  machine.accumulator.kib = 8192;
  EXPECT_EQ(fused(norm_of(512, 3072, 768), machine), "c+norm") << "all rows in one tile";
}

TEST_F(FusionTest, WholeRowsThatDoNotFitAreAnError) {
  hw::Machine machine;
  machine.accumulator.kib = 8;  // 1024 elements in a half
  const auto norm_of = [](std::uint32_t cols) {
    GraphSketch g("rows", 1);
    return g.take(g.stage("norm", g.input("x", 40, cols), GraphSketch::layer_norm(), DType::kS8));
  };
  EXPECT_EQ(fused(norm_of(1024), machine), "norm") << "a single row";
  EXPECT_EQ(input_error_of([&] { static_cast<void>(fuse(norm_of(1025), machine)); }),
            "accumulator.kib = 8: norm needs whole rows of 1025 int32 in half the accumulator, at "
            "least 8320 bytes; --set accumulator.kib=16");
}

TEST(Fusion, AnEncoderBlockBecomesItsLayers) {
  const model::Graph graph = model::make_seeded_encoder("e", {1, 32, 2, 64, true}, 19, 1);
  std::vector<std::string> names;
  for (const Group& group : fuse(graph, hw::find_machine("transformer")).groups) {
    names.push_back(group.name);
  }
  const std::vector<std::string> expected = {"blocks.0.attn.qkv",
                                             "blocks.0.attn.head0.scores",
                                             "blocks.0.attn.head0.context",
                                             "blocks.0.attn.head1.scores",
                                             "blocks.0.attn.head1.context",
                                             "blocks.0.attn.proj",
                                             "blocks.0.mlp.fc1",
                                             "blocks.0.mlp.fc2"};
  EXPECT_EQ(names, expected) << "LayerNorms, softmax, GELU and residuals run after a matmul";
}

TEST(Fusion, EveryNodeRunsOnceAndInOrder) {
  test::Random random(1);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const hw::Machine machine = test::random_machine(random);
    const model::Graph graph =
        seed % 2 == 0 ? test::random_matmul_graph(seed, 9, 11, 13)
                      : model::make_seeded_encoder("e", {2, 24, 3, 16, seed % 4 == 1}, 7, seed);
    std::vector<std::size_t> found;
    for (const Group& group : fuse(graph, machine).groups) {
      for (const std::size_t node : group.nodes) found.push_back(node);
      EXPECT_LE(group.chain.stages.size(), machine.postop.max_stages);
      EXPECT_NO_THROW(hw::check_chain(group.chain, hw::chain_limits(machine)));
      if (group.pre) {
        EXPECT_NO_THROW(hw::check_chain(group.pre->chain, hw::chain_limits(machine)));
        EXPECT_NO_THROW(hw::check_pre_chain(group.pre->chain));
      }
      EXPECT_EQ(group.parameters.size(), std::size_t{hw::parameter_words(group.chain)} * group.n());
    }
    // What goes before a matmul may be before others in the graph.
    std::sort(found.begin(), found.end());
    std::vector<std::size_t> all(graph.nodes.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    EXPECT_EQ(found, all);
  }
}

TEST_F(FusionTest, TheMachineSaysWhatMayJoin) {
  const model::View with = g_.input("with", 10, 20, DType::kS16);
  model::View y = g_.stage("bias", product(), model::bias_stage(), DType::kS32);
  y = g_.stage("q", y, GraphSketch::to_bits(8, 6), DType::kS8);
  y = g_.stage("gelu", y, GraphSketch::gelu(), DType::kS8);
  y = residual_add(g_, "add", y, with);
  const model::Graph graph = g_.take(g_.stage("q2", y, GraphSketch::to_bits(8, 6), DType::kS8));
  hw::Machine machine;
  EXPECT_EQ(fused(graph, machine), "c+bias+q+gelu+add+q2");
  machine.mapper.fusion = hw::FusionLevel::kLibrary;
  EXPECT_EQ(fused(graph, machine), "c+bias+q+gelu add+q2");
  machine.mapper.fusion = hw::FusionLevel::kNone;
  EXPECT_EQ(fused(graph, machine), "c+bias+q gelu add+q2");
}

TEST_F(FusionTest, TheLibraryLeavesLayerNormAlone) {
  hw::Machine machine = hw::find_machine("survey");
  std::string text =
      fused(model::make_seeded_encoder("e", {1, 32, 2, 64, true}, 16, 1, {machine.datapath, true}),
            machine);
  EXPECT_NE(text.find("attn.head0.scores+blocks.0.attn.head0.softmax "), std::string::npos) << text;
  EXPECT_NE(text.find(" blocks.0.attn.proj.add+blocks.0.attn.proj.clamp blocks.0.norm1 "),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace systole::mapper

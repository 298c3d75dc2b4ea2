#include "model/graph/graph_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "model/graph/graph_builder.h"

namespace systole::model {
namespace {

/// A rotation with its table and the sums that it leaves, their use in a norm, a causal mask, and
/// the transposed result, of 3 x 4 values.
Graph staged_graph() {
  GraphBuilder builder("staged");
  const auto tensor = [&builder](const char* name, std::uint32_t rows, std::uint32_t cols,
                                 hw::DType type) {
    return builder.add_tensor({name, rows, cols, type, Tensor::Kind::kInput, {}, 0.0});
  };
  const View in = builder.whole(tensor("in", 3, 4, hw::DType::kS32));
  const View table = builder.whole(tensor("table", 3, 4, hw::DType::kS16));
  const TensorId sums =
      builder.add_tensor({"sums", 3, 4, hw::DType::kS32, Tensor::Kind::kActivation, {}, 0.0});
  hw::Stage rope = hw::default_stage(hw::StageOp::kRope);
  rope.side = hw::Reduction::kSumSquares;
  View x = builder.stage("rope", in, rope, hw::DType::kS32, {{}, table, sums, 0});
  const hw::Stage norm = hw::default_stage(hw::StageOp::kLayerNormApply);
  x = builder.stage("norm", x, norm, hw::DType::kS32,
                    {std::vector<std::int32_t>(8, 1), {}, sums, 0});
  x = builder.stage("mask", x, hw::default_stage(hw::StageOp::kMask), hw::DType::kS32,
                    {{}, {}, kNoTensor, 2});
  const View turned = builder.whole(tensor("turned", 4, 3, hw::DType::kS32));
  builder.stage_to("transpose", x, hw::default_stage(hw::StageOp::kTranspose), turned);
  return std::move(builder).take();
}

enum StagedNode : std::size_t { kRope, kNorm, kMask, kTranspose };

TEST(GraphCheck, AcceptsStages) { EXPECT_NO_THROW(check_graph(staged_graph())); }

TEST(GraphCheck, AcceptsAResultInPlace) {
  Graph graph = staged_graph();
  graph.nodes[kMask].out = graph.nodes[kMask].in;
  EXPECT_NO_THROW(check_graph(graph));
}

struct BadGraph {
  const char* name;
  StagedNode node;
  std::function<void(Graph& graph, Node& node)> spoil;
  const char* message;
};

class RefusesGraph : public testing::TestWithParam<BadGraph> {};

TEST_P(RefusesGraph, AndNamesTheNode) {
  Graph graph = staged_graph();
  Node& node = graph.nodes[GetParam().node];
  GetParam().spoil(graph, node);
  try {
    check_graph(graph);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(error.what(), "graph 'staged': node '" + node.name + "': " + GetParam().message);
  }
}

INSTANTIATE_TEST_SUITE_P(
    GraphCheck, RefusesGraph,
    testing::Values(
        BadGraph{"NoTable", kRope, [](Graph&, Node& n) { n.stage()->tensor = {}; },
                 "tensor operand is missing"},
        BadGraph{"TableShape", kRope, [](Graph&, Node& n) { n.stage()->tensor.rows = 2; },
                 "tensor operand and input differ in shape"},
        BadGraph{"TableType", kRope,
                 [](Graph&, Node& n) { n.stage()->stage.tensor = hw::DType::kS8; },
                 "tensor operand has another type"},
        BadGraph{"OddPairs", kRope,
                 [](Graph&, Node& n) { n.in.cols = n.stage()->tensor.cols = n.out.cols = 3; },
                 "pairs of an odd row"},
        BadGraph{"Saved", kRope,
                 [](Graph&, Node& n) { n.stage()->stage.operand = hw::Operand::kSaved; },
                 "a graph has no saved operand: it is a tensor"},
        BadGraph{"NarrowSums", kRope, [](Graph& g, Node& n) { g.tensors[n.statistics()].cols = 3; },
                 "row statistics 'sums' are 3 x 3, expected 3 x 4"},
        BadGraph{"WideSums", kRope, [](Graph& g, Node& n) { g.tensors[n.statistics()].cols = 5; },
                 "row statistics 'sums' are 3 x 5, expected 3 x 4"},
        BadGraph{"OtherWords", kRope,
                 [](Graph&, Node& n) { n.stage()->stage.side = hw::Reduction::kRowMax; },
                 "row statistics 'sums' are 3 x 4, expected 3 x 1"},
        BadGraph{"FewRows", kRope, [](Graph& g, Node& n) { g.tensors[n.statistics()].rows = 2; },
                 "row statistics 'sums' are 2 x 4, expected 3 x 4"},
        BadGraph{"ManyRows", kRope, [](Graph& g, Node& n) { g.tensors[n.statistics()].rows = 4; },
                 "row statistics 'sums' are 4 x 4, expected 3 x 4"},
        BadGraph{"NoPlaceForSums", kRope,
                 [](Graph&, Node& n) { n.stage()->statistics = kNoTensor; },
                 "row statistics are missing"},
        BadGraph{"UnknownSums", kRope,
                 [](Graph& g, Node& n) {
                   n.stage()->statistics = static_cast<TensorId>(g.tensors.size());
                 },
                 "row statistics are missing"},
        BadGraph{"SumsForNothing", kMask,
                 [](Graph& g, Node& n) { n.stage()->statistics = g.nodes[kRope].statistics(); },
                 "row statistics that the operator does not use"},
        BadGraph{"SumsOfBoth", kNorm,
                 [](Graph&, Node& n) { n.stage()->stage.side = hw::Reduction::kSumSquares; },
                 "row statistics are read, and others left"},
        BadGraph{"SumsInMemory", kRope,
                 [](Graph& g, Node& n) { g.tensors[n.statistics()].kind = Tensor::Kind::kOutput; },
                 "row statistics are wanted in memory"},
        BadGraph{"SumsAsInput", kMask,
                 [](Graph& g, Node& n) { n.in.tensor = g.nodes[kRope].statistics(); },
                 "input is 'sums', row statistics"},
        BadGraph{"ConstantResult", kMask,
                 [](Graph& g, Node& n) { g.tensors[n.out.tensor].kind = Tensor::Kind::kConstant; },
                 "output is a constant"},
        BadGraph{"ResultOverOtherInput", kMask,
                 [](Graph& g, Node& n) {
                   g.tensors[n.in.tensor].cols = 5;
                   n.out = n.in;
                   n.out.col = 1;
                 },
                 "output lies over other elements of its input"},
        BadGraph{"ResultOverOtherOperand", kRope,
                 [](Graph& g, Node& n) {
                   g.tensors[n.second().tensor].rows = 4;
                   n.out = n.second();
                   n.out.row = 1;
                 },
                 "output lies over other elements of its tensor operand"},
        BadGraph{"TurnedInPlace", kTranspose,
                 [](Graph&, Node& n) {
                   n.in.cols = 3;
                   n.out = n.in;
                 },
                 "output lies over other elements of its input"},
        BadGraph{"SumsType", kRope,
                 [](Graph& g, Node& n) { g.tensors[n.statistics()].type = hw::DType::kS16; },
                 "row statistics are not s32"},
        BadGraph{"NoSums", kNorm, [](Graph&, Node& n) { n.stage()->statistics = kNoTensor; },
                 "row statistics are missing"},
        BadGraph{"Parameters", kNorm,
                 [](Graph&, Node& n) { n.stage()->parameters.edit().pop_back(); },
                 "parameters do not fill the columns"},
        BadGraph{"KeptBeyondTheRow", kMask, [](Graph&, Node& n) { n.stage()->valid_cols = 5; },
                 "kept columns without a softmax or a causal mask, or more than there are"},
        BadGraph{"KeptByChannels", kMask,
                 [](Graph&, Node& n) {
                   n.stage()->stage.operand = hw::Operand::kChannel;
                   n.stage()->parameters.edit().resize(4);
                 },
                 "kept columns without a softmax or a causal mask, or more than there are"},
        BadGraph{"NotTurned", kTranspose, [](Graph&, Node& n) { n.out.rows = 3; },
                 "output is not the input transposed"}),
    [](const testing::TestParamInfo<BadGraph>& test) { return test.param.name; });

}  // namespace
}  // namespace systole::model

/// What runs later, or while something else is read, must not read what has changed by then.

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "hw/description/machine_file.h"
#include "mapper/fuse/fusion.h"
#include "mapper/mapping.h"
#include "support/network/attention_graph.h"
#include "support/network/mapped_run.h"
#include "support/random/random_graph.h"

namespace systole::mapper {
namespace {

using hw::DType;
using model::View;
using test::GraphSketch;

constexpr std::uint32_t kRows = 24, kCols = 16;

/// An input "x", and tensors that operators write twice.
class TwiceWritten {
 public:
  GraphSketch g{"twice", 3};

  /// A tensor that holds what it got from the input `source`.
  View variable(const std::string& name, DType type = DType::kS8) {
    const View view = g.whole(g.tensor(name, kRows, kCols, type));
    write(name + ".first", view);
    return view;
  }
  void write(const std::string& name, const View& view) {
    const View source = g.input(name + ".source", view.rows, view.cols);
    g.stage_to(name, source, GraphSketch::relu(), view);
  }
  View product(const View& a) { return g.matmul("product", a, g.weight("w", kCols, 32)); }
  View added(const std::string& name, const View& in, const View& tensor) {
    return g.stage(name, in, model::add_tensor_stage(DType::kS8, {1, 1}, 6, hw::Rounding::kHalfUp),
                   DType::kS32, tensor);
  }
  View bytes(const std::string& name, const View& in) {
    return g.stage(name, in, GraphSketch::to_bits(8, 2), DType::kS8);
  }
  View x() {
    if (x_.tensor == model::kNoTensor) x_ = g.input("x", kRows, kCols);
    return x_;
  }

 private:
  View x_;
};

hw::Machine staging_machine() {
  hw::Machine machine;
  machine.preop.lanes = 16;
  machine.mapper.on_chip = 0;
  return machine;
}

/// Of the operator of that name.
FusionDecision decision_of(const model::Graph& graph, const hw::Machine& machine,
                           const std::string& name) {
  for (const FusionDecision& decision : fuse(graph, machine).decisions) {
    if (graph.nodes[decision.node].name == name) return decision;
  }
  throw std::invalid_argument("no operator " + name);
}

std::string why_of(const model::Graph& graph, const hw::Machine& machine, const std::string& name) {
  return decision_of(graph, machine, name).why;
}

bool runs_in_front(const model::Graph& graph, const hw::Machine& machine, const std::string& name) {
  return decision_of(graph, machine, name).role == FusionDecision::Role::kPre;
}

struct Pass {
  const char* name;
  std::function<View(TwiceWritten& twice)>
      build;            ///< a graph; `pass` in it has one matmul as reader
  const char* changes;  ///< what changes in between; "": nothing
};

class PassInFront : public testing::TestWithParam<Pass> {};

TEST_P(PassInFront, StaysWhereItIsIfWhatItReadsChanges) {
  TwiceWritten twice;
  const View out = GetParam().build(twice);
  const model::Graph graph = twice.g.take(out);
  const hw::Machine machine = staging_machine();
  const FusionDecision pass = decision_of(graph, machine, "pass");
  const std::string changes = GetParam().changes;
  EXPECT_EQ(pass.role == FusionDecision::Role::kPre, changes.empty()) << pass.why;
  if (!changes.empty()) {
    EXPECT_NE(pass.why.find(changes + " may change before it is read: "), std::string::npos)
        << pass.why;
  }
  test::expect_program_computes_graph(graph, machine, map_graph(graph, machine), 1);
}

View with_operand(TwiceWritten& twice, const std::function<void(const View& y)>& between) {
  const View y = twice.variable("y");
  const View pass = twice.bytes("narrow", twice.added("pass", twice.x(), y));
  between(y);
  return twice.product(pass);
}

INSTANTIATE_TEST_SUITE_P(
    FusionOrder, PassInFront,
    testing::Values(
        Pass{"Nothing", [](TwiceWritten& twice) { return with_operand(twice, [](const View&) {}); },
             ""},
        Pass{"Operand",
             [](TwiceWritten& twice) {
               return with_operand(twice, [&](const View& y) { twice.write("again", y); });
             },
             "y"},
        Pass{"PartOfTheOperand",
             [](TwiceWritten& twice) {
               return with_operand(twice, [&](View y) {
                 y.row = y.rows = 3;
                 twice.write("again", y);
               });
             },
             "y"},
        Pass{"AnotherPart",
             [](TwiceWritten& twice) {
               const View y = twice.g.whole(twice.g.tensor("y", 2 * kRows, kCols, DType::kS8));
               View upper = y, lower = y;
               upper.rows = lower.rows = lower.row = kRows;
               twice.write("upper", upper);
               const View pass = twice.bytes("narrow", twice.added("pass", twice.x(), upper));
               twice.write("lower", lower);
               return twice.product(pass);
             },
             ""},
        Pass{"Input",
             [](TwiceWritten& twice) {
               const View y = twice.variable("y", DType::kS16);
               const View pass = twice.bytes("pass", y);
               twice.bytes("another reader", y);
               twice.write("again", y);
               return twice.product(pass);
             },
             "y"},
        Pass{"RowStatistics",
             [](TwiceWritten& twice) {
               const model::TensorId sums = twice.g.tensor("sums", kRows, 1, DType::kS32);
               hw::Stage leaves = GraphSketch::relu();
               leaves.side = hw::Reduction::kRowMax;
               const View first = twice.g.stage("first", twice.x(), leaves, DType::kS8, {}, sums);
               hw::Stage sub;
               sub.op = hw::StageOp::kSub;
               sub.operand = hw::Operand::kRow;
               const View pass =
                   twice.bytes("narrow", twice.g.stage("sub", twice.added("pass", twice.x(), first),
                                                       sub, DType::kS32, {}, sums));
               twice.g.stage("again", twice.g.input("other", kRows, kCols), leaves, DType::kS8, {},
                             sums);
               return twice.product(pass);
             },
             "sums"},
        Pass{"Result",
             [](TwiceWritten& twice) {
               const View y = twice.g.whole(twice.g.tensor("y", kRows, kCols, DType::kS8));
               twice.g.stage_to("pass", twice.x(), GraphSketch::relu(), y);
               twice.write("again", {y.tensor, 5, 0, 2, kCols});
               return twice.product(y);
             },
             "y"}),
    [](const testing::TestParamInfo<Pass>& test) { return test.param.name; });

TEST(FusionOrder, AStateThatIsWrittenInBetweenCountsAsAWhole) {
  TwiceWritten twice;
  const View y = twice.g.whole(twice.g.tensor("y", 2 * kRows, kCols, DType::kS8));
  View upper = y, lower = y;
  upper.rows = lower.rows = lower.row = kRows;
  const View pass = twice.bytes("narrow", twice.added("pass", twice.x(), upper));
  twice.write("lower", lower);
  model::Graph graph = twice.g.take(twice.product(pass));
  graph.tensors[y.tensor].kind = model::Tensor::Kind::kState;
  const hw::Machine machine = staging_machine();
  EXPECT_NE(why_of(graph, machine, "pass").find("y may change before it is read: lower writes it"),
            std::string::npos)
      << "another step of a decoder may write other rows";
  test::expect_program_computes_graph(graph, machine, map_graph(graph, machine), 1);
  graph.nodes.erase(graph.nodes.begin() + 2);
  EXPECT_TRUE(runs_in_front(graph, machine, "pass")) << why_of(graph, machine, "pass");
}

// A matmul has read the tensor by the time that it is written again.
TEST(FusionOrder, AnEarlierReaderIsNotTheReader) {
  TwiceWritten twice;
  const View y = twice.g.whole(twice.g.tensor("y", kRows, kCols, DType::kS8));
  const View c = twice.g.matmul("c", twice.x(), twice.g.weight("v", kCols, kCols));
  twice.g.stage_to("first", c, GraphSketch::to_bits(8, 6), y);
  const View out = twice.product(y);
  twice.write("again", y);
  const model::Graph graph = twice.g.take(out);
  const hw::Machine machine = staging_machine();
  EXPECT_FALSE(runs_in_front(graph, machine, "again"));
  test::expect_program_computes_graph(graph, machine, map_graph(graph, machine), 1);
}

// What is moved needs its operand when its reader runs: the place is not given away before.
TEST(FusionOrder, AnOperandLivesUntilItIsRead) {
  TwiceWritten twice;
  const View y = twice.variable("y");
  const View pass = twice.bytes("narrow", twice.added("pass", twice.x(), y));
  View other = twice.g.input("other", kRows, kCols);
  for (int i = 0; i < 4; ++i) {
    const std::string index = std::to_string(i);
    other = twice.g.matmul("product" + index, other, twice.g.weight("w" + index, kCols, kCols));
    other = twice.bytes("bytes" + index, other);
  }
  const View joined = twice.g.matmul("joined", pass, twice.g.weight("v", kCols, kCols));
  const model::Graph graph = twice.g.take(twice.added("out", joined, other));
  const hw::Machine machine = staging_machine();
  const Mapping mapping = map_graph(graph, machine);
  EXPECT_TRUE(runs_in_front(graph, machine, "pass")) << why_of(graph, machine, "pass");
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const Location& location = mapping.tensors[id];
    if (id == y.tensor || location.place != Location::Place::kDram) continue;
    if (graph.tensors[id].kind != model::Tensor::Kind::kActivation) continue;
    EXPECT_NE(location.address, mapping.tensors[y.tensor].address) << graph.tensors[id].name;
  }
  test::expect_program_computes_graph(graph, machine, mapping, 1);
}

// The result leaves in tiles, while other tiles of the operands are still to be read.
TEST(FusionOrder, NoStageWritesOverWhatItsGroupStillReads) {
  constexpr std::uint32_t kSide = 48;
  hw::Machine machine = hw::find_machine("tiny");
  machine.scratchpad.kib = machine.accumulator.kib = 1;
  const hw::Stage narrow = GraphSketch::to_bits(8, 6);
  for (const char* over : {"a", "b", "other rows of an operand"}) {
    SCOPED_TRACE(over);
    TwiceWritten twice;
    const View y = twice.g.whole(twice.g.tensor("y", kSide + 1, kSide, DType::kS8));
    twice.write("first", y);
    View upper = y, lower = y;
    upper.rows = lower.rows = kSide;
    lower.row = 1;
    const View other = twice.g.input("other", kSide, kSide);
    View sums =
        over[0] == 'a' ? twice.g.matmul("c", upper, other) : twice.g.matmul("c", other, upper);
    if (over[0] == 'o') {
      sums = twice.g.stage("c.small", twice.g.matmul("d", other, twice.g.weight("w", kSide, kSide)),
                           GraphSketch::to_bits(8, 6), DType::kS8);
      sums = twice.added("added", sums, upper);
    }
    twice.g.stage_to("over", sums, narrow, over[0] == 'o' ? lower : upper);
    const model::Graph graph = twice.g.take(y);
    EXPECT_NE(why_of(graph, machine, "over").find("it writes over y"), std::string::npos);
    test::expect_program_computes_graph(graph, machine, map_graph(graph, machine), 1);
  }
}

TEST(FusionOrder, AStageWritesOverWhatPassesWithIt) {
  TwiceWritten twice;
  const View y = twice.variable("y");
  const View sums =
      twice.added("added", twice.g.matmul("c", twice.x(), twice.g.weight("w", kCols, kCols)), y);
  twice.g.stage_to("over", sums, GraphSketch::to_bits(8, 6), y);
  const model::Graph graph = twice.g.take(y);
  const hw::Machine machine = hw::find_machine("tiny");
  EXPECT_EQ(fuse(graph, machine).groups.size(), 2U) << "a residual addition in place";
  test::expect_program_computes_graph(graph, machine, map_graph(graph, machine), 1);
}

TEST(FusionOrder, ATileThatIsStillOnChipIsLoadedAgainWhenItHasChanged) {
  for (const bool as_weight : {false, true}) {
    TwiceWritten twice;
    const View y = twice.variable("y");
    const auto product = [&](const std::string& name) {
      return as_weight ? twice.g.matmul(name, twice.g.input(name + ".a", 8, kRows), y)
                       : twice.g.matmul(name, y, twice.g.input(name + ".b", kCols, 8));
    };
    const View first = product("first");
    twice.write("again", y);
    const View out = twice.g.stage(
        "sum", product("second"),
        model::add_tensor_stage(DType::kS32, {}, 32, hw::Rounding::kHalfUp), DType::kS32, first);
    const model::Graph graph = twice.g.take(out);
    hw::Machine machine;
    machine.mapper.on_chip = 0;
    test::expect_program_computes_graph(graph, machine, map_graph(graph, machine), 1);
  }
}

model::Node clamp_of(const std::string& name, const View& in, const View& out) {
  model::Node node;
  node.name = name;
  node.stage()->stage = model::clamp_stage(8);
  node.in = in;
  node.out = out;
  return node;
}

class AttentionOrder : public testing::Test {
 protected:
  AttentionOrder() {
    machine_.preop.lanes = 16;
    test::AttentionSketch sketch;
    sketch.heads = 2;
    sketch.queries = sketch.keys = 12;
    sketch.dim = 16;
    sketch.operands[0] = {model::clamp_stage(6)};
    sketch.outputs = {model::divide_row_sum_stage(),
                      model::requantise_stage({1, 8}, 8, hw::Rounding::kHalfUp)};
    graph_ = test::AttentionGraph(sketch).build();
  }
  /// Heads in attention groups.
  [[nodiscard]] std::size_t heads() const {
    std::size_t heads = 0;
    for (const Group& group : fuse(graph_, machine_).groups) {
      if (group.attention()) heads += group.attention()->heads.size();
    }
    return heads;
  }

  hw::Machine machine_ = hw::find_machine("vitcod");
  model::Graph graph_;
};

TEST_F(AttentionOrder, AnOperandThatChangesHasNoStagesInFront) {
  EXPECT_EQ(fuse(graph_, machine_).groups.size(), 1U);
  const View in = graph_.nodes[0].in;
  View value = in;
  value.col = 2 * in.cols;
  graph_.nodes.insert(graph_.nodes.begin() + 1, clamp_of("again", value, in));
  const Fusion fusion = fuse(graph_, machine_);
  EXPECT_EQ(fusion.groups.size(), 3U);
  EXPECT_NE(fusion.decisions[0].why.find("x may change before it is read: again writes it"),
            std::string::npos)
      << fusion.decisions[0].why;
}

TEST_F(AttentionOrder, AResultOverAnOperandIsNotForTheEngines) {
  EXPECT_EQ(heads(), 2U);
  const View query = graph_.nodes[0].out;
  for (model::Node& node : graph_.nodes) {
    if (node.out.tensor != graph_.nodes.back().out.tensor) continue;
    node.out.tensor = query.tensor;
  }
  EXPECT_EQ(heads(), 0U);
}

TEST_F(AttentionOrder, RowSumsThatOthersReadAreNotForTheEngines) {
  model::Node divide;
  for (const model::Node& node : graph_.nodes) {
    if (node.is(hw::StageOp::kDivideRowSum) && divide.name.empty()) divide = node;
  }
  divide.name = "again";
  divide.in.tensor = graph_.nodes[0].in.tensor;
  divide.out.tensor = static_cast<model::TensorId>(graph_.tensors.size());
  graph_.tensors.push_back({"again",
                            divide.in.rows,
                            divide.in.cols,
                            DType::kS32,
                            model::Tensor::Kind::kOutput,
                            {},
                            0.0});
  graph_.nodes.push_back(divide);
  EXPECT_EQ(heads(), 1U) << "the other head";
}

}  // namespace
}  // namespace systole::mapper

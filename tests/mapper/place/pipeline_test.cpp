#include "mapper/place/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "hw/description/machine_file.h"
#include "mapper/fuse/fusion.h"
#include "mapper/place/placement.h"
#include "mapper/tile/tiling.h"
#include "model/seeded/shapes.h"
#include "support/network/pipelined_mapping.h"
#include "support/random/random_graph.h"

namespace systole::mapper {
namespace {

using hw::DType;
using test::GraphSketch;

constexpr Pipelining kAttention{true, false}, kRowPipelines{false, true}, kBoth{true, true};
constexpr Pipelining kStrips{true, false, 0, true};

/// A graph and its groups, which a test may change.
struct Sketch {
  explicit Sketch(model::Graph sketched, hw::Machine on = hw::find_machine("transformer"))
      : graph(std::move(sketched)), machine(std::move(on)), groups(fuse(graph, machine).groups) {}

  [[nodiscard]] std::vector<Pipeline> pipelines(Pipelining allowed) const {
    return find_pipelines(graph, groups, machine, allowed);
  }
  [[nodiscard]] std::string levels(Pipelining allowed) const {
    return test::levels_text(pipelines(allowed));
  }

  model::Graph graph;
  hw::Machine machine;
  std::vector<Group> groups;
};

constexpr std::uint32_t kRowsOfHeads = 40, kColsOfHeads = 24;

/// Softmax of Q K^T, then its product with V, for each head: two groups each.
model::Graph heads(std::uint32_t count) {
  GraphSketch g("heads", 1);
  model::View out;
  for (std::uint32_t head = 0; head < count; ++head) {
    const std::string name = "head" + std::to_string(head);
    const model::View q = g.input(name + ".q", kRowsOfHeads, kColsOfHeads);
    const model::View k = g.input(name + ".k", kRowsOfHeads, kColsOfHeads);
    const model::View v = g.input(name + ".v", kRowsOfHeads, kColsOfHeads);
    model::View scores = g.matmul(name + ".scores", q, k, true);
    scores = g.stage(name + ".sixteen", scores, GraphSketch::to_bits(15, 5), DType::kS16);
    scores = g.stage(name + ".softmax", scores,
                     GraphSketch::softmax(hw::SoftmaxMode::kNormalisedRound), DType::kU8);
    const model::View context = g.matmul(name + ".context", scores, v);
    out = g.stage(name + ".out", context, GraphSketch::to_bits(8, 6), DType::kS8);
  }
  return g.take(out);
}

TEST(FindPipelines, HeadsBecomeOnePipelineOfTwoLevels) {
  const Sketch sketch(heads(3));
  ASSERT_EQ(sketch.groups.size(), 6U);
  EXPECT_EQ(sketch.levels({}), "0,0,0,0,0,0");
  EXPECT_EQ(sketch.levels(kRowPipelines), "0,0,0,0,0,0") << "whose products take no weights";
  EXPECT_EQ(sketch.levels(kAttention), "010101");
  EXPECT_EQ(sketch.levels(kBoth), "010101");
  const Pipeline pipeline = sketch.pipelines(kAttention).front();
  EXPECT_EQ(pipeline.end(), 6U);
  EXPECT_EQ(pipeline.slots, 2U);
  EXPECT_EQ(pipeline.row_tile, kRowsOfHeads) << "all rows fit";
}

TEST(FindPipelines, RowTilesFitTheRingAndTheAccumulator) {
  Sketch sketch(heads(2));
  sketch.machine = hw::Machine{};
  // Rows of 40 scores, padded to 48 bytes; two slots in a quarter of the scratchpad.
  sketch.machine.scratchpad.kib = 8;
  Pipeline pipeline = sketch.pipelines(kAttention).front();
  ASSERT_EQ(pipeline.levels.size(), 4U);
  EXPECT_LE(pipeline.slots * pipeline.row_tile * std::uint64_t{48}, 8 * hw::kKib / 4);
  EXPECT_EQ(pipeline.row_tile, 20U) << "21 fit: two equal tiles";
  // Rows of 48 sums of scores and 32 of contexts share a half.
  sketch.machine.accumulator.kib = 4;
  pipeline = sketch.pipelines(kAttention).front();
  EXPECT_EQ(pipeline.row_tile, 6U) << "512 sums hold 6 rows of 80: seven tiles of up to 6";
  sketch.machine.accumulator.kib = 1;
  sketch.machine.scratchpad.kib = 1;
  EXPECT_EQ(sketch.pipelines(kAttention).front().row_tile, 1U);
  sketch.machine.array.rows = sketch.machine.array.cols = 128;
  EXPECT_EQ(sketch.levels(kAttention), "0,0,0,0") << "not even one row";
}

TEST(FindPipelines, TilesOfScoresHoldAsManyStripsAsTheAccumulatorHas) {
  Sketch sketch(heads(2));
  sketch.machine = hw::Machine{};
  EXPECT_EQ(sketch.pipelines(kStrips), sketch.pipelines(kAttention)) << "all rows fit the ring";
  // Two slots of 48 bytes a row in a quarter of the scratchpad.
  sketch.machine.scratchpad.kib = 2;
  Pipeline pipeline = sketch.pipelines(kStrips).front();
  EXPECT_EQ(pipeline.row_tile, 5U);
  EXPECT_EQ(pipeline.strips, 8U) << "all";
  EXPECT_EQ(sketch.pipelines(kAttention).front().strips, 1U);
  EXPECT_FALSE(pipeline == sketch.pipelines(kAttention).front());
  // 1,024 sums, less 5 rows of 32 of a context, hold 3 strips of 5 rows of 48: 3, 3 and 2.
  sketch.machine.accumulator.kib = 8;
  pipeline = sketch.pipelines(kStrips).front();
  EXPECT_EQ(pipeline.row_tile, 5U);
  EXPECT_EQ(pipeline.strips, 3U);
  // 512 hold one.
  sketch.machine.accumulator.kib = 4;
  EXPECT_EQ(sketch.pipelines(kStrips).front().strips, 1U);
}

TEST(FindPipelines, ScoresWithParametersLeaveAsAWhole) {
  Sketch sketch(heads(2));
  sketch.machine = hw::Machine{};
  sketch.machine.scratchpad.kib = 2;
  hw::Stage bias;
  bias.op = hw::StageOp::kAdd;
  bias.operand = hw::Operand::kChannel;
  sketch.groups[2].chain.stages.insert(sketch.groups[2].chain.stages.begin(), bias);
  ASSERT_NE(hw::parameter_words(sketch.groups[2].chain), 0U);
  EXPECT_EQ(sketch.pipelines(kStrips).front().strips, 1U);
}

TEST(FindPipelines, NothingIsPipelinedWhereResultsLeaveTheChip) {
  Sketch sketch(heads(2));
  sketch.machine.mapper.on_chip = 0;
  EXPECT_EQ(sketch.levels(kBoth), "0,0,0,0");
  sketch.machine.mapper.on_chip = 1;
  EXPECT_EQ(sketch.levels(kBoth), "0101");
  sketch.machine.mapper.strategy = hw::MappingStrategy::kGemmini;
  EXPECT_EQ(sketch.levels(kBoth), "0,0,0,0");
}

TEST(FindPipelines, ScoresWithTwoReadersAreNoPartOfAHead) {
  Sketch sketch(heads(2));
  sketch.groups[3].a.tensor = sketch.groups[0].out.tensor;
  EXPECT_EQ(sketch.levels(kAttention), "0,0,0,0") << "and the other head's scores have none";
}

TEST(FindPipelines, PartsOfScoresAreNoHead) {
  Sketch sketch(heads(1));
  sketch.groups[0].out.rows -= 1;
  EXPECT_EQ(sketch.levels(kAttention), "0,0");
  sketch = Sketch(heads(1));
  sketch.groups[1].a.rows -= 1;
  EXPECT_EQ(sketch.levels(kAttention), "0,0");
  sketch = Sketch(heads(1));
  std::get<MatmulAnchor>(sketch.groups[1].anchor).b = sketch.groups[1].a;
  EXPECT_EQ(sketch.levels(kAttention), "0,0") << "B is wanted whole";
}

TEST(FindPipelines, StatesAreLeftAlone) {
  for (const std::size_t group : {0U, 1U}) {
    Sketch sketch(heads(2));
    sketch.graph.tensors[sketch.groups[group].matmul()->b.tensor].kind =
        model::Tensor::Kind::kState;
    EXPECT_EQ(sketch.levels(kAttention), "0,0,01");
  }
  Sketch sketch(heads(2));
  sketch.graph.tensors[sketch.groups[1].out.tensor].kind = model::Tensor::Kind::kState;
  EXPECT_EQ(sketch.levels(kAttention), "0,0,01");
}

TEST(FindPipelines, WhatAnotherGroupWritesInTurnsEndsAPipeline) {
  // Contexts of a head over its own Q; over the Q of the head before.
  Sketch sketch(heads(3));
  sketch.groups[1].out = sketch.groups[0].a;
  EXPECT_EQ(sketch.levels(kAttention), "0,0,0101");
  sketch = Sketch(heads(3));
  sketch.groups[3].out = sketch.groups[0].a;
  EXPECT_EQ(sketch.levels(kAttention), "01,0101");
  // Two contexts in one place, and a head that reads the context of the one before.
  sketch = Sketch(heads(3));
  sketch.groups[3].out = sketch.groups[1].out;
  EXPECT_EQ(sketch.levels(kAttention), "01,0101");
  sketch = Sketch(heads(3));
  std::get<MatmulAnchor>(sketch.groups[4].anchor).b = sketch.groups[3].out;
  EXPECT_EQ(sketch.levels(kAttention), "0101,01");
}

TEST(FindPipelines, HeadsOfOtherSizesBeginAnew) {
  Sketch sketch(heads(2));
  for (Group* group : {&sketch.groups[2], &sketch.groups[3]}) {
    group->a.rows = group->out.rows = 8;
  }
  sketch.graph.tensors[sketch.groups[2].out.tensor].rows = 8;
  EXPECT_EQ(sketch.levels(kAttention), "01,01");
}

/// A product, a LayerNorm of it, a product of that with the first one added: three groups.
model::Graph chain() {
  GraphSketch g("chain", 1);
  model::View x = g.matmul("c", g.input("x", 40, 24), g.weight("w", 24, 32));
  const model::View first = g.stage("first", x, GraphSketch::to_bits(15, 5), DType::kS16);
  const model::View norm = g.stage("norm", first, GraphSketch::layer_norm(), DType::kS8);
  x = g.matmul("d", norm, g.weight("v", 32, 32));
  x = g.stage("sixteen", x, GraphSketch::to_bits(15, 5), DType::kS16);
  return g.take(g.stage("add", x,
                        model::add_tensor_stage(DType::kS16, {3, 3}, 14, hw::Rounding::kHalfUp),
                        DType::kS32, first));
}

Sketch chain_sketch() {
  hw::Machine machine = hw::find_machine("transformer");
  machine.preop.lanes = 0;
  return Sketch(chain(), machine);
}

TEST(FindPipelines, LayerNormPassesJoinProducts) {
  const Sketch sketch = chain_sketch();
  ASSERT_EQ(sketch.groups.size(), 3U);
  EXPECT_FALSE(sketch.groups[1].matmul() != nullptr);
  EXPECT_EQ(sketch.levels(kAttention), "0,0,0");
  EXPECT_EQ(sketch.levels(kRowPipelines), "012");
  EXPECT_EQ(sketch.pipelines(kRowPipelines).front().row_tile, 0U) << "each has tiles of its own";
  EXPECT_EQ(sketch.pipelines(kRowPipelines).front().slots, 0U);
}

TEST(FindPipelines, RowsThatAreNotYetDoneEndAChain) {
  Sketch sketch = chain_sketch();
  sketch.groups[2].tensors.front().row = 1;
  EXPECT_EQ(sketch.levels(kRowPipelines), "01,0") << "the next row of the first product";
  sketch = chain_sketch();
  sketch.groups[1].a.row = 1;
  EXPECT_EQ(sketch.levels(kRowPipelines), "0,01");
  sketch = chain_sketch();
  sketch.groups[2].out = sketch.groups[0].a;
  EXPECT_EQ(sketch.levels(kRowPipelines), "01,0") << "over what the first one reads";
  sketch = chain_sketch();
  sketch.graph.tensors[sketch.groups[2].matmul()->b.tensor].kind = model::Tensor::Kind::kActivation;
  EXPECT_EQ(sketch.levels(kRowPipelines), "01,0") << "only weights stay";
}

TEST(FindPipelines, WeightsOfSeveralProductsHaveToFit) {
  Sketch sketch = chain_sketch();
  sketch.machine.scratchpad.kib = 4;  // 32 x 32 bytes each, and half is for them
  EXPECT_EQ(sketch.levels(kRowPipelines), "012");
  sketch.machine.scratchpad.kib = 3;
  EXPECT_EQ(sketch.levels(kRowPipelines), "01,0");
}

TEST(FindPipelines, NothingThatTransposesIsPipelined) {
  hw::Stage transpose;
  transpose.op = hw::StageOp::kTranspose;
  for (std::size_t group = 0; group < 3; ++group) {
    Sketch sketch = chain_sketch();
    sketch.groups[group].chain.stages.push_back(transpose);
    EXPECT_EQ(sketch.levels(kRowPipelines), group == 1 ? "0,0,0" : group == 0 ? "0,01" : "01,0");
  }
  Sketch sketch(heads(1));
  sketch.groups[1].chain.stages.push_back(transpose);
  EXPECT_EQ(sketch.levels(kAttention), "0,0");
}

TEST(Pipeline, LastBesideIsTheLastGroupBegunBeforeTheEndOfAnother) {
  const auto all = [](const Pipeline& pipeline) {
    std::vector<std::size_t> last;
    for (std::size_t i = pipeline.first; i < pipeline.end(); ++i) {
      last.push_back(pipeline.last_beside(i));
    }
    return last;
  };
  using Steps = std::vector<std::size_t>;
  EXPECT_EQ(all({5, {0}, 0, 0}), Steps{5});
  EXPECT_EQ(all({5, {0, 1, 2}, 0, 0}), (Steps{7, 7, 7}));
  // The scores of the next head begin before the context of this one ends.
  EXPECT_EQ(all({5, {0, 1, 0, 1, 0, 1}, 8, 2}), (Steps{6, 7, 8, 9, 10, 10}));
}

/// The heads of an encoder layer with what follows them.
Sketch layer_sketch() {
  hw::Machine machine = hw::find_machine("transformer");
  machine.preop.lanes = 0;
  model::EncoderShape shape;
  shape.layers = 1;
  shape.heads = 2;
  shape.width = 32;
  shape.hidden = 64;
  return Sketch(model::make_seeded_encoder("layer", shape, 40, 1), machine);
}

TEST(FindPipelines, AChainJoinsTheHeadsWhoseRowsItReads) {
  const Sketch sketch = layer_sketch();
  const std::vector<Pipeline> all = sketch.pipelines({true, true, 3});
  const auto found = std::find_if(all.begin(), all.end(),
                                  [](const Pipeline& pipeline) { return pipeline.by_rows; });
  ASSERT_NE(found, all.end());
  EXPECT_EQ(test::levels_text({*found}), "01012345") << "proj, norm, fc1, fc2";
  EXPECT_EQ(found->heads, 2U);
  EXPECT_EQ(found->row_tile, 14U) << "three tiles of 40 rows";
  EXPECT_EQ(found->slots, 2U);
  EXPECT_EQ(found->first_of(1), 1U);
  EXPECT_EQ(found->first_of(3), 5U);
  EXPECT_EQ(found->last_beside(found->first), found->end() - 1);
  std::vector<std::string> passing;
  for (const model::TensorId id : found->passing) passing.push_back(sketch.graph.tensors[id].name);
  EXPECT_EQ(passing.size(), 3U) << "contexts, what the norm gives, and the hidden rows";
  EXPECT_EQ(sketch.levels(kBoth).find("0123456"), std::string::npos);
}

TEST(FindPipelines, NothingJoinsHeadsWhoseOperandsCannotReside) {
  Sketch sketch = layer_sketch();
  const auto joins = [&](std::uint32_t pieces) {
    const std::vector<Pipeline> all = sketch.pipelines({true, true, pieces});
    return std::any_of(all.begin(), all.end(),
                       [](const Pipeline& pipeline) { return pipeline.by_rows; });
  };
  EXPECT_TRUE(joins(40));
  EXPECT_FALSE(joins(41)) << "there are 40 rows";
  sketch.machine.scratchpad.kib = 4;
  EXPECT_TRUE(joins(2)) << "40 rows of 96 bytes";
  sketch.machine.scratchpad.kib = 3;
  EXPECT_FALSE(joins(2));
}

constexpr Pipelining kProjected{true, true, 0, false, true};

/// Heads whose queries, keys and values are sections of one product's result.
model::Graph projected_heads(std::uint32_t count, std::uint32_t readers = 0) {
  GraphSketch g("projected", 1);
  const std::uint32_t width = count * kColsOfHeads;
  model::View x = g.input("x", kRowsOfHeads, width);
  x = g.stage("norm", x, GraphSketch::to_bits(8, 6), DType::kS8);
  const model::View sums = g.matmul("qkv", x, g.weight("w", width, 3 * width));
  const model::View qkv = g.stage("qkv.out", sums, GraphSketch::to_bits(8, 6), DType::kS8);
  const auto section = [&](std::uint32_t col) {
    return model::View{qkv.tensor, 0, col, kRowsOfHeads, kColsOfHeads};
  };
  model::View out;
  for (std::uint32_t head = 0; head < count; ++head) {
    const std::string name = "head" + std::to_string(head);
    const std::uint32_t col = head * kColsOfHeads;
    model::View scores = g.matmul(name + ".scores", section(col), section(width + col), true);
    scores = g.stage(name + ".sixteen", scores, GraphSketch::to_bits(15, 5), DType::kS16);
    scores = g.stage(name + ".softmax", scores,
                     GraphSketch::softmax(hw::SoftmaxMode::kNormalisedRound), DType::kU8);
    const model::View context = g.matmul(name + ".context", scores, section(2 * width + col));
    out = g.stage(name + ".out", context, GraphSketch::to_bits(8, 6), DType::kS8);
  }
  for (std::uint32_t i = 0; i < readers; ++i) {
    const std::string name = "other" + std::to_string(i);
    const model::View product = g.matmul(name, qkv, g.weight(name + ".w", 3 * width, 8));
    out = g.stage(name + ".out", product, GraphSketch::to_bits(8, 6), DType::kS8);
  }
  return g.take(out);
}

TEST(FindPipelines, HeadsComeWithTheProductThatTheyRead) {
  const Sketch sketch(projected_heads(2));
  ASSERT_EQ(sketch.levels(kAttention), "0,0,0101");
  EXPECT_EQ(sketch.levels(kBoth), "01,0101");
  EXPECT_EQ(sketch.levels(kProjected), "0,01212") << "rows before them end at the product";
  const Pipeline pipeline = sketch.pipelines(kProjected).back();
  EXPECT_EQ(pipeline.section, kColsOfHeads);
  EXPECT_EQ(pipeline.read_by, (std::vector<std::uint32_t>{0, 2, 0, 2, 1, 3}));
  EXPECT_EQ(pipeline.scores_level(), 1U);
  EXPECT_EQ(pipeline.last_beside(pipeline.first), pipeline.end() - 1) << "to the last head";
  const Placement placement =
      place_tensors(sketch.graph, sketch.groups, sketch.pipelines(kProjected), sketch.machine);
  const Location& at = placement.tensors[sketch.groups[pipeline.first].out.tensor];
  EXPECT_EQ(at.section, kColsOfHeads);
  EXPECT_EQ(at.section_bytes, std::uint64_t{at.pitch} * kRowsOfHeads);
  EXPECT_EQ(at.at_col(kColsOfHeads - 1, 1), kColsOfHeads - 1);
  EXPECT_EQ(at.at_col(2 * kColsOfHeads + 5, 1), 2 * at.section_bytes + 5);
}

TEST(FindPipelines, AProductBeforeHeadsIsCutIntoTheFewestFoldsByHead) {
  // 144 columns in sections of 24.
  for (const auto& [array_cols, tile] : {std::pair{16U, 48U}, {64U, 48U}, {128U, 72U}}) {
    Sketch sketch(projected_heads(2));
    sketch.machine.array.rows = 16;
    sketch.machine.array.cols = array_cols;
    sketch.machine.accumulator.kib = 256;
    const std::vector<Pipeline> pipelines = sketch.pipelines(kProjected);
    const std::size_t product = pipelines.back().first;
    ASSERT_EQ(pipelines.back().section, kColsOfHeads);
    const Placement placement =
        place_tensors(sketch.graph, sketch.groups, pipelines, sketch.machine);
    const TilingProblem problem = tiling_problem(sketch.graph, sketch.groups[product], placement,
                                                 sketch.machine, placement.shares[product]);
    EXPECT_EQ(problem.out_section, kColsOfHeads);
    EXPECT_EQ(problem.section, tile) << array_cols;
    Tiling tiling;
    tiling.c_cols = tile;
    EXPECT_EQ(problem.result_cols(tiling), kColsOfHeads) << "a command for each section";
  }
}

TEST(FindPipelines, AProductThatOthersReadIsNoPartOfHeads) {
  EXPECT_EQ(Sketch(projected_heads(2, 1)).levels(kProjected), "01,0101,0");
  // Heads of the wrong width, or none at all.
  Sketch sketch(projected_heads(2));
  sketch.groups[2].a.col += 1;
  EXPECT_EQ(sketch.levels(kProjected), "01,0101");
  EXPECT_EQ(Sketch(heads(2)).levels(kProjected), "0101");
  // Rows of 64 sums of scores and of contexts take all of a half.
  sketch = Sketch(projected_heads(2));
  sketch.machine.accumulator.kib = 1;
  EXPECT_EQ(sketch.levels(kProjected), "0,01212");
  sketch.machine.array.rows = sketch.machine.array.cols = 64;
  EXPECT_EQ(sketch.levels(kProjected), "01,0101");
}

TEST(Location, RowsOfARingTakeItsSlotsInTurn) {
  Location location;
  location.address = 100;
  EXPECT_EQ(location.at_row(7, 10), 170U) << "no ring";
  location.ring = {3, 2, 0};
  std::vector<std::uint64_t> found;
  for (std::uint64_t row = 0; row < 8; ++row) found.push_back(location.at_row(row, 10));
  EXPECT_EQ(found, (std::vector<std::uint64_t>{100, 110, 120, 130, 140, 150, 100, 110}));
  location.ring.first = 5;
  EXPECT_EQ(location.at_row(1, 10), 140U) << "tile 5 has the second slot";
  EXPECT_EQ(location.at_row(4, 4), 104U);
  // Two heads in turn: the first one has the even numbers.
  location.ring = {3, 4, 0, 2};
  EXPECT_EQ(location.at_row(3, 10), 160U);
  EXPECT_EQ(location.at_row(6, 10), 100U);
}

}  // namespace
}  // namespace systole::mapper

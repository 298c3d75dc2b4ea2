#include "testbench/network/matmul_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "model/graph/graph_check.h"
#include "model/graph/reference.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {
namespace {

std::vector<std::int32_t> product(const MatmulShape& shape, const hw::Machine::Datapath& datapath) {
  const model::Graph graph = make_matmul_graph(shape, datapath, false);
  model::check_graph(graph);
  model::Reference reference(graph);
  reference.set_input("a", widen(matmul_input(shape), hw::DType::kS8));
  reference.run();
  return reference.values("c");
}

TEST(MatmulGraph, ReadsShapes) {
  const MatmulShape shape = parse_matmul_shape("1x65536x16");
  EXPECT_EQ(shape.m, 1U);
  EXPECT_EQ(shape.n, 65536U);
  EXPECT_EQ(shape.k, 16U);
  EXPECT_EQ(shape.macs(), 1048576U);
  EXPECT_THROW(static_cast<void>(parse_matmul_shape("1x65537x16")), hw::InputError);
}

TEST(MatmulGraph, UsesItsCodesWithoutSaturating) {
  for (const std::uint32_t k : {1U, 16U, 1000U}) {
    const std::vector<std::int32_t> values = product({100, 100, k}, {});
    double squares = 0;
    for (const std::int32_t value : values) squares += double{1} * value * value;
    const double deviation = std::sqrt(squares / static_cast<double>(values.size()));
    EXPECT_GT(deviation, 30) << k;
    EXPECT_LT(deviation, 60) << k;
    const auto clipped = std::count_if(values.begin(), values.end(),
                                       [](std::int32_t value) { return std::abs(value) == 127; });
    EXPECT_LT(clipped, 200) << k;
  }
}

TEST(MatmulGraph, SameShapeSameBits) {
  const MatmulShape shape{9, 7, 33};
  EXPECT_EQ(product(shape, {}), product(shape, {}));
  EXPECT_EQ(matmul_input(shape), matmul_input(shape));
}

TEST(MatmulGraph, FollowsTheDatapath) {
  hw::Machine::Datapath coarse;
  coarse.multiplier_bits = 8;
  coarse.rounding = hw::Rounding::kFloor;
  const MatmulShape shape{20, 20, 20};
  EXPECT_NE(product(shape, coarse), product(shape, {}));
}

TEST(MatmulGraph, ShapeAloneHasNoConstants) {
  const model::Graph graph = make_matmul_graph({8, 8, 8}, {}, true);
  for (const model::Tensor& tensor : graph.tensors) EXPECT_TRUE(tensor.data.empty());
  for (const model::Node& node : graph.nodes) {
    EXPECT_TRUE(node.stage() == nullptr || node.stage()->parameters.empty());
  }
}

TEST(MatmulGraph, BiasAndRequantisationAreStagesOfTheirOwn) {
  const MatmulShape shape{8, 8, 8};
  const auto stages = [&](const MatmulResult& result) {
    return make_matmul_graph(shape, {}, false, result).nodes.size() - 1;
  };
  EXPECT_EQ(stages({true, true}), 2U);
  EXPECT_EQ(stages({false, true}), 1U);
  EXPECT_EQ(stages({true, false}), 1U);
  const model::Graph bare = make_matmul_graph(shape, {}, false, {false, false});
  ASSERT_EQ(bare.nodes.size(), 1U);
  const model::Tensor& c = bare.tensors[bare.nodes.front().out.tensor];
  EXPECT_EQ(c.name, "c");
  EXPECT_EQ(c.type, hw::DType::kS32);
  EXPECT_EQ(c.kind, model::Tensor::Kind::kOutput);
}

TEST(MatmulGraph, RefusesProgramsThatCannotFit) {
  hw::Machine machine;
  EXPECT_NO_THROW(check_program_size({4096, 4096, 4096}, machine));
  machine.dram.mib = 1;
  machine.scratchpad.kib = 4;
  machine.accumulator.kib = 4;
  EXPECT_NO_THROW(check_program_size({256, 256, 256}, machine));
  EXPECT_THROW(check_program_size({4096, 4096, 4096}, machine), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench

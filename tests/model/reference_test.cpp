#include "model/reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/encoder_graph.h"
#include "model/float_vit.h"
#include "model/graph_builder.h"
#include "model/integer_model.h"
#include "model/shapes.h"
#include "model/stages.h"
#include "tests/model/vision.h"

namespace systole::model {
namespace {

class ReferenceModel : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<std::int32_t> golden(const std::string& what) const {
    return vision_golden().as_int32(std::string(GetParam()) + "." + what);
  }

  IntegerVit vit_ = load_integer_vit(integer_model_path(GetParam()));
  Graph graph_ = make_vit_graph(vit_);
};

TEST_P(ReferenceModel, LogitsOfAllDigitsEqualTheGoldenOnes) {
  const Dataset data = digits("test");
  const std::vector<std::int32_t> logits =
      integer_logits(graph_, vit_.shape, data, data.count, kFast);
  EXPECT_EQ(logits, golden("int_logits"));
  const std::string real =
      vision_golden().metadata().at(std::string(GetParam()) + ".fp32_accuracy");
  EXPECT_NEAR(integer_accuracy(logits, data), std::stod(real), 0.006);
}

TEST_P(ReferenceModel, PlainLoopsGiveTheSameLogits) {
  constexpr std::size_t kPictures = 30;
  std::vector<std::int32_t> expected = golden("int_logits");
  expected.resize(kPictures * vit_.shape.classes);
  EXPECT_EQ(integer_logits(graph_, vit_.shape, digits("test"), kPictures, {}), expected);
}

TEST_P(ReferenceModel, IntermediatesEqualTheGoldenOnes) {
  Reference reference(graph_);
  reference.set_input("patches", patches_of(digits("test"), 0, vit_.shape));
  reference.run();
  const bool post = vit_.shape.encoder.post_norm;
  if (post) {
    EXPECT_EQ(reference.values("embedding"), golden("image0.embedding_sum"));
  }
  EXPECT_EQ(reference.values(post ? "norm" : "embedding"), golden("image0.embedding"));
  for (int i = 0; i < 4; ++i) {
    const std::string block = std::to_string(i);
    EXPECT_EQ(reference.values("blocks." + block + (post ? ".norm2" : ".mlp.residual")),
              golden("image0.block" + block));
  }
  EXPECT_EQ(reference.values("logits"), golden("image0.logits"));
}

INSTANTIATE_TEST_SUITE_P(EmbeddedModels, ReferenceModel, ::testing::ValuesIn(kVisionModels),
                         model_test_name);

TEST(Reference, FastAndPlainProductsAgreeInEveryTensor) {
  const EncoderShape shape{2, 48, 3, 80, true};
  const Graph graph = make_seeded_encoder("x", shape, 21, 4);
  Reference plain(graph);
  Reference fast(graph, kFast);
  for (Reference* reference : {&plain, &fast}) {
    reference->set_input("embedding", seeded_embedding(shape, 21, 5, {}));
    reference->run();
  }
  for (TensorId id = 0; id < graph.tensors.size(); ++id) {
    EXPECT_EQ(plain.bytes(id), fast.bytes(id)) << graph.tensors[id].name;
  }
}

TEST(Reference, FreesActivationsButNoOutputs) {
  const EncoderShape shape{1, 32, 2, 64, false};
  const Graph graph = make_seeded_encoder("x", shape, 5, 4);
  Reference whole(graph);
  Reference freeing(graph, {false, true});
  // Twice: what was freed must come back.
  for (int run = 0; run < 2; ++run) {
    for (Reference* reference : {&whole, &freeing}) {
      reference->set_input("embedding", seeded_embedding(shape, 5, 5, {}));
      reference->run();
    }
    for (TensorId id = 0; id < graph.tensors.size(); ++id) {
      if (graph.tensors[id].kind == Tensor::Kind::kActivation) {
        EXPECT_TRUE(freeing.bytes(id).empty()) << graph.tensors[id].name;
      } else {
        EXPECT_EQ(freeing.bytes(id), whole.bytes(id)) << graph.tensors[id].name;
      }
    }
  }
}

TEST(Reference, RunsDoNotDependOnTheOnesBefore) {
  const IntegerVit vit = load_integer_vit(integer_model_path("vit17"));
  const Graph graph = make_vit_graph(vit);
  const Dataset data = digits("test");
  Reference fresh(graph);
  Reference used(graph);
  used.set_input("patches", patches_of(data, 1, vit.shape));
  used.run();
  for (Reference* reference : {&fresh, &used}) {
    reference->set_input("patches", patches_of(data, 0, vit.shape));
    reference->run();
  }
  EXPECT_EQ(fresh.values("logits"), used.values("logits"));
  EXPECT_EQ(fresh.values("blocks.3.attn.context"), used.values("blocks.3.attn.context"));
}

/// A graph of one stage on a 2 x 3 input.
class OneStage : public ::testing::Test {
 protected:
  std::vector<std::int32_t> run(const std::vector<std::int32_t>& in, const hw::Stage& stage,
                                hw::DType out, StageOperands operands = {}) {
    GraphBuilder builder("one stage");
    const View input = add(builder, "in", hw::DType::kS32);
    const bool has_tensor = stage.operand == hw::Operand::kTensor;
    if (has_tensor) operands.tensor = add(builder, "t", stage.tensor);
    if (stage.op == hw::StageOp::kSoftmax || stage.op == hw::StageOp::kDivideRowSum) {
      Tensor sums;
      sums.name = "sums";
      sums.rows = 2;
      sums.cols = 1;
      sums.type = hw::DType::kS32;
      sums.kind = Tensor::Kind::kInput;
      operands.statistics = builder.add_tensor(sums);
    }
    builder.stage("out", input, stage, out, std::move(operands));
    const Graph graph = std::move(builder).take();
    Reference reference(graph);
    reference.set_input("in", in);
    if (has_tensor) reference.set_input("t", tensor_);
    if (stage.op == hw::StageOp::kDivideRowSum) reference.set_input("sums", sums_);
    reference.run();
    if (stage.op == hw::StageOp::kSoftmax) sums_ = reference.values("sums");
    return reference.values("out");
  }

  std::vector<std::int32_t> tensor_ = std::vector<std::int32_t>(6, 0);
  std::vector<std::int32_t> sums_ = {1, 1};

 private:
  static View add(GraphBuilder& builder, const std::string& name, hw::DType type) {
    Tensor tensor;
    tensor.name = name;
    tensor.rows = 2;
    tensor.cols = 3;
    tensor.type = type;
    tensor.kind = Tensor::Kind::kInput;
    return builder.whole(builder.add_tensor(tensor));
  }
};

using Values = std::vector<std::int32_t>;

TEST_F(OneStage, Bias) {
  EXPECT_EQ(run({1, 2, 3, 4, 5, 6}, bias_stage(), hw::DType::kS32, {{10, -20, 0}, {}}),
            (Values{11, -18, 3, 14, -15, 6}));
}

TEST_F(OneStage, Requantise) {
  // 3/4: halves round up, and 8 bits clamp at +-127.
  EXPECT_EQ(run({2, -2, 10, -10, 1000, -1000}, requantise_stage({3, 2}, 8, hw::Rounding::kHalfUp),
                hw::DType::kS8),
            (Values{2, -1, 8, -7, 127, -127}));
  EXPECT_EQ(run({2, -2, 10, -10, 1000, -1000}, requantise_stage({3, 2}, 8, hw::Rounding::kHalfEven),
                hw::DType::kS8),
            (Values{2, -2, 8, -8, 127, -127}));
}

TEST_F(OneStage, RequantisePerChannel) {
  EXPECT_EQ(run({8, 8, 8, -8, -8, -8}, channel_requantise_stage(8, hw::Rounding::kHalfUp),
                hw::DType::kS8, {{1, 3, 5, 0, 1, 3}, {}}),
            (Values{8, 12, 5, -8, -12, -5}));
}

TEST_F(OneStage, AddTensor) {
  tensor_ = {100, -100, 7, 1, 2, 3};
  EXPECT_EQ(run({1, 1, 1, -1, -1, -1},
                add_tensor_stage(hw::DType::kS16, {}, 31, hw::Rounding::kHalfUp), hw::DType::kS32),
            (Values{101, -99, 8, 0, 1, 2}));
  EXPECT_EQ(
      run({1, 1, 1, -1, -1, -1}, add_tensor_stage(hw::DType::kS8, {1, 1}, 6, hw::Rounding::kHalfUp),
          hw::DType::kS32),
      (Values{32, -30, 5, 0, 0, 1}));
}

TEST_F(OneStage, ClampAndRelu) {
  EXPECT_EQ(run({7, 8, -7, -8, 0, 100}, clamp_stage(4), hw::DType::kS8),
            (Values{7, 7, -7, -7, 0, 7}));
  hw::Stage relu;
  relu.op = hw::StageOp::kRelu;
  EXPECT_EQ(run({7, -1, 0, -2147483647, 1, 2}, relu, hw::DType::kS32), (Values{7, 0, 0, 0, 1, 2}));
}

TEST_F(OneStage, GeluIsNearTheRealOne) {
  const double scale = 4.0 / 127.0;
  const hw::GeluConstants constants = hw::make_gelu_constants(scale, scale);
  const Values in = {127, 64, 32, 0, -24, -127};
  const Values out = run(in, gelu_stage(constants, 8), hw::DType::kS8);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double x = in[i] * scale;
    EXPECT_NEAR(out[i] * scale, 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))), 0.03);
  }
}

TEST_F(OneStage, SoftmaxLeavesItsRowSums) {
  // A score step is 1/256; the largest of a row becomes 255.
  const hw::Dyadic exp_to_code{46858, 25};
  const Values out =
      run({0, 0, -100000, 256, 0, 256}, softmax_stage({}, {1, 0}, kScoreFractionBits, exp_to_code),
          hw::DType::kU8);
  EXPECT_EQ(Values(out.begin(), out.begin() + 3), (Values{255, 255, 0}));
  EXPECT_EQ(out[3], 255);
  EXPECT_NEAR(out[4], 255 * std::exp(-1.0), 1.0);
  EXPECT_EQ(sums_, (Values{510, 510 + out[4]}));
}

TEST_F(OneStage, DivideRowSumAddsEightFractionBits) {
  sums_ = {255, 2 * 255};
  EXPECT_EQ(
      run({255, 255 * 100, -255 * 100, 255, 255 * 100, 0}, divide_row_sum_stage(), hw::DType::kS32),
      (Values{256, 25600, -25600, 128, 12800, 0}));
}

TEST_F(OneStage, LayerNorm) {
  // Deviations -1, 0, 1 over the root of their squares' sum: -0.5, 0, 0.5 for a third input.
  const Values out = run({-100, 0, 100, 5, 5, 5}, layer_norm_stage(15, 15, 8), hw::DType::kS8,
                         {{64, 64, 64, 0, 32768, -32768}, {}});
  EXPECT_EQ(out[0], -45);
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[2], 44);
  EXPECT_EQ(Values(out.begin() + 3, out.end()), (Values{0, 1, -1}));
}

TEST_F(OneStage, ResultThatDoesNotFitIsAnError) {
  EXPECT_THROW(run({128, 0, 0, 0, 0, 0}, clamp_stage(9), hw::DType::kS8), std::overflow_error);
}

TEST_F(OneStage, SumsSaturateAsTheHardwareDoes) {
  EXPECT_EQ(run({2147483647, 0, 0, 0, 0, 0}, bias_stage(), hw::DType::kS32, {{1, 0, 0}, {}})[0],
            2147483647);
}

/// A product of two inputs, [2 x 3] times [3 x 2].
Graph product_graph() {
  GraphBuilder builder("product");
  Tensor a;
  a.name = "a";
  a.rows = 2;
  a.cols = 3;
  a.kind = Tensor::Kind::kInput;
  Tensor b = a;
  b.name = "b";
  b.rows = 3;
  b.cols = 2;
  const View left = builder.whole(builder.add_tensor(a));
  const View right = builder.whole(builder.add_tensor(b));
  builder.matmul("c", left, right, false);
  builder.matmul("aat", left, left, true);
  return std::move(builder).take();
}

TEST(Reference, Products) {
  const Graph graph = product_graph();
  Reference reference(graph);
  reference.set_input("a", {1, 2, 3, -4, -5, -6});
  reference.set_input("b", {1, 0, 0, 1, 127, -128});
  reference.run();
  EXPECT_EQ(reference.values("c"), (Values{382, -382, -766, 763}));
  EXPECT_EQ(reference.values("aat"), (Values{14, -32, -32, 77}));
}

TEST(Reference, RefusesInputsThatDoNotFit) {
  const Graph graph = product_graph();
  Reference reference(graph);
  EXPECT_THROW(reference.set_input("a", {1, 2, 3}), std::invalid_argument);
  EXPECT_THROW(reference.set_input("c", {1, 2, 3, 4}), std::invalid_argument);
  EXPECT_THROW(reference.set_input("x", {1, 2, 3, 4}), std::out_of_range);
  EXPECT_THROW(reference.set_input("a", {1, 2, 3, 4, 5, 128}), std::out_of_range);
}

TEST(Reference, RefusesGraphsThatDoNotFitTogether) {
  const auto refuses = [](auto spoil) {
    Graph graph = product_graph();
    spoil(graph);
    EXPECT_THROW(Reference{graph}, std::invalid_argument);
  };
  refuses([](Graph& g) { g.nodes[0].in.rows = 3; });
  refuses([](Graph& g) { g.nodes[0].in.col = 0xffffffff; });
  refuses([](Graph& g) { g.nodes[0].b.rows = 2; });
  refuses([](Graph& g) { g.nodes[0].out.tensor = 77; });
  refuses([](Graph& g) { g.nodes[0].b.tensor = kNoTensor; });
  refuses([](Graph& g) { g.nodes[1].name = "c"; });
  refuses([](Graph& g) { g.tensors[1].name = "a"; });
  refuses([](Graph& g) { g.tensors[0].type = hw::DType::kS16; });
  refuses([](Graph& g) { g.tensors[1].type = hw::DType::kU8; });
  refuses([](Graph& g) { g.tensors[0].data.resize(5); });
  refuses([](Graph& g) { g.tensors[0].kind = Tensor::Kind::kConstant; });
  refuses([](Graph& g) {
    g.nodes[1].kind = Node::Kind::kStage;
    g.nodes[1].stage = divide_row_sum_stage();
  });
  refuses([](Graph& g) {
    g.nodes[1].kind = Node::Kind::kStage;
    g.nodes[1].in = g.nodes[1].out;
    g.nodes[1].stage = bias_stage();
  });
}

}  // namespace
}  // namespace systole::model

#include "model/graph/reference.h"

#include <gtest/gtest.h>

#include "model/build/encoder_graph.h"
#include "model/float/float_vit.h"
#include "model/graph/graph_builder.h"
#include "model/graph/stages.h"
#include "model/integer/integer_model.h"
#include "model/seeded/shapes.h"
#include "support/random/random_engines.h"
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

using Values = std::vector<std::int32_t>;

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

// A part of a matrix that is made of one by column in a file, as it is and transposed.
TEST(Reference, MultipliesByWeightsAsAFileHasThem) {
  test::Random random(11);
  for (int i = 0; i < 400; ++i) {
    const auto draw = [&](std::uint32_t most) {
      return static_cast<std::uint32_t>(test::between(random, 1, most));
    };
    const bool transposed = i % 2 == 1;
    const std::uint32_t m = draw(4), rows = draw(40), cols = draw(40);
    View part{1, draw(rows) - 1, draw(cols) - 1, 0, 0};
    part.rows = draw(rows - part.row);
    part.cols = draw(cols - part.col);
    std::string bytes;
    for (std::uint32_t b = 0; b < rows * cols; ++b) bytes += static_cast<char>(random());
    const hw::MappedFile file = hw::MappedFile::of_bytes(bytes);
    const auto* const first = reinterpret_cast<const std::uint8_t*>(file.bytes().data());
    using Stored = hw::SharedVector<std::uint8_t>;
    const Stored columns = Stored::view(file, first, bytes.size());
    std::size_t made = 0;
    const auto make = [columns, rows, cols, &made] {
      std::vector<std::uint8_t> data(columns.size());
      for (std::size_t b = 0; b < data.size(); ++b) data[b] = columns[b % cols * rows + b / cols];
      ++made;
      return data;
    };
    GraphBuilder builder("product");
    Tensor a;
    a.name = "a";
    a.rows = m;
    a.cols = transposed ? part.cols : part.rows;
    a.kind = Tensor::Kind::kInput;
    Tensor weight{"b",
                  rows,
                  cols,
                  hw::DType::kS8,
                  Tensor::Kind::kConstant,
                  Stored::deferred(bytes.size(), make, columns)};
    const View left = builder.whole(builder.add_tensor(a));
    builder.add_tensor(weight);
    builder.matmul("c", left, part, transposed);
    const Graph graph = std::move(builder).take();
    Values input(m * a.cols);
    for (std::int32_t& value : input) value = static_cast<std::int8_t>(random());
    Reference fast(graph, kFast), plain(graph);
    fast.set_input("a", input);
    fast.run();
    EXPECT_EQ(made, 0U);
    plain.set_input("a", input);
    plain.run();
    ASSERT_EQ(fast.values("c"), plain.values("c")) << "product " << i;
  }
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
  refuses([](Graph& g) { g.nodes[0].product()->b.rows = 2; });
  refuses([](Graph& g) { g.nodes[0].out.tensor = 77; });
  refuses([](Graph& g) { g.nodes[0].product()->b.tensor = kNoTensor; });
  refuses([](Graph& g) { g.nodes[1].name = "c"; });
  refuses([](Graph& g) { g.tensors[1].name = "a"; });
  refuses([](Graph& g) { g.tensors[0].type = hw::DType::kS16; });
  refuses([](Graph& g) { g.tensors[1].type = hw::DType::kU8; });
  refuses([](Graph& g) { g.tensors[0].data.edit().resize(5); });
  refuses([](Graph& g) { g.tensors[0].kind = Tensor::Kind::kConstant; });
  refuses([](Graph& g) { g.nodes[1].op = StageUse{divide_row_sum_stage(), {}, {}, kNoTensor, 0}; });
  refuses([](Graph& g) {
    g.nodes[1].in = g.nodes[1].out;
    g.nodes[1].op = StageUse{bias_stage(), {}, {}, kNoTensor, 0};
  });
}

}  // namespace
}  // namespace systole::model

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "model/build/decode_graph.h"
#include "model/build/text_graph.h"
#include "model/checkpoint/text_checkpoint.h"
#include "model/float/float_text.h"
#include "model/graph/graph_check.h"
#include "model/graph/reference.h"
#include "model/graph/valid_keys.h"
#include "model/integer/integer_model.h"
#include "model/quantise/quantiser.h"
#include "support/input_error.h"
#include "support/network/tiny_text.h"
#include "support/paths.h"
#include "support/temp_directory.h"
#include "tests/model/text_oracle.h"

namespace systole::model {
namespace {

using test::TinyText;

const std::vector<std::int32_t> kText{4, 17, 0, 29, 8, 8, 3, 21, 11};

struct Network {
  const char* name;
  TinyText (*file)(const std::string& prefix);
  const char* prefix;
  TextOracle::Matrix (TextOracle::*oracle)(const std::vector<std::int32_t>&,
                                           const std::string&) const;
};
void PrintTo(const Network& network, std::ostream* out) { *out << network.name; }

class TextNetwork : public testing::TestWithParam<Network> {
 protected:
  [[nodiscard]] TextCheckpoint load(const TinyText& text) const {
    return load_text_checkpoint(text.write(directory_.path("text.safetensors")));
  }
  [[nodiscard]] TextCheckpoint checkpoint() const {
    return load(GetParam().file(GetParam().prefix));
  }
  [[nodiscard]] IntegerText integer(bool row_scales = false) const {
    return integer(checkpoint(), row_scales);
  }
  [[nodiscard]] IntegerText integer(const TextCheckpoint& real, bool row_scales) const {
    const std::string ids = TinyText::write_ids(directory_.path("ids.safetensors"), 30, 11);
    QuantiserOptions options;
    options.row_scales = row_scales;
    return quantise(real, load_token_ids(ids, real.shape), options);
  }
  /// Root of the mean square of the errors of the states in that of the states.
  static double error_of(const TextCheckpoint& checkpoint, const IntegerText& text) {
    const Graph graph = make_text_graph(text, static_cast<std::uint32_t>(kText.size()));
    check_graph(graph);
    Reference reference(graph);
    reference.set_input("embedding", embed_tokens(text, kText));
    reference.run();
    const FloatRows real = FloatText(checkpoint).hidden(kText);
    const Tensor& output = graph.tensors[graph.nodes.back().out.tensor];
    const std::vector<std::int32_t> codes = reference.values(output.name);
    double error = 0, power = 0;
    for (std::size_t i = 0; i < real.size(); ++i) {
      error += std::pow(codes[i] * output.scale - real[i], 2);
      power += std::pow(real[i], 2);
    }
    return std::sqrt(error / power);
  }

  /// Whether a file that is written of `text` gives the same network.
  void file_gives_the_same(const IntegerText& text) const;

  TempDirectory directory_;
};

TEST_P(TextNetwork, ComputesWhatItsNamesMean) {
  const TinyText file = GetParam().file(GetParam().prefix);
  const auto expected = (TextOracle(file).*GetParam().oracle)(kText, GetParam().prefix);
  const FloatRows found = FloatText(load(file)).hidden(kText);
  for (std::size_t t = 0; t < kText.size(); ++t) {
    for (std::size_t i = 0; i < TinyText::kWidth; ++i) {
      EXPECT_NEAR(found[t * TinyText::kWidth + i], expected[t][i], 1e-9) << t << " " << i;
    }
  }
}

TEST_P(TextNetwork, PrefixMakesNoDifference) {
  const FloatRows with = FloatText(checkpoint()).hidden(kText);
  EXPECT_EQ(FloatText(load(GetParam().file(""))).hidden(kText), with);
}

TEST_P(TextNetwork, IntegersStayCloseToTheRealNetwork) {
  const double one = error_of(checkpoint(), integer());
  EXPECT_LT(one, 0.06);
  // Rows of these texts are alike: their own scales gain little.
  EXPECT_LT(error_of(checkpoint(), integer(true)), std::min(1.1 * one, 0.03));
}

// What one scale for all rows cannot hold: a word whose row is fifty times as large as the others.
TEST_P(TextNetwork, RowScalesKeepWhatALargeRowWouldTake) {
  TextCheckpoint real = checkpoint();
  // An MLP that answers to the first channel alone, which is large in one row.
  for (FloatBlock& block : real.blocks) {
    for (std::size_t o = 0; o < block.fc1.outputs; ++o) block.fc1.weight[o * block.fc1.inputs] *= 8;
  }
  for (std::size_t i = 0; i < TinyText::kWidth; ++i) real.word[29 * TinyText::kWidth + i] *= 50;
  EXPECT_LT(error_of(real, integer(real, true)), 0.6 * error_of(real, integer(real, false)));
}

TEST_P(TextNetwork, FileGivesTheSameNetwork) {
  for (const bool row_scales : {false, true}) {
    SCOPED_TRACE(row_scales);
    file_gives_the_same(integer(row_scales));
  }
}

void TextNetwork::file_gives_the_same(const IntegerText& text) const {
  const std::string path = directory_.path("text.int8.safetensors");
  save_integer_text(text, path);
  EXPECT_EQ(model_kind(path), ModelKind::kIntegerText);
  const IntegerText again = load_integer_text(path);
  EXPECT_TRUE(again.shape == text.shape);
  EXPECT_EQ(embed_tokens(again, kText, 2), embed_tokens(text, kText, 2));
  const Graph a = make_text_graph(text, 5), b = make_text_graph(again, 5);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i)
    EXPECT_EQ(a.tensors[i].data, b.tensors[i].data);
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    ASSERT_EQ(a.nodes[i].op.index(), b.nodes[i].op.index());
    if (a.nodes[i].stage() == nullptr) continue;
    EXPECT_EQ(a.nodes[i].stage()->stage.imm, b.nodes[i].stage()->stage.imm);
    EXPECT_EQ(a.nodes[i].stage()->parameters, b.nodes[i].stage()->parameters);
  }
}

TEST_P(TextNetwork, ShapeIsThatOfTheTensors) {
  const TextShape shape = checkpoint().shape;
  EXPECT_EQ(shape.encoder.layers, TinyText::kLayers);
  EXPECT_EQ(shape.encoder.width, TinyText::kWidth);
  EXPECT_EQ(shape.encoder.heads, TinyText::kHeads);
  EXPECT_EQ(shape.encoder.hidden, TinyText::kHidden);
  EXPECT_EQ(shape.vocabulary, TinyText::kVocabulary);
  EXPECT_EQ(shape.positions, TinyText::kPositions);
  EXPECT_NE(shape.encoder.post_norm, shape.encoder.causal);
}

INSTANTIATE_TEST_SUITE_P(
    Families, TextNetwork,
    testing::Values(Network{"bert", TinyText::bert, "bert.", &TextOracle::bert},
                    Network{"gpt2", TinyText::gpt2, "transformer.", &TextOracle::gpt2}),
    [](const auto& network) { return std::string(network.param.name); });

/// TinyText::classifier(), and what is made of it.
class TextHead : public testing::Test {
 protected:
  [[nodiscard]] TextCheckpoint load() const {
    return load_text_checkpoint(file_.write(directory_.path("text.safetensors")));
  }
  [[nodiscard]] IntegerText integer(const TextCheckpoint& real, bool row_scales = false) const {
    const std::string ids = TinyText::write_ids(directory_.path("ids.safetensors"), 30, 11);
    QuantiserOptions options;
    options.row_scales = row_scales;
    return quantise(real, load_token_ids(ids, real.shape), options);
  }
  /// Largest error of the integer logits in the largest real one.
  static double error_of(const TextCheckpoint& real, const IntegerText& text) {
    const FloatText floats(real);
    double error = 0, largest = 0;
    for (std::int32_t first = 0; first < 30; ++first) {
      std::vector<std::int32_t> ids = kText;
      ids[0] = first;
      const std::vector<double> expected = floats.logits(ids, nullptr, kTypes);
      const Graph graph = make_text_graph(text, static_cast<std::uint32_t>(ids.size()));
      check_graph(graph);
      Reference reference(graph);
      reference.set_input("embedding", embed_tokens(text, ids, 0, kTypes));
      reference.run();
      const std::vector<std::int32_t> codes = reference.values("logits");
      EXPECT_EQ(codes.size(), TinyText::kClasses);
      for (std::size_t i = 0; i < codes.size(); ++i) {
        error = std::max(error, std::fabs(codes[i] * text.head->logit_scale - expected[i]));
        largest = std::max(largest, std::fabs(expected[i]));
      }
    }
    return error / largest;
  }

  static inline const std::vector<std::int32_t> kTypes{0, 0, 0, 1, 1, 1, 0, 0, 0};
  TempDirectory directory_;
  TinyText file_ = TinyText::classifier();
};

TEST_F(TextHead, ComputesWhatItsNamesMean) {
  const TextCheckpoint real = load();
  EXPECT_EQ(real.shape.classes, TinyText::kClasses);
  const std::vector<double> expected = TextOracle(file_).classify(kText, kTypes);
  const std::vector<double> found = FloatText(real).logits(kText, nullptr, kTypes);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-9);
}

// Texts with padding and types, and logits that transformers computed in float32
// (script/train/make_text_head_goldens.py).
TEST(TextHeadOfTransformers, HasItsLogits) {
  const std::string folder = source_path("tests/golden/text_heads/bert/");
  const TextCheckpoint real = load_text_checkpoint(folder + "model.safetensors");
  const TokenIds texts = load_token_ids(folder + "texts.safetensors", real.shape);
  const std::vector<float> logits =
      Safetensors::open(folder + "texts.safetensors").as_float("logits");
  ASSERT_EQ(logits.size(), texts.count * real.shape.classes);
  const FloatText network(real);
  std::size_t padded = 0;
  for (std::size_t i = 0; i < texts.count; ++i) {
    const TokenText text = texts.text(i).trimmed();
    padded += text.ids.size() < texts.length ? 1 : 0;
    const std::vector<double> found = network.logits(text.ids, nullptr, text.types);
    for (std::size_t c = 0; c < found.size(); ++c) {
      EXPECT_NEAR(found[c], logits[i * found.size() + c], 2e-6) << i << " " << c;
    }
  }
  EXPECT_GT(padded, 4U);
  EXPECT_EQ(float_accuracy(network, texts), 1.0) << "the labels are the likeliest classes";
}

TEST_F(TextHead, IntegersStayCloseToTheRealNetwork) {
  TextCheckpoint real = load();
  for (const HeadFunction function : {HeadFunction::kTanh, HeadFunction::kRelu}) {
    real.head->function = function;
    const double one = error_of(real, integer(real));
    EXPECT_LT(one, 0.05);
    EXPECT_LT(error_of(real, integer(real, true)), one);
  }
}

TEST_F(TextHead, TanhMayBeFarBeyondOne) {
  file_.scale("bert.pooler.dense.weight", 4.0F);
  const TextCheckpoint real = load();
  EXPECT_LT(error_of(real, integer(real)), 0.15);
}

TEST_F(TextHead, IsThatOfTwoClassesAndItsPooler) {
  for (const char* missing : {"bert.pooler.dense.weight", "classifier.weight"}) {
    file_ = TinyText::classifier();
    file_.remove(missing);
    EXPECT_FALSE(load().head) << missing;
    EXPECT_EQ(load().shape.classes, 0U);
  }
  file_ = TinyText::classifier();
  file_.remove("classifier.weight");
  file_.remove("classifier.bias");
  file_.add("classifier.weight", {1, TinyText::kWidth}, 1.0);
  EXPECT_FALSE(load().head) << "one output is a score";
}

TEST_F(TextHead, WrongShapesAreNamed) {
  const auto error = [&](const std::string& name, const std::vector<std::size_t>& shape) {
    file_ = TinyText::classifier();
    file_.remove(name);
    if (!shape.empty()) file_.add(name, shape, 1.0);
    return input_error_of([&] { return load(); });
  };
  EXPECT_NE(error("classifier.bias", {}).find("'classifier.bias': missing"), std::string::npos);
  EXPECT_NE(error("classifier.weight", {5, 11}).find("'classifier.weight'"), std::string::npos);
  EXPECT_NE(error("bert.pooler.dense.bias", {5}).find("'bert.pooler.dense.bias'"),
            std::string::npos);
}

TEST_F(TextHead, PaddingMakesNoDifference) {
  const IntegerText text = integer(load());
  const auto logits = [&](std::uint32_t length, std::uint32_t valid) {
    std::vector<std::int32_t> ids = kText;
    ids.resize(length);
    Graph graph = make_text_graph(text, length);
    if (valid < length) attend_to_keys(graph, valid);
    Reference reference(graph);
    reference.set_input("embedding", embed_tokens(text, ids));
    reference.run();
    return reference.values("logits");
  };
  EXPECT_EQ(logits(9, 6), logits(6, 6));
  EXPECT_NE(logits(9, 9), logits(6, 6));
}

TEST(TextCheckpointFile, LeavesOutHeadsForTasks) {
  const TempDirectory directory;
  TinyText bert = TinyText::bert();
  bert.add("bert.pooler.dense.weight", {12, 12}, 1.0);
  bert.add("cls.predictions.bias", {30}, 1.0);
  EXPECT_NO_THROW((void)load_text_checkpoint(bert.write(directory.path("b.safetensors"))));
  TinyText gpt2 = TinyText::gpt2();
  gpt2.add("lm_head.weight", {30, 12}, 1.0);
  gpt2.add("transformer.h.1.attn.bias", {1, 1, 11, 11}, 1.0);
  EXPECT_NO_THROW((void)load_text_checkpoint(gpt2.write(directory.path("g.safetensors"))));
}

TEST(TextCheckpointFile, NormsMayHaveTheirOldNames) {
  const TempDirectory directory;
  TinyText bert = TinyText::bert();
  const auto hidden = [&] {
    return FloatText(load_text_checkpoint(bert.write(directory.path("b.safetensors"))))
        .hidden(kText);
  };
  const FloatRows expected = hidden();
  for (TensorData& tensor : bert.tensors) {
    const std::size_t at = tensor.name.find("LayerNorm.");
    if (at == std::string::npos) continue;
    const bool weight = tensor.name.find("weight", at) != std::string::npos;
    tensor.name = tensor.name.substr(0, at) + (weight ? "LayerNorm.gamma" : "LayerNorm.beta");
  }
  EXPECT_EQ(hidden(), expected);
}

TEST(TextCheckpointFile, HeadsComeFromTheConfigurationBesideIt) {
  const TempDirectory directory;
  TinyText bert = TinyText::bert();
  bert.metadata.clear();
  const std::string path = bert.write(directory.path("b.safetensors"));
  EXPECT_NE(input_error_of([&] { return load_text_checkpoint(path); }).find("num_attention_heads"),
            std::string::npos);
  directory.write("config.json", R"({"num_attention_heads": 6})");
  EXPECT_EQ(load_text_checkpoint(path).shape.encoder.heads, 6U);
  directory.write("config.json", R"({"n_head": "six"})");
  EXPECT_NE(input_error_of([&] { return load_text_checkpoint(path); }).find("n_head"),
            std::string::npos);
}

/// The error of a file that `spoil` has changed.
std::string error_of(TinyText text, const std::function<void(TinyText&)>& spoil) {
  const TempDirectory directory;
  spoil(text);
  const std::string path = text.write(directory.path("text.safetensors"));
  return input_error_of([&] { return load_text_checkpoint(path); });
}

TEST(TextCheckpointFile, ErrorsNameTensorAndShape) {
  const auto expect = [](const std::string& error, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) {
      EXPECT_NE(error.find(part), std::string::npos) << "'" << part << "' in: " << error;
    }
  };
  const std::string dense = "bert.encoder.layer.1.output.dense.weight";
  expect(error_of(TinyText::bert(), [&](TinyText& text) { text.remove(dense); }),
         {"text.safetensors", "'" + dense + "': missing", "[12, 20]"});
  expect(error_of(TinyText::bert(),
                  [&](TinyText& text) {
                    text.remove(dense);
                    text.add(dense, {20, 12}, 1.0);
                  }),
         {"text.safetensors", "'" + dense + "'", "[20, 12]", "[12, 20]"});
  // A Linear in the place of a Conv1D.
  expect(error_of(TinyText::gpt2(),
                  [](TinyText& text) {
                    text.remove("transformer.h.0.attn.c_attn.weight");
                    text.add("transformer.h.0.attn.c_attn.weight", {36, 12}, 1.0);
                  }),
         {"transformer.h.0.attn.c_attn.weight", "[12, 36]"});
  expect(error_of(TinyText::gpt2(), [](TinyText& text) { text.add("extra", {2}, 1.0); }),
         {"'extra'", "not part"});
  expect(
      error_of(TinyText::gpt2(""), [](TinyText& text) { text.remove("h.0.attn.c_attn.weight"); }),
      {"no checkpoint of a known family"});
  expect(error_of(TinyText::bert(), [](TinyText& text) { text.metadata["h"] = "5"; }),
         {"5 heads", "12"});
}

TEST(TextDecode, StepsGiveWhatAllTokensAtOnceGive) {
  const TempDirectory directory;
  const TextCheckpoint real =
      load_text_checkpoint(TinyText::gpt2().write(directory.path("g.safetensors")));
  const std::string ids = TinyText::write_ids(directory.path("ids.safetensors"), 10, 11);
  const IntegerText text = quantise(real, load_token_ids(ids, real.shape));
  const auto count = static_cast<std::uint32_t>(kText.size());
  const Graph whole = make_text_graph(text, count);
  Reference reference(whole);
  reference.set_input("embedding", embed_tokens(text, kText));
  reference.run();
  const std::vector<std::int32_t> expected = reference.values("norm");
  Graph graph = make_text_decode_graph(text, count);
  Reference steps(graph);
  std::vector<std::int32_t> found;
  for (std::uint32_t t = 0; t < count; ++t) {
    move_to_token(graph, t);
    steps.set_input("embedding", embed_tokens(text, {kText[t]}, t));
    steps.run();
    const std::vector<std::int32_t> row = steps.values("norm");
    found.insert(found.end(), row.begin(), row.end());
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace systole::model

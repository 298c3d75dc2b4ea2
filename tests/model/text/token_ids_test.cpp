#include "model/text/token_ids.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

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
#include "support/temp_directory.h"
#include "tests/model/text_oracle.h"

namespace systole::model {
namespace {

using Numbers = std::vector<std::int32_t>;
using test::TinyText;

const Numbers kSentence{4, 17, 0, 29, 8, 8, 3, 21, 11};
const Numbers kSentenceTypes{0, 0, 0, 0, 1, 1, 1, 1, 1};

TextShape shape_of(std::uint32_t vocabulary, std::uint32_t positions, std::uint32_t token_types) {
  TextShape shape;
  shape.vocabulary = vocabulary;
  shape.positions = positions;
  shape.token_types = token_types;
  return shape;
}

/// A file of texts of three tokens of a vocabulary of 30, with up to two more tensors.
class TokenIdsFile : public testing::Test {
 protected:
  void put(const std::string& name, std::vector<std::size_t> shape, const Numbers& values) {
    tensors_.push_back(make_tensor(name, FileDtype::kI32, std::move(shape), values));
  }
  [[nodiscard]] TokenIds load(std::uint32_t token_types = 2) const {
    const std::string path = directory_.path("ids.safetensors");
    write_safetensors(path, tensors_);
    TextShape shape = shape_of(30, 3, token_types);
    shape.classes = classes_;
    return load_token_ids(path, shape);
  }
  void expect_error(const std::vector<std::string>& parts, std::uint32_t token_types = 2) const {
    const std::string error = input_error_of([&] { return load(token_types); });
    EXPECT_NE(error.find("ids.safetensors: tensor '"), std::string::npos) << error;
    for (const std::string& part : parts) {
      EXPECT_NE(error.find(part), std::string::npos) << "'" << part << "' in: " << error;
    }
  }
  void put_two_texts() { put("input_ids", {2, 3}, {1, 2, 3, 4, 5, 6}); }

  TempDirectory directory_;
  std::vector<TensorData> tensors_;
  std::uint32_t classes_ = 0;
};

TEST_F(TokenIdsFile, LabelsAreThoseOfANetworkThatClassifies) {
  put_two_texts();
  put("labels", {2}, {4, 0});
  EXPECT_TRUE(load().labels.empty()) << "of a network without classes";
  classes_ = 5;
  EXPECT_EQ(load().labels, (std::vector<std::uint32_t>{4, 0}));
  tensors_.pop_back();
  EXPECT_TRUE(load().labels.empty());
}

TEST_F(TokenIdsFile, WrongLabels) {
  classes_ = 5;
  const auto expect = [&](std::vector<std::size_t> shape, const Numbers& labels,
                          const std::string& part) {
    tensors_.clear();
    put_two_texts();
    put("labels", std::move(shape), labels);
    expect_error({"'labels'", part});
  };
  expect({2}, {0, 5}, "element 1 is 5, expected 0 to 4");
  expect({2}, {-100, 0}, "element 0 is -100, expected 0 to 4");
  expect({3}, {0, 1, 2}, "shape is [3], expected [2]: one for each text");
  expect({1, 2}, {0, 1}, "shape is [1, 2], expected [2]");
  tensors_.clear();
  put_two_texts();
  tensors_.push_back(make_tensor("labels", FileDtype::kF32, {2}, std::vector<float>{0, 1}));
  expect_error({"'labels'", "dtype is F32"});
}

TEST_F(TokenIdsFile, WithoutAMaskEveryTokenIsValidAndOfType0) {
  put_two_texts();
  const TokenIds ids = load();
  EXPECT_EQ(ids.text(1).ids, (Numbers{4, 5, 6}));
  EXPECT_EQ(ids.valid, (std::vector<std::size_t>{3, 3}));
  EXPECT_TRUE(ids.text(1).types.empty());
}

TEST_F(TokenIdsFile, MaskAndTypesBelongToTheTexts) {
  put_two_texts();
  put("attention_mask", {2, 3}, {1, 1, 1, 1, 0, 0});
  put("token_type_ids", {2, 3}, {0, 1, 1, 0, 1, 0});
  const TokenIds ids = load();
  EXPECT_EQ(ids.valid, (std::vector<std::size_t>{3, 1}));
  EXPECT_EQ(ids.text(1).types, (Numbers{0, 1, 0}));
  EXPECT_EQ(ids.text(0).trimmed().ids, (Numbers{1, 2, 3}));
  EXPECT_EQ(ids.text(1).trimmed().ids, Numbers{4});
  EXPECT_EQ(ids.text(1).trimmed().types, Numbers{0});
}

TEST_F(TokenIdsFile, MaskMayBeOfAnyTypeThatHuggingFaceHas) {
  put_two_texts();
  const std::vector<std::uint8_t> bytes{1, 1, 0, 1, 1, 1};
  for (const FileDtype type : {FileDtype::kI64, FileDtype::kU8, FileDtype::kBool}) {
    tensors_.resize(1);
    if (type == FileDtype::kI64) {
      const std::vector<std::int64_t> wide(bytes.begin(), bytes.end());
      tensors_.push_back(make_tensor("attention_mask", type, {2, 3}, wide));
    } else {
      tensors_.push_back(make_tensor("attention_mask", type, {2, 3}, bytes));
    }
    EXPECT_EQ(load().valid, (std::vector<std::size_t>{2, 3}));
  }
}

TEST_F(TokenIdsFile, WrongIds) {
  const auto expect = [&](const std::string& name, std::vector<std::size_t> shape,
                          const Numbers& ids, const std::string& part) {
    tensors_.clear();
    put(name, std::move(shape), ids);
    expect_error({part});
  };
  expect("ids", {1, 2}, {1, 2}, "'input_ids': missing");
  expect("input_ids", {2}, {1, 2}, "shape is [2]");
  expect("input_ids", {0, 2}, {}, "none of them 0");
  expect("input_ids", {1, 2}, {1, 30}, "element 1 is 30, expected 0 to 29");
  expect("input_ids", {1, 2}, {-1, 3}, "element 0 is -1");
  expect("input_ids", {1, 4}, {1, 2, 3, 4}, "3 positions");
}

TEST_F(TokenIdsFile, WrongMasks) {
  const auto expect = [&](std::vector<std::size_t> shape, const Numbers& mask,
                          const std::vector<std::string>& parts) {
    tensors_.clear();
    put_two_texts();
    put("attention_mask", std::move(shape), mask);
    expect_error(parts);
  };
  expect({6}, {1, 1, 1, 1, 1, 1}, {"'attention_mask': shape is [6], expected [2, 3]"});
  expect({2, 2}, {1, 1, 1, 1}, {"'attention_mask': shape is [2, 2], expected [2, 3]"});
  expect({2, 3}, {1, 1, 1, 1, 2, 1}, {"'attention_mask': element 4 is 2, expected 0 to 1"});
  expect({2, 3}, {1, 1, 1, 0, 1, 1}, {"'attention_mask': row 1", "ones, then zeros"});
  expect({2, 3}, {1, 0, 1, 1, 1, 1}, {"'attention_mask': row 0", "ones, then zeros"});
  expect({2, 3}, {1, 1, 1, 0, 0, 0}, {"'attention_mask': row 1", "ones, then zeros"});
  tensors_.clear();
  put_two_texts();
  tensors_.push_back(
      make_tensor("attention_mask", FileDtype::kF32, {2, 3}, std::vector<float>(6, 1.0F)));
  expect_error({"attention_mask", "F32"});
}

TEST_F(TokenIdsFile, WrongTypes) {
  put_two_texts();
  put("token_type_ids", {2, 3}, {0, 1, 1, 0, 2, 0});
  expect_error({"'token_type_ids': element 4 is 2, expected 0 to 1"});
  expect_error({"'token_type_ids'", "no token types"}, 0);
  tensors_.pop_back();
  put("token_type_ids", {3, 2}, {0, 1, 1, 0, 1, 0});
  expect_error({"'token_type_ids': shape is [3, 2], expected [2, 3]"});
}

/// Those that calibration decides.
std::vector<double> scales_of(const IntegerText& text) {
  std::vector<double> scales{text.embedding_scale, text.norm.scale};
  for (const IntegerBlock& block : text.encoder.blocks) {
    for (const double scale : {block.scales.query, block.scales.key, block.scales.value,
                               block.scales.context, block.scales.gelu_in, block.scales.gelu_out}) {
      scales.push_back(scale);
    }
  }
  return scales;
}

class PaddedText : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] TextCheckpoint checkpoint() const {
    const TinyText file = GetParam() ? TinyText::bert() : TinyText::gpt2();
    return load_text_checkpoint(file.write(directory_.path("text.safetensors")));
  }
  [[nodiscard]] IntegerText integer() const {
    const TextCheckpoint real = checkpoint();
    const std::string ids = TinyText::write_ids(directory_.path("ids.safetensors"), 20, 11);
    return quantise(real, load_token_ids(ids, real.shape));
  }
  /// The last hidden states of a text.
  static Numbers states(const IntegerText& text, const Graph& graph, const Numbers& ids) {
    check_graph(graph);
    Reference reference(graph);
    reference.set_input("embedding", embed_tokens(text, ids));
    reference.run();
    return reference.values(graph.tensors[graph.nodes.back().out.tensor].name);
  }
  TempDirectory directory_;
};

TEST_P(PaddedText, NoTokenAttendsToThePadding) {
  const IntegerText text = integer();
  const std::uint32_t length = 9, width = TinyText::kWidth;
  Graph graph = make_text_graph(text, length);
  const Numbers whole = states(text, graph, kSentence);
  for (const std::uint32_t valid : {1U, 5U, 8U}) {
    Numbers padded = kSentence;
    std::fill(padded.begin() + valid, padded.end(), 0);
    attend_to_keys(graph, valid);
    Numbers found = states(text, graph, padded);
    // Padding attends to the tokens, too, and its values do not matter to them.
    Numbers other = padded;
    std::fill(other.begin() + valid, other.end(), 7);
    Numbers found_of_other = states(text, graph, other);
    found.resize(valid * width);
    found_of_other.resize(valid * width);
    const Numbers alone(kSentence.begin(), kSentence.begin() + valid);
    EXPECT_EQ(found, states(text, make_text_graph(text, valid), alone)) << valid;
    EXPECT_EQ(found_of_other, found) << valid;
  }
  attend_to_keys(graph, length);
  EXPECT_EQ(states(text, graph, kSentence), whole);
}

TEST_P(PaddedText, HasNoSayInTheScales) {
  const TextCheckpoint real = checkpoint();
  TokenIds ids;
  ids.count = 2;
  ids.length = 9;
  ids.valid = {9, 4};
  ids.ids = kSentence;
  ids.ids.insert(ids.ids.end(), kSentence.begin(), kSentence.end());
  const IntegerText text = quantise(real, ids);
  for (std::size_t i = 9 + 4; i < ids.ids.size(); ++i) ids.ids[i] = static_cast<std::int32_t>(i);
  EXPECT_EQ(scales_of(quantise(real, ids)), scales_of(text));
  ids.valid[1] = 9;
  EXPECT_NE(scales_of(quantise(real, ids)), scales_of(text)) << "tokens have";
}

INSTANTIATE_TEST_SUITE_P(Families, PaddedText, testing::Values(true, false),
                         [](const auto& bert) { return bert.param ? "bert" : "gpt2"; });

TEST(TokenTypes, SelectTheRowOfTheirTable) {
  const TempDirectory directory;
  const TinyText file = TinyText::bert();
  const TextCheckpoint real = load_text_checkpoint(file.write(directory.path("b.safetensors")));
  EXPECT_EQ(real.shape.token_types, 2U);
  const auto expected = TextOracle(file).typed_bert(kSentence, kSentenceTypes);
  const FloatRows found = FloatText(real).hidden(kSentence, nullptr, kSentenceTypes);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i / TinyText::kWidth][i % TinyText::kWidth], 1e-9) << i;
  }
  const Numbers zeros(kSentence.size(), 0);
  EXPECT_EQ(FloatText(real).hidden(kSentence, nullptr, zeros), FloatText(real).hidden(kSentence));
  EXPECT_THROW((void)FloatText(real).hidden(kSentence, nullptr, {0, 1}), std::invalid_argument);
}

TEST(TokenTypes, IntegersStayCloseAndAreKeptInTheFile) {
  const TempDirectory directory;
  const TinyText file = TinyText::bert();
  const TextCheckpoint real = load_text_checkpoint(file.write(directory.path("b.safetensors")));
  const std::string ids = TinyText::write_ids(directory.path("ids.safetensors"), 20, 11);
  const std::string path = directory.path("b.int8.safetensors");
  save_integer_text(quantise(real, load_token_ids(ids, real.shape)), path);
  const IntegerText text = load_integer_text(path);
  EXPECT_TRUE(text.shape == real.shape);
  const std::vector<double> words = file.values("bert.embeddings.word_embeddings.weight");
  const std::vector<double> positions = file.values("bert.embeddings.position_embeddings.weight");
  const std::vector<double> types = file.values("bert.embeddings.token_type_embeddings.weight");
  const Numbers codes = embed_tokens(text, kSentence, 0, kSentenceTypes);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::size_t t = i / TinyText::kWidth, column = i % TinyText::kWidth;
    const auto row = [&](std::int32_t index) {
      return static_cast<std::size_t>(index) * TinyText::kWidth + column;
    };
    const double sum = words[row(kSentence[t])] + positions[i] + types[row(kSentenceTypes[t])];
    EXPECT_NEAR(codes[i], sum / text.embedding_scale, 1.6) << "three roundings, " << i;
  }
  EXPECT_EQ(embed_tokens(text, kSentence, 0, Numbers(kSentence.size(), 0)),
            embed_tokens(text, kSentence));
  EXPECT_THROW((void)embed_tokens(text, {1}, 0, {2}), std::invalid_argument);
}

}  // namespace
}  // namespace systole::model

#include "model/float/gpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "model/format/float_formats.h"
#include "model/model_files.h"
#include "support/input_error.h"
#include "support/network/tiny_text.h"
#include "support/temp_directory.h"

namespace systole::model {
namespace {

using test::TinyText;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class LoadedGpt : public testing::Test {
 protected:
  [[nodiscard]] Gpt load(const TinyText& text) const {
    return load_gpt(text.write(directory_.path("gpt.safetensors")));
  }
  [[nodiscard]] std::string error_of(const TinyText& text) const {
    return input_error_of([&] { static_cast<void>(load(text)); });
  }

  TempDirectory directory_;
};

/// The tensor of that name, rounded.
std::vector<hw::Half> rounded(const TinyText& text, const std::string& name) {
  std::vector<hw::Half> halves;
  for (const double value : text.values(name)) halves.push_back(hw::to_half(value));
  return halves;
}

/// Some columns of a matrix of `stride` columns.
std::vector<hw::Half> columns(const std::vector<hw::Half>& matrix, std::size_t stride,
                              std::size_t first, std::size_t count) {
  std::vector<hw::Half> some;
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    if (i % stride >= first && i % stride < first + count) some.push_back(matrix[i]);
  }
  return some;
}

TEST_F(LoadedGpt, HasTheTensorsOfTheFile) {
  const TinyText text = TinyText::gpt2();
  const Gpt gpt = load(text);
  constexpr std::size_t kWidth = TinyText::kWidth;
  EXPECT_EQ(gpt.shape.encoder.layers, TinyText::kLayers);
  EXPECT_EQ(gpt.shape.encoder.width, kWidth);
  EXPECT_EQ(gpt.shape.encoder.heads, TinyText::kHeads);
  EXPECT_EQ(gpt.shape.encoder.hidden, TinyText::kHidden);
  EXPECT_EQ(gpt.shape.vocabulary, TinyText::kVocabulary);
  EXPECT_EQ(gpt.shape.positions, TinyText::kPositions);
  EXPECT_TRUE(gpt.shape.encoder.causal);
  EXPECT_EQ(gpt.norm_epsilon, 1e-5);
  EXPECT_EQ(gpt.word, rounded(text, "transformer.wte.weight"));
  EXPECT_EQ(gpt.position, rounded(text, "transformer.wpe.weight"));
  EXPECT_EQ(gpt.norm.weight, rounded(text, "transformer.ln_f.weight"));
  EXPECT_EQ(gpt.norm.bias, rounded(text, "transformer.ln_f.bias"));
  ASSERT_EQ(gpt.layers.size(), TinyText::kLayers);
  const GptLayer& layer = gpt.layers[1];
  const std::string name = "transformer.h.1.";
  EXPECT_EQ(layer.norm1.weight, rounded(text, name + "ln_1.weight"));
  EXPECT_EQ(layer.norm2.bias, rounded(text, name + "ln_2.bias"));
  EXPECT_EQ(layer.proj.weight, rounded(text, name + "attn.c_proj.weight"));
  EXPECT_EQ(layer.fc1.weight, rounded(text, name + "mlp.c_fc.weight"));
  EXPECT_EQ(layer.fc2.weight, rounded(text, name + "mlp.c_proj.weight"));
  EXPECT_EQ(layer.fc2.inputs, TinyText::kHidden);
  EXPECT_EQ(layer.fc2.outputs, kWidth);
  const auto qkv = rounded(text, name + "attn.c_attn.weight");
  const auto bias = rounded(text, name + "attn.c_attn.bias");
  std::size_t first = 0;
  for (const HalfLinear* part : {&layer.query, &layer.key, &layer.value}) {
    EXPECT_EQ(part->weight, columns(qkv, 3 * kWidth, first, kWidth));
    EXPECT_EQ(part->bias, columns(bias, 3 * kWidth, first, kWidth));
    EXPECT_EQ(part->outputs, kWidth);
    first += kWidth;
  }
}

TEST_F(LoadedGpt, HeadIsTheTableOfWordsUnlessTheFileHasAnother) {
  TinyText text = TinyText::gpt2();
  Gpt gpt = load(text);
  EXPECT_TRUE(gpt.untied.empty());
  EXPECT_EQ(gpt.head(), gpt.word);
  auto same = text.tensors.front();
  same.name = "lm_head.weight";
  text.tensors.push_back(same);
  EXPECT_TRUE(load(text).untied.empty());
  text.remove("lm_head.weight");
  text.add("lm_head.weight", {TinyText::kVocabulary, TinyText::kWidth}, 1.0);
  gpt = load(text);
  EXPECT_EQ(gpt.head(), rounded(text, "lm_head.weight"));
  EXPECT_NE(gpt.head(), gpt.word);
}

TEST_F(LoadedGpt, RoundsEveryTypeToNearestEven) {
  const std::string path = directory_.path("gpt.safetensors");
  TinyText text = TinyText::gpt2("");
  text.remove("ln_f.bias");
  const auto bias = [&](const TensorData& tensor) {
    TinyText with = text;
    with.tensors.push_back(tensor);
    return load_gpt(with.write(path)).norm.bias.front().bits;
  };
  const auto f32 = [&](float value) {
    return bias(make_tensor("ln_f.bias", FileDtype::kF32, {12}, std::vector<float>(12, value)));
  };
  EXPECT_EQ(f32(1.0F + 0x1p-11F), 0x3C00);  // a tie, to even
  EXPECT_EQ(f32(1.0F + 0x1.8p-10F), 0x3C02);
  EXPECT_EQ(f32(65519.0F), 0x7BFF);
  EXPECT_EQ(f32(-0x1p-25F), 0x8000);
  const std::vector<std::uint16_t> codes(12, 0x3F81);
  EXPECT_EQ(bias(make_tensor("ln_f.bias", FileDtype::kBf16, {12}, codes)), 0x3C08);
  EXPECT_EQ(bias(make_tensor("ln_f.bias", FileDtype::kF16, {12}, codes)), 0x3F81);
  EXPECT_THAT(input_error_of([&] { f32(65520.0F); }),
              AllOf(HasSubstr("'ln_f.bias': element 0 is 65520"), HasSubstr("65504")));
  EXPECT_THAT(input_error_of([&] { f32(HUGE_VALF); }), HasSubstr("element 0 is not finite"));
  EXPECT_THAT(input_error_of([&] { f32(std::nanf("")); }), HasSubstr("element 0 is not finite"));
}

TEST_F(LoadedGpt, ErrorsNameFileTensorAndExpectation) {
  TinyText text = TinyText::gpt2();
  text.remove("transformer.h.1.mlp.c_proj.weight");
  EXPECT_THAT(error_of(text), AllOf(HasSubstr("gpt.safetensors"),
                                    HasSubstr("'transformer.h.1.mlp.c_proj.weight': missing"),
                                    HasSubstr("20, 12"), Not(HasSubstr("\n"))));
  EXPECT_THAT(error_of(TinyText::bert()), HasSubstr("names of BERT, expected GPT-2's"));
  text = TinyText::gpt2();
  text.add("lm_head.weight", {29, 12}, 1.0);
  EXPECT_THAT(error_of(text), AllOf(HasSubstr("'lm_head.weight'"), HasSubstr("[30, 12]")));
  text = TinyText::gpt2();
  text.add("more", {1}, 1.0);
  EXPECT_THAT(error_of(text), AllOf(HasSubstr("'more'"), HasSubstr("not part")));
  text = TinyText::gpt2();
  text.metadata = {{"n_head", "5"}};
  EXPECT_THAT(error_of(text), HasSubstr("5 heads do not divide the width 12"));
}

TEST(EmbeddedGpt, HasTheShapeOfItsName) {
  const Gpt gpt = load_gpt(find_gpt_checkpoint("kjv"));
  EXPECT_TRUE(gpt.shape == gpt_shape("kjv"));
  EXPECT_TRUE(gpt.untied.empty());
  EXPECT_THAT(input_error_of([] { return find_gpt_checkpoint("vit65"); }),
              AllOf(HasSubstr("unknown"), HasSubstr("one of kjv")));
}

/// Millions of parameters with the head tied, as the shapes' sources count them.
double mega_parameters(const TextShape& shape) {
  const double d = shape.encoder.width, hidden = shape.encoder.hidden;
  const double layer = 4 * d * d + 2 * d * hidden + 4 * d + d + hidden + 4 * d;
  return 1e-6 * ((shape.vocabulary + shape.positions) * d + shape.encoder.layers * layer + 2 * d);
}

TEST(GptShape, HasThePublishedNumberOfParameters) {
  EXPECT_NEAR(mega_parameters(gpt_shape("gpt2")), 124.439808, 1e-6);
  EXPECT_NEAR(mega_parameters(gpt_shape("gpt2-medium")), 354.823168, 1e-6);
  EXPECT_NEAR(mega_parameters(gpt_shape("gpt2-large")), 774.030080, 1e-6);
  EXPECT_NEAR(mega_parameters(gpt_shape("gpt2-xl")), 1557.611200, 1e-6);
  EXPECT_NEAR(mega_parameters(gpt_shape("gpt2-xl-dfx")), 1438.683648, 1e-6);
  EXPECT_NEAR(mega_parameters(gpt_shape("kjv")), 0.842496, 1e-6);
  EXPECT_EQ(gpt_shape("gpt2-xl-dfx").encoder.head_width(), 64U);
  EXPECT_THAT(
      input_error_of([] { static_cast<void>(gpt_shape("bert-base\n")); }),
      AllOf(HasSubstr("gpt2, gpt2-medium"), HasSubstr("gpt2-xl-dfx, kjv"), Not(HasSubstr("\n"))));
}

TEST(SeededGpt, IsOfItsShapeAndSpread) {
  const TextShape shape = gpt_shape("kjv");
  const Gpt gpt = seeded_gpt("kjv", shape, 5);
  ASSERT_EQ(gpt.layers.size(), shape.encoder.layers);
  EXPECT_EQ(gpt.word.size(), std::size_t{shape.vocabulary} * 128);
  EXPECT_EQ(gpt.position.size(), std::size_t{shape.positions} * 128);
  const HalfLinear& layer = gpt.layers[3].fc1;
  ASSERT_EQ(layer.weight.size(), std::size_t{128} * 512);
  EXPECT_EQ(layer.bias.size(), 512U);
  double sum = 0, squares = 0;
  std::set<std::uint16_t> values;
  for (const hw::Half value : layer.weight) {
    sum += f16_to_float(value.bits);
    squares += std::pow(f16_to_float(value.bits), 2);
    values.insert(value.bits);
  }
  const auto count = static_cast<double>(layer.weight.size());
  EXPECT_NEAR(sum / count, 0.0, 0.0005);
  EXPECT_NEAR(std::sqrt(squares / count), 0.02, 0.0005);
  EXPECT_GT(values.size(), 1000U);
  EXPECT_NEAR(hw::to_float(gpt.norm.weight.front()), 1.0, 0.05);
}

TEST(SeededGpt, SameSeedSameBits) {
  const TextShape shape = gpt_shape("kjv");
  const Gpt a = seeded_gpt("a", shape, 5), b = seeded_gpt("b", shape, 5);
  EXPECT_EQ(a.layers[2].value.weight, b.layers[2].value.weight);
  EXPECT_EQ(a.norm.bias, b.norm.bias);
  EXPECT_NE(a.norm.bias, seeded_gpt("c", shape, 6).norm.bias);
  EXPECT_NE(a.layers[2].value.weight, a.layers[2].key.weight);
  // Computed apart, from the definition of the engine.
  EXPECT_EQ(a.word.front().bits, 0x2604);
}

}  // namespace
}  // namespace systole::model

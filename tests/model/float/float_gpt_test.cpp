#include "model/float/float_gpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/float/logit_comparison.h"
#include "model/format/safetensors.h"
#include "model/model_files.h"
#include "model/text/token_ids.h"
#include "support/input_error.h"
#include "support/network/tiny_text.h"
#include "support/paths.h"
#include "support/temp_directory.h"
#include "tests/model/text_oracle.h"

namespace systole::model {
namespace {

using test::TinyText;
using testing::HasSubstr;

const std::string kTextFile = source_path("traces/data/kjv.safetensors");
const std::string kGolden = source_path("tests/golden/gpt_float.safetensors");
constexpr std::size_t kWindow = 256;
constexpr std::size_t kVocabulary = 128;

/// `count` characters of the embedded text, from `first`.
std::vector<std::int32_t> characters(std::size_t first, std::size_t count) {
  const std::string text = load_text(kTextFile).substr(first, count);
  return {text.begin(), text.end()};
}

const Gpt& kjv() {
  static const Gpt gpt = load_gpt(find_gpt_checkpoint("kjv"));
  return gpt;
}

TEST(FloatGpt, AgreesWithPyTorch) {
  const Safetensors golden = Safetensors::open(kGolden);
  const std::vector<std::int32_t> places = golden.as_int32("places");
  const std::vector<float> expected = golden.as_float("logits");
  ASSERT_EQ(expected.size(), places.size() * kVocabulary);
  const std::vector<float> found = FloatGpt(kjv()).append(characters(0, kWindow));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto place = static_cast<std::size_t>(places[i / kVocabulary]);
    ASSERT_NEAR(found[place * kVocabulary + i % kVocabulary], expected[i], 1e-4)
        << "place " << place << " token " << i % kVocabulary;
  }
}

TEST(FloatGpt, NeedsTheBitsOfPyTorch) {
  const std::vector<double> expected = Safetensors::open(kGolden).copy<double>("bits");
  ASSERT_EQ(expected.size(), kWindow);
  constexpr std::size_t kWindows = 2;
  FloatGpt gpt(kjv());
  std::vector<double> bits(kWindow);
  for (std::size_t first = 0; first < kWindows * kWindow; first += kWindow) {
    const std::vector<std::int32_t> ids = characters(first, kWindow + 1);
    gpt.restart();
    const std::vector<float> logits = gpt.append({ids.begin(), ids.end() - 1});
    for (std::size_t i = 0; i < kWindow; ++i) {
      bits[i] += bits_of_token(&logits[i * kVocabulary], kVocabulary,
                               static_cast<std::size_t>(ids[i + 1])) /
                 kWindows;
    }
  }
  for (std::size_t i = 0; i < kWindow; ++i) ASSERT_NEAR(bits[i], expected[i], 1e-4) << i;
}

TEST(FloatGpt, TokenByTokenGivesWhatAllAtOnceGive) {
  const std::vector<std::int32_t> ids = characters(1000, 40);
  FloatGpt gpt(kjv());
  const std::vector<float> whole = gpt.append(ids);
  EXPECT_EQ(gpt.length(), 40U);
  gpt.restart();
  std::vector<float> steps = gpt.append({ids.begin(), ids.begin() + 17});
  for (std::size_t i = 17; i < ids.size(); ++i) {
    const std::vector<float> row = gpt.append({ids[i]});
    steps.insert(steps.end(), row.begin(), row.end());
  }
  EXPECT_EQ(steps, whole);
}

/// What a tiny text's tensors are in FP16.
TinyText rounded(TinyText text) {
  for (TensorData& tensor : text.tensors) {
    for (std::size_t at = 0; at < tensor.data.size(); at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, &tensor.data[at], sizeof value);
      value = hw::to_float(hw::to_half(value));
      std::memcpy(&tensor.data[at], &value, sizeof value);
    }
  }
  return text;
}

TEST(FloatGpt, ComputesWhatTheNamesOfTheTensorsMean) {
  const TempDirectory directory;
  TinyText text = TinyText::gpt2();
  text.add("lm_head.weight", {TinyText::kVocabulary, TinyText::kWidth}, 1.0);
  text = rounded(text);
  const std::vector<std::int32_t> ids{4, 17, 0, 29, 8, 8, 3};
  const auto hidden = TextOracle(text).gpt2(ids);
  const std::vector<double> head = text.values("lm_head.weight");
  const Gpt gpt = load_gpt(text.write(directory.path("gpt.safetensors")));
  const std::vector<float> found = FloatGpt(gpt).append(ids);
  ASSERT_EQ(found.size(), ids.size() * TinyText::kVocabulary);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t place = i / TinyText::kVocabulary, token = i % TinyText::kVocabulary;
    double expected = 0;
    for (std::size_t j = 0; j < TinyText::kWidth; ++j) {
      expected += hidden[place][j] * head[token * TinyText::kWidth + j];
    }
    EXPECT_NEAR(found[i], expected, 1e-4) << place << " " << token;
  }
}

TEST(FloatGpt, RefusesWhatHasNoPlace) {
  const Gpt small = seeded_gpt("small", TextShape{{1, 8, 2, 16, false, 0, true}, 10, 3}, 1);
  FloatGpt gpt(small);
  EXPECT_THROW(static_cast<void>(gpt.append({10})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(gpt.append({-1})), std::invalid_argument);
  EXPECT_EQ(gpt.length(), 0U);
  EXPECT_EQ(gpt.append({5, 9, 0}).size(), 3 * 10U);
  EXPECT_THROW(static_cast<void>(gpt.append({5})), std::invalid_argument);
}

TEST(LogitComparison, TellsHowFarLogitsAre) {
  const std::vector<float> reference{1.0F, -4.0F, 3.0F};
  const auto halves = [](const std::vector<float>& values) {
    std::vector<hw::Half> result;
    for (const float value : values) result.push_back(hw::to_half(value));
    return result;
  };
  LogitComparison comparison;
  comparison.add(halves({1.0F, -4.0F, 3.0F}), reference.data(), 2);
  EXPECT_EQ(comparison.same_top(), 1.0);
  EXPECT_EQ(comparison.max_error(), 0.0);
  EXPECT_EQ(comparison.bits(), comparison.reference_bits());
  comparison.add(halves({3.0F, -4.0F, 2.5F}), reference.data(), 0);
  EXPECT_EQ(comparison.places(), 2U);
  EXPECT_EQ(comparison.same_top(), 0.5);
  EXPECT_EQ(comparison.max_error(), 0.5);  // 2 of 4
  EXPECT_EQ(comparison.mean_error(), 0.25);
  EXPECT_LT(comparison.bits(), comparison.reference_bits());
  comparison.add(halves({std::nanf(""), 0.0F, 3.0F}), reference.data(), 0);
  EXPECT_TRUE(std::isnan(comparison.max_error()));
  EXPECT_THROW(comparison.add(halves({1.0F}), reference.data(), 1), std::invalid_argument);
}

TEST(LogitComparison, CountsBitsOfASoftmax) {
  const std::vector<float> logits{0.0F, std::log(2.0F), std::log(5.0F)};
  EXPECT_NEAR(bits_of_token(logits.data(), 3, 0), 3.0, 1e-6);  // 1 of 8
  EXPECT_NEAR(bits_of_token(logits.data(), 3, 1), 2.0, 1e-6);
}

TEST(TextData, IsATensorOrAFile) {
  const TempDirectory directory;
  EXPECT_EQ(load_text(kTextFile).size(), 65536U);
  EXPECT_EQ(load_text(kTextFile).substr(0, 11), "Genesis 11\n");
  EXPECT_EQ(load_text(directory.write("a.txt", "In the")), "In the");
  EXPECT_THAT(input_error_of([&] { return load_text(directory.path("b.txt")); }),
              HasSubstr("b.txt"));
  EXPECT_THAT(input_error_of([&] { return load_text(kGolden); }), HasSubstr("'valid': missing"));
}

}  // namespace
}  // namespace systole::model

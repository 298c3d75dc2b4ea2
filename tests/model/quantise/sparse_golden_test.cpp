#include <gtest/gtest.h>

#include <cmath>

#include "model/build/encoder_graph.h"
#include "model/float/float_vit.h"
#include "model/integer/integer_model.h"
#include "support/paths.h"
#include "tests/model/vision.h"

/// Masks and auto-encoder against an implementation in numpy that knows nothing of this one
/// (script/train/make_goldens.py).
namespace systole::model {
namespace {

constexpr std::array<const char*, 2> kGoldenModels = {"vit65-sparse90", "vit65-sparse90-ae"};

class SparseGolden : public ::testing::TestWithParam<const char*> {
 protected:
  std::string key(const char* tensor) const { return std::string(GetParam()) + "." + tensor; }

  Safetensors golden_ =
      Safetensors::open(source_path("tests/golden/vit_sparse_integer.safetensors"));
  IntegerVit vit_ = load_integer_vit(integer_model_path(GetParam()));
  Dataset data_ = digits("test");
};

TEST_P(SparseGolden, LogitsOfAllDigits) {
  EXPECT_EQ(integer_logits(make_vit_graph(vit_), vit_.shape, data_, data_.count, {true, false}),
            golden_.as_int32(key("int_logits")));
}

TEST_P(SparseGolden, LogitsOfThePlainLoops) {
  constexpr std::size_t kPictures = 10;
  std::vector<std::int32_t> expected = golden_.as_int32(key("int_logits"));
  expected.resize(kPictures * vit_.shape.classes);
  EXPECT_EQ(integer_logits(make_vit_graph(vit_), vit_.shape, data_, kPictures, {}), expected);
}

TEST_P(SparseGolden, RealLogits) {
  const FloatVit vit(load_vit_checkpoint(checkpoint_path(GetParam())));
  const std::vector<float> expected = golden_.as_float(key("fp32_logits"));
  ASSERT_EQ(expected.size(), 160U);
  for (std::size_t i = 0; i < 16; ++i) {
    const std::vector<double> logits = vit.logits(patches_of(data_, i, vit.shape()));
    for (std::size_t c = 0; c < 10; ++c) {
      EXPECT_NEAR(logits[c], expected[i * 10 + c], 1e-4 * std::fabs(expected[i * 10 + c]) + 1e-4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EmbeddedModels, SparseGolden, ::testing::ValuesIn(kGoldenModels),
                         model_test_name);

}  // namespace
}  // namespace systole::model

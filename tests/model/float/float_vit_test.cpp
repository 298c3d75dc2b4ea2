#include "model/float/float_vit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "tests/model/vision.h"

namespace systole::model {
namespace {

class FloatVitModel : public ::testing::TestWithParam<const char*> {
 protected:
  FloatVit vit_{load_vit_checkpoint(checkpoint_path(GetParam()))};
};

TEST_P(FloatVitModel, RecognisesTheTestDigits) {
  EXPECT_GE(float_accuracy(vit_, digits("test")), 0.975);
}

TEST_P(FloatVitModel, LogitsEqualTheGoldenOnes) {
  const Dataset data = digits("test");
  const std::vector<float> golden =
      vision_golden().as_float(std::string(GetParam()) + ".fp32_logits");
  const std::size_t classes = vit_.shape().classes;
  double largest = 0;
  for (const float x : golden) largest = std::max(largest, std::fabs(double{x}));
  ASSERT_EQ(golden.size(), 16 * classes);
  for (std::size_t i = 0; i < 16; ++i) {
    const std::vector<double> logits = vit_.logits(patches_of(data, i, vit_.shape()));
    for (std::size_t c = 0; c < classes; ++c) {
      EXPECT_NEAR(logits[c], golden[i * classes + c], 1e-4 * largest) << i << ", " << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EmbeddedModels, FloatVitModel, ::testing::ValuesIn(kVisionModels),
                         model_test_name);

/// Counts how often each site is shown, and with which shape.
class SiteCounter final : public ActivationObserver {
 public:
  void observe(Site site, std::size_t, const double*, std::size_t rows, std::size_t cols) override {
    ++count[site];
    shape[site] = {rows, cols};
  }
  std::map<Site, int> count;
  std::map<Site, std::pair<std::size_t, std::size_t>> shape;
};

TEST(FloatVit, ShowsEverySiteToTheObserver) {
  const FloatVit vit(load_vit_checkpoint(checkpoint_path("vit17")));
  SiteCounter sites;
  const std::vector<std::int32_t> patches = patches_of(digits("test"), 0, vit.shape());
  EXPECT_EQ(vit.logits(patches, &sites), vit.logits(patches));
  EXPECT_EQ(sites.count[Site::kEmbedding], 1);
  EXPECT_EQ(sites.count.count(Site::kEmbeddingNorm), 0U);
  for (const Site site : {Site::kNorm1, Site::kQkv, Site::kContext, Site::kAttentionResidual,
                          Site::kNorm2, Site::kGeluIn, Site::kGeluOut, Site::kMlpResidual}) {
    EXPECT_EQ(sites.count[site], 4);
  }
  EXPECT_EQ(sites.shape[Site::kQkv], (std::pair<std::size_t, std::size_t>{17, 192}));
  EXPECT_EQ(sites.shape[Site::kGeluIn], (std::pair<std::size_t, std::size_t>{17, 256}));
  EXPECT_EQ(sites.shape[Site::kFinalNorm], (std::pair<std::size_t, std::size_t>{1, 64}));
  EXPECT_EQ(sites.shape[Site::kLogits], (std::pair<std::size_t, std::size_t>{1, 10}));
}

TEST(FloatVit, RefusesAnotherNumberOfPixels) {
  const FloatVit vit(load_vit_checkpoint(checkpoint_path("vit17")));
  EXPECT_THROW(static_cast<void>(vit.logits(std::vector<std::int32_t>(63))), std::invalid_argument);
}

TEST(FloatVit, RefusesPicturesOfAnotherSize) {
  Dataset data;
  data.count = 1;
  data.height = 8;
  data.width = 9;
  data.samples.resize(72);
  const VitShape shape = load_vit_checkpoint(checkpoint_path("vit17")).shape;
  EXPECT_THROW(static_cast<void>(patches_of(data, 0, shape)), hw::InputError);
}

TEST(FloatVit, AccuracyNeedsLabels) {
  const FloatVit vit(load_vit_checkpoint(checkpoint_path("vit17")));
  Dataset data = digits("test");
  data.labels.clear();
  EXPECT_THROW(static_cast<void>(float_accuracy(vit, data)), hw::InputError);
}

TEST(PackedMatrix, MultipliesAnyShapeAndStride) {
  // 3 x 10 times a transposed 11 x 10, with rows further apart than they are long.
  std::vector<double> x(3 * 12), w(11 * 10), out(3 * 13, -1.0);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = std::cos(static_cast<double>(i));
  const PackedMatrix<double> matrix(w.data(), 10, 11, 1, 10);
  matrix.multiply(x.data(), 12, 3, out.data(), 13);
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 11; ++c) {
      double sum = 0;
      for (std::size_t i = 0; i < 10; ++i) sum += x[r * 12 + i] * w[c * 10 + i];
      EXPECT_NEAR(out[r * 13 + c], sum, 1e-12);
    }
    EXPECT_EQ(out[r * 13 + 11], -1.0);
    EXPECT_EQ(out[r * 13 + 12], -1.0);
  }
}

}  // namespace
}  // namespace systole::model

#include "model/quantise/quantiser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/build/encoder_graph.h"
#include "model/float/float_vit.h"
#include "model/integer/integer_model.h"
#include "model/quantise/calibration.h"
#include "model/quantise/quantise_layers.h"
#include "tests/model/vision.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_directory.h"

namespace systole::model {
namespace {

/// Six points of the digits' accuracy are enough to see that a variant works, a lost one is not.
constexpr double kSound = 0.96;

double accuracy_of(const VitCheckpoint& checkpoint, const QuantiserOptions& options) {
  const IntegerVit vit = quantise(checkpoint, digits("calib"), options);
  const Dataset data = digits("test");
  return integer_accuracy(integer_logits(make_vit_graph(vit), vit.shape, data, data.count, kFast),
                          data);
}

/// Root mean square of what integer and real logits of some pictures differ.
double logit_error(const VitCheckpoint& checkpoint, const QuantiserOptions& options) {
  constexpr std::size_t kPictures = 40;
  const Dataset data = digits("test");
  const FloatVit real(checkpoint);
  const IntegerVit vit = quantise(checkpoint, digits("calib"), options);
  const std::vector<std::int32_t> codes =
      integer_logits(make_vit_graph(vit), vit.shape, data, kPictures, kFast);
  double squares = 0;
  for (std::size_t i = 0; i < kPictures; ++i) {
    const std::vector<double> logits = real.logits(patches_of(data, i, vit.shape));
    for (std::size_t c = 0; c < logits.size(); ++c) {
      const double difference = codes[i * logits.size() + c] * vit.logit_scale - logits[c];
      squares += difference * difference;
    }
  }
  return std::sqrt(squares / static_cast<double>(codes.size()));
}

class QuantisedModel : public ::testing::TestWithParam<const char*> {};

/// Not one integer moves. The real scales beside them may, in the last place, where another
/// compiler or mathematics library calibrates.
TEST_P(QuantisedModel, ConstantsAreThoseOfTheShippedFile) {
  const TempDirectory directory;
  const std::string path = directory.path("again.safetensors");
  save_integer_vit(quantise(load_vit_checkpoint(checkpoint_path(GetParam())), digits("calib")),
                   path);
  const Safetensors again = Safetensors::open(path);
  const Safetensors shipped = Safetensors::open(integer_model_path(GetParam()));
  ASSERT_EQ(again.names(), shipped.names());
  EXPECT_EQ(again.metadata(), shipped.metadata());
  for (const std::string& name : shipped.names()) {
    const TensorView& expected = shipped.tensor(name);
    const TensorView& found = again.expect(name, {expected.dtype}, expected.shape);
    if (expected.dtype == FileDtype::kF64) {
      const double scale = shipped.copy<double>(name).front();
      EXPECT_NEAR(again.copy<double>(name).front(), scale, 1e-12 * scale) << name;
    } else {
      EXPECT_EQ(std::memcmp(found.data, expected.data, expected.bytes), 0) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EmbeddedModels, QuantisedModel, ::testing::ValuesIn(kVisionModels),
                         model_test_name);

INSTANTIATE_TEST_SUITE_P(SparseModels, QuantisedModel, ::testing::ValuesIn(kSparseModels),
                         model_test_name);

TEST(Quantiser, OneWeightScalePerMatrixWorksToo) {
  const VitCheckpoint checkpoint = load_vit_checkpoint(checkpoint_path("vit17"));
  QuantiserOptions options;
  options.per_channel = false;
  EXPECT_GE(accuracy_of(checkpoint, options), kSound);
  const IntegerVit vit = quantise(checkpoint, digits("calib"), options);
  const std::vector<hw::Dyadic>& factor = vit.encoder.blocks[0].fc1.factor;
  EXPECT_TRUE(
      std::all_of(factor.begin(), factor.end(), [&](hw::Dyadic f) { return f == factor.front(); }));
}

TEST(Quantiser, Int4WeightsAreOfTheBlocksAndKeepTheirAccuracyAndAFile) {
  const VitCheckpoint checkpoint = load_vit_checkpoint(checkpoint_path("vit17"));
  QuantiserOptions options;
  options.weight_bits = kInt4WeightBits;
  IntegerVit vit = quantise(checkpoint, digits("calib"), options);
  const IntegerVit whole = quantise(checkpoint, digits("calib"), {});
  EXPECT_FALSE(vit.patch_embed.int4);
  EXPECT_FALSE(vit.head.int4);
  EXPECT_EQ(vit.head.weight, whole.head.weight);
  int least = 0, largest = 0;
  for (std::size_t i = 0; i < vit.encoder.blocks.size(); ++i) {
    const IntegerBlock& block = vit.encoder.blocks[i];
    for (const auto layer :
         {&IntegerBlock::qkv, &IntegerBlock::proj, &IntegerBlock::fc1, &IntegerBlock::fc2}) {
      const IntegerLinear& int4 = block.*layer;
      EXPECT_TRUE(int4.int4);
      EXPECT_TRUE(int4.fits_int4());
      EXPECT_FALSE((whole.encoder.blocks[i].*layer).int4);
      const auto [low, high] = std::minmax_element(int4.weight.begin(), int4.weight.end());
      least = std::min<int>(least, *low);
      largest = std::max<int>(largest, *high);
    }
  }
  EXPECT_EQ(least, -8);
  EXPECT_EQ(largest, 7);
  EXPECT_GT(accuracy_of(checkpoint, options), kSound);

  const TempDirectory directory;
  const std::string path = directory.path("a.int8.safetensors");
  save_integer_vit(vit, path);
  const IntegerVit again = load_integer_vit(path);
  EXPECT_TRUE(again.encoder.blocks[0].fc1.int4);
  EXPECT_FALSE(again.head.int4);
  for (const Tensor& tensor : make_vit_graph(again).tensors) {
    if (tensor.kind != Tensor::Kind::kConstant || tensor.type != hw::DType::kS8) continue;
    EXPECT_EQ(tensor.int4, tensor.name.rfind("blocks.", 0) == 0) << tensor.name;
  }
}

// A row of which one weight is far from the rest: its scale gives up the one for the others.
TEST(Quantiser, Int4ScalesAreThoseOfTheLeastSquares) {
  FloatLinear layer;
  layer.inputs = 64;
  layer.outputs = 1;
  for (std::size_t i = 0; i < layer.inputs; ++i) {
    layer.weight.push_back(0.01 * (static_cast<double>(i % 15) - 7.0));
  }
  layer.bias = {0.0};
  const LayerQuantiser quantiser("test", 16, true);
  const auto step_of = [&](const IntegerLinear& of) {
    return static_cast<double>(of.factor[0].multiplier) /
           std::exp2(static_cast<double>(of.factor[0].shift));
  };
  const IntegerLinear even = quantiser.linear("a", layer, 1.0, {{1, 1.0}}, kInt4WeightBits);
  EXPECT_NEAR(step_of(even), 0.01, 1e-5);
  for (std::size_t i = 0; i < layer.inputs; ++i) {
    EXPECT_EQ(even.weight[i], static_cast<int>(i % 15) - 7);
  }
  layer.weight[5] = 0.1;
  const IntegerLinear odd = quantiser.linear("a", layer, 1.0, {{1, 1.0}}, kInt4WeightBits);
  EXPECT_LT(step_of(odd), 0.1 / 7);
  EXPECT_EQ(odd.weight[5], 7);
}

TEST(Quantiser, EveryDatapathOfTheMachineFileWorks) {
  const VitCheckpoint checkpoint = load_vit_checkpoint(checkpoint_path("vit17"));
  QuantiserOptions ibert;
  ibert.datapath.multiplier_bits = 31;
  ibert.datapath.rounding = hw::Rounding::kHalfEven;
  ibert.datapath.residual_bits = 22;
  ibert.datapath.softmax = hw::SoftmaxMode::kNormalisedFloor;
  EXPECT_GE(accuracy_of(checkpoint, ibert), kSound);
  QuantiserOptions narrow;
  narrow.datapath.multiplier_bits = 8;
  narrow.datapath.residual_bits = 12;
  narrow.datapath.softmax = hw::SoftmaxMode::kNormalisedRound;
  narrow.datapath.softmax_bits = 7;
  EXPECT_GE(accuracy_of(checkpoint, narrow), kSound);
  QuantiserOptions post;
  post.datapath.residual_bits = 24;
  post.datapath.multiplier_bits = 31;
  EXPECT_GE(accuracy_of(load_vit_checkpoint(checkpoint_path("vit17-post")), post), kSound);
}

TEST(Quantiser, ResidualOf8BitsAndOneScaleIsWorseThan16) {
  const VitCheckpoint checkpoint = load_vit_checkpoint(checkpoint_path("vit17"));
  QuantiserOptions narrow;
  narrow.datapath.residual_bits = 8;
  EXPECT_GT(logit_error(checkpoint, narrow), 3 * logit_error(checkpoint, {}));
}

/// Enlarges three channels of a LayerNorm's output, and shrinks the weights that read them.
VitCheckpoint with_outliers(VitCheckpoint checkpoint, double factor) {
  const std::size_t width = checkpoint.shape.encoder.width;
  for (FloatBlock& block : checkpoint.blocks) {
    for (const std::size_t channel : {3U, 17U, 40U}) {
      block.norm1.weight[channel] *= factor;
      block.norm1.bias[channel] *= factor;
      for (std::size_t o = 0; o < 3 * width; ++o) {
        block.qkv.weight[o * width + channel] /= factor;
      }
    }
  }
  return checkpoint;
}

TEST(OutlierFolding, PreservesTheFunction) {
  const VitCheckpoint checkpoint = with_outliers(load_vit_checkpoint(checkpoint_path("vit17")), 30);
  const FloatVit before(checkpoint);
  const FloatVit after(fold_outliers(checkpoint, calibrate(before, digits("calib")), 0.5));
  const Dataset data = digits("test");
  for (std::size_t i = 0; i < 20; ++i) {
    const std::vector<std::int32_t> patches = patches_of(data, i, before.shape());
    const std::vector<double> expected = before.logits(patches);
    const std::vector<double> folded = after.logits(patches);
    for (std::size_t c = 0; c < expected.size(); ++c) EXPECT_NEAR(folded[c], expected[c], 1e-9);
  }
}

TEST(OutlierFolding, RepairsInjectedOutliers) {
  const VitCheckpoint checkpoint = load_vit_checkpoint(checkpoint_path("vit17"));
  const VitCheckpoint spoilt = with_outliers(checkpoint, 100);
  QuantiserOptions folding;
  folding.outlier_alpha = 0.5;
  const double normal = logit_error(checkpoint, {});
  EXPECT_GT(logit_error(spoilt, {}), 5 * normal);
  EXPECT_LT(logit_error(spoilt, folding), 1.5 * normal);
}

TEST(OutlierFolding, RefusesPostNorm) {
  QuantiserOptions folding;
  folding.outlier_alpha = 0.5;
  const VitCheckpoint checkpoint = load_vit_checkpoint(checkpoint_path("vit17-post"));
  EXPECT_NE(input_error_of([&] {
              return quantise(checkpoint, digits("calib"), folding);
            }).find("expected pre-norm"),
            std::string::npos);
}

}  // namespace
}  // namespace systole::model

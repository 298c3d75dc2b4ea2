#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hw/function/softmax.h"
#include "model/build/encoder_graph.h"
#include "model/float/float_vit.h"
#include "model/graph/graph_builder.h"
#include "model/graph/reference.h"
#include "model/integer/head_mix.h"
#include "model/integer/integer_model.h"
#include "model/quantise/quantiser.h"
#include "support/paths.h"
#include "tests/model/vision.h"

namespace systole::model {
namespace {

// The fine-tuned models with fixed masks, with and without auto-encoder.

/// Of a fraction: what pruning and compression may cost beside the dense model.
constexpr double kLargestLoss = 0.015;
constexpr const char* kLinked = "vit65-sparse90-ae";

double accuracy_of(const IntegerVit& vit) {
  const Dataset data = digits("test");
  return integer_accuracy(integer_logits(make_vit_graph(vit), vit.shape, data, data.count, kFast),
                          data);
}

class SparseVit : public ::testing::TestWithParam<const char*> {
 protected:
  IntegerVit vit_ = load_integer_vit(integer_model_path(GetParam()));
};

TEST_P(SparseVit, LosesAtMostOneAndAHalfPointsBesideTheDenseModel) {
  // The golden logits, which ReferenceModel compares with those of the model.
  const double dense =
      integer_accuracy(vision_golden().as_int32("vit65.int_logits"), digits("test"));
  EXPECT_GE(accuracy_of(vit_), dense - kLargestLoss);
}

TEST_P(SparseVit, IsAsSparseAsItSays) {
  const Safetensors checkpoint = Safetensors::open(checkpoint_path(GetParam()));
  const double stated = std::stod(checkpoint.metadata().at("sparsity"));
  std::size_t kept = 0;
  std::size_t cells = 0;
  for (const IntegerBlock& block : vit_.encoder.blocks) {
    ASSERT_EQ(block.keep.size(), 4U * 65U * 65U);
    cells += block.keep.size();
    kept += static_cast<std::size_t>(std::count(block.keep.begin(), block.keep.end(), 1));
    // The class token attends to all, and all to it.
    for (std::size_t i = 0; i < 65; ++i) {
      for (std::size_t head = 0; head < 4; ++head) {
        EXPECT_EQ(block.keep[head * 65 * 65 + i], 1);
        EXPECT_EQ(block.keep[(head * 65 + i) * 65], 1);
      }
    }
  }
  EXPECT_NEAR(1.0 - static_cast<double>(kept) / static_cast<double>(cells), stated, 0.005);
}

TEST_P(SparseVit, SoftmaxIsThatOfTheKeepMask) {
  const Graph graph = make_vit_graph(vit_);
  Reference reference(graph, kFast);
  reference.set_input("patches", patches_of(digits("test"), 7, vit_.shape));
  reference.run();
  hw::SoftmaxConstants constants = hw::make_softmax_constants(1.0);
  for (std::size_t block = 0; block < vit_.encoder.blocks.size(); ++block) {
    constants.score = vit_.encoder.blocks[block].score;
    for (std::size_t head = 0; head < 4; ++head) {
      const std::string prefix =
          "blocks." + std::to_string(block) + ".attn.head" + std::to_string(head) + ".";
      const std::vector<std::int32_t> scores = reference.values(prefix + "scores");
      const std::vector<std::int32_t> codes = reference.values(prefix + "softmax");
      const std::vector<std::int32_t> sums = reference.values(prefix + "row_sum");
      std::vector<std::int32_t> expected(scores.size());
      for (std::size_t row = 0; row < 65; ++row) {
        const std::uint8_t* keep = vit_.encoder.blocks[block].keep.data() + (head * 65 + row) * 65;
        const std::uint32_t sum = hw::softmax_row(scores.data() + row * 65, keep, 65, constants,
                                                  expected.data() + row * 65);
        EXPECT_EQ(sums[row], static_cast<std::int32_t>(sum)) << prefix << row;
      }
      EXPECT_EQ(codes, expected) << prefix;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EmbeddedModels, SparseVit, ::testing::ValuesIn(kSparseModels),
                         model_test_name);

TEST(LinkedModel, FoldingTheEncoderPreservesTheLogits) {
  const VitCheckpoint checkpoint = load_vit_checkpoint(checkpoint_path(kLinked));
  const FloatVit plain(checkpoint);
  const FloatVit folded(fold_encoders(checkpoint));
  const Dataset data = digits("test");
  for (std::size_t i = 0; i < 40; ++i) {
    const std::vector<std::int32_t> patches = patches_of(data, i, plain.shape());
    const std::vector<double> expected = plain.logits(patches);
    const std::vector<double> found = folded.logits(patches);
    for (std::size_t c = 0; c < expected.size(); ++c) EXPECT_NEAR(found[c], expected[c], 1e-9);
  }
}

TEST(LinkedModel, FoldedIntegerModelHoldsTheSameAccuracy) {
  QuantiserOptions options;
  options.fold_encoders = true;
  const IntegerVit folded =
      quantise(load_vit_checkpoint(checkpoint_path(kLinked)), digits("calib"), options);
  // The golden logits, which ReferenceModel compares with those of the model.
  const double dense =
      integer_accuracy(vision_golden().as_int32("vit65.int_logits"), digits("test"));
  EXPECT_GE(accuracy_of(folded), dense - kLargestLoss);
  EXPECT_EQ(folded.encoder.blocks[0].qkv.outputs, 2U * 32U + 64U);
}

// Masks and auto-encoder against an implementation in numpy that knows nothing of this one
// (script/train/make_goldens.py).

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

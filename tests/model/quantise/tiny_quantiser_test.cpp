#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/build/encoder_graph.h"
#include "model/float/float_vit.h"
#include "model/graph/reference.h"
#include "model/quantise/quantiser.h"
#include "tests/model/tiny_pictures.h"
#include "tests/model/tiny_vit.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_directory.h"

/// The quantiser at the edges of what it takes: a network small enough to bend.
namespace systole::model {
namespace {

/// A tiny network and some pictures for it.
class TinyQuantiser : public ::testing::Test {
 protected:
  VitCheckpoint checkpoint() {
    return load_vit_checkpoint(tiny_.write(directory_.path("tiny.safetensors")));
  }
  IntegerVit run(const QuantiserOptions& options = {}) {
    return quantise(checkpoint(), data_, options);
  }
  void expect_error(const std::string& part, const QuantiserOptions& options = {}) {
    const std::string text = input_error_of([&] { run(options); });
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  TempDirectory directory_;
  TinyVit tiny_;
  Dataset data_ = tiny_pictures();
};

TEST_F(TinyQuantiser, NamesTheModelAfterItsFile) {
  const IntegerVit vit = run();
  EXPECT_EQ(vit.name, "tiny");
  EXPECT_EQ(vit.source, "quantised from tiny, 8 calibration pictures");
}

TEST_F(TinyQuantiser, RefusesOptionsOutOfRange) {
  QuantiserOptions options;
  options.datapath.multiplier_bits = 7;
  expect_error("datapath.multiplier_bits: 7", options);
  options = {};
  options.datapath.residual_bits = 25;
  expect_error("datapath.residual_bits: 25", options);
  options = {};
  options.datapath.softmax_bits = 9;
  expect_error("datapath.softmax_bits: 9", options);
  options = {};
  options.headroom = 0.5;
  expect_error("headroom", options);
  options.headroom = std::nan("");
  expect_error("headroom", options);
  options = {};
  options.outlier_alpha = 1.5;
  expect_error("outlier alpha", options);
}

TEST_F(TinyQuantiser, RefusesAnEmptyCalibrationSet) {
  data_.count = 0;
  expect_error("no calibration pictures");
}

TEST_F(TinyQuantiser, RefusesPicturesOfAnotherSize) {
  data_.height = 2;
  data_.width = 8;
  expect_error(
      "pictures of 1 x 2 x 8 samples (channels, rows, columns), the model expects 1 x 4 x 4");
}

TEST_F(TinyQuantiser, RefusesActivationsThatAreNotFinite) {
  // Finite weights, but the square of an activation is not.
  tiny_.scale("patch_embed.proj.weight", 3e38F);
  tiny_.scale("blocks.0.attn.qkv.weight", 3e38F);
  tiny_.scale("blocks.0.attn.proj.weight", 3e38F);
  tiny_.scale("blocks.0.mlp.fc1.weight", 3e38F);
  tiny_.scale("blocks.0.mlp.fc2.weight", 3e38F);
  tiny_.scale("blocks.0.norm1.weight", 3e38F);
  tiny_.scale("blocks.0.norm2.weight", 3e38F);
  tiny_.scale("head.weight", 3e38F);
  tiny_.scale("norm.weight", 3e38F);
  tiny_.scale("cls_token", 3e38F);
  expect_error("not finite");
}

TEST_F(TinyQuantiser, RefusesAGeluInputTooCoarse) {
  tiny_.scale("blocks.0.mlp.fc1.weight", 1e4F);
  expect_error("blocks.0.mlp.gelu: GELU input scale");
}

TEST_F(TinyQuantiser, RefusesScoresTooLargeForTheirMultiplier) {
  tiny_.scale("blocks.0.attn.qkv.weight", 1e6F);
  expect_error("blocks.0.attn.scores: ");
}

TEST_F(TinyQuantiser, RefusesALayerNormOfZeros) {
  tiny_.scale("blocks.0.norm2.weight", 0.0F);
  expect_error("blocks.0.norm2: LayerNorm");
}

TEST_F(TinyQuantiser, CoarsensANormWhoseBiasDwarfsItsWeights) {
  tiny_.scale("blocks.0.norm1.weight", 0.02F);
  tiny_.scale("blocks.0.norm1.bias", 10.0F);
  const IntegerLayerNorm norm = run().encoder.blocks[0].norm1;
  std::int32_t largest = 0;
  for (const std::int32_t m : norm.multiplier) largest = std::max(largest, std::abs(m));
  EXPECT_LT(largest, 1 << 14);
  EXPECT_GE(largest, 1 << 7);
}

TEST_F(TinyQuantiser, RefusesANormWhoseWeightsNothingIsLeftOf) {
  tiny_.scale("blocks.0.norm1.weight", 1e-8F);
  tiny_.scale("blocks.0.norm1.bias", 10.0F);
  expect_error("blocks.0.norm1: ");
}

TEST_F(TinyQuantiser, KeepsTheBiasOfAChannelWithoutWeights) {
  for (std::size_t i = 0; i < 8; ++i) tiny_.set("head.weight", 8 + i, 0.0F);
  tiny_.set("head.bias", 1, 2.5F);
  const IntegerVit vit = run();
  const IntegerLinear& head = vit.head;
  EXPECT_TRUE(std::all_of(head.weight.begin() + 8, head.weight.begin() + 16,
                          [](std::int8_t w) { return w == 0; }));
  const double code = std::ldexp(static_cast<double>(head.factor[1].multiplier) * head.bias[1],
                                 -head.factor[1].shift);
  EXPECT_NEAR(code * vit.logit_scale, 2.5, 1e-3);
}

TEST_F(TinyQuantiser, TakesActivationsThatAreAlwaysZero) {
  tiny_.scale("blocks.0.mlp.fc1.weight", 0.0F);
  tiny_.scale("blocks.0.mlp.fc1.bias", 0.0F);
  const IntegerVit vit = run();
  const Graph graph = make_vit_graph(vit);
  Reference reference(graph);
  reference.set_input("patches", patches_of(data_, 0, vit.shape));
  reference.run();
  for (const std::int32_t x : reference.values("blocks.0.mlp.gelu")) EXPECT_EQ(x, 0);
}

TEST_F(TinyQuantiser, GivesALargePositionTableItsRange) {
  // The class token cancels its position, so that no activation shows how large the table is.
  for (std::size_t i = 0; i < 8; ++i) {
    tiny_.set("pos_embed", i, 40.0F);
    tiny_.set("cls_token", i, -40.0F);
    for (std::size_t t = 1; t < 5; ++t) tiny_.set("pos_embed", t * 8 + i, 90.0F);
    tiny_.set("patch_embed.proj.bias", i, -90.0F);
  }
  const IntegerVit vit = run();
  EXPECT_NEAR(vit.position[8] * vit.embedding_scale, 90.0, 1e-2);
}

}  // namespace
}  // namespace systole::model

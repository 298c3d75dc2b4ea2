#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/build/encoder_graph.h"
#include "model/data/dataset.h"
#include "model/float/float_vit.h"
#include "model/graph/reference.h"
#include "model/integer/integer_model.h"
#include "model/quantise/quantiser.h"
#include "support/input_error.h"
#include "support/network/tiny_hf_vit.h"
#include "support/temp_directory.h"
#include "tests/model/vit_oracle.h"

/// Networks that read bytes, of several channels, and normalise them.
namespace systole::model {
namespace {

using test::TinyHfVit;
using Channels = std::vector<VitOracle::Channel>;

/// What most DeiT checkpoints have beside them.
const std::string kImageNet =
    R"({"do_normalize": true, "do_resize": true, "size": 224, "resample": 3,
        "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})";

class ColourVit : public testing::Test {
 protected:
  [[nodiscard]] VitCheckpoint load(const TinyHfVit& vit) const {
    return load_vit_checkpoint(vit.write(directory_.path("vit.safetensors")));
  }
  [[nodiscard]] Dataset pictures(const TinyHfVit& vit, std::size_t count = 4) const {
    return load_images(vit.write_pictures(directory_.path("p.safetensors"), count),
                       load(vit).shape.pictures());
  }
  void configure(const std::string& text) const {
    directory_.write("preprocessor_config.json", text);
  }

  void expect_oracle(const TinyHfVit& vit, const Channels& channels) const {
    const FloatVit real(load(vit));
    const Dataset data = pictures(vit);
    const std::size_t size = data.samples.size() / data.count;
    for (std::size_t i = 0; i < data.count; ++i) {
      const std::vector<double> expected =
          VitOracle(vit).logits(data.samples.data() + i * size, channels);
      const std::vector<double> found = real.logits(patches_of(data, i, real.shape()));
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t c = 0; c < expected.size(); ++c) {
        EXPECT_NEAR(found[c], expected[c], 1e-9) << i << " " << c;
      }
    }
  }

  std::string error_with(const std::string& config) const {
    configure(config);
    return input_error_of([&] { return load(TinyHfVit()); });
  }

  TempDirectory directory_;
};

TEST_F(ColourVit, TensorsSayWhatPicturesItTakes) {
  const VitShape shape = load(TinyHfVit(32, 8)).shape;
  EXPECT_EQ(shape.channels, 3U);
  EXPECT_EQ(shape.levels, 256U);
  EXPECT_EQ(shape.tokens(), 17U);
  EXPECT_EQ(shape.patch_samples(), 192U);
  EXPECT_EQ(shape.classes, 300U);
}

TEST_F(ColourVit, NormalisesAsViTUnlessToldOtherwise) {
  const VitOracle::Channel usual{1.0 / 255, 0.5, 0.5};
  expect_oracle(TinyHfVit(), {usual, usual, usual});
  expect_oracle(TinyHfVit(32, 8, 3, "deit."), {usual, usual, usual});
  expect_oracle(TinyHfVit(8, 4, 2), {usual, usual});
}

TEST_F(ColourVit, NormalisesAsTheFileBesideItSays) {
  configure(kImageNet);
  expect_oracle(TinyHfVit(),
                {{1.0 / 255, 0.485, 0.229}, {1.0 / 255, 0.456, 0.224}, {1.0 / 255, 0.406, 0.225}});
  configure(R"({"rescale_factor": 0.0078125, "do_normalize": false, "image_mean": [1, 2, 3]})");
  expect_oracle(TinyHfVit(), Channels(3, {1.0 / 128, 0, 1}));
  configure(R"({"do_rescale": false, "image_mean": [123, 0, -7], "image_std": [58, 57, 1000]})");
  expect_oracle(TinyHfVit(), {{1, 123, 58}, {1, 0, 57}, {1, -7, 1000}});
}

TEST_F(ColourVit, OneChannelReadsBytesIfItIsNormalised) {
  EXPECT_EQ(load(TinyHfVit(8, 4, 1)).shape.levels, kDigitLevels);
  configure(R"({"image_mean": [0.25], "image_std": null})");
  expect_oracle(TinyHfVit(8, 4, 1), {{1.0 / 255, 0.25, 0.5}});
}

TEST_F(ColourVit, IntegerModelComputesItsLogits) {
  configure(kImageNet);
  for (const TinyHfVit& vit : {TinyHfVit(), TinyHfVit(32, 8)}) {
    const VitCheckpoint checkpoint = load(vit);
    const Dataset data = pictures(vit, 8);
    const std::string path = directory_.path("vit.int8.safetensors");
    save_integer_vit(quantise(checkpoint, data), path);
    const IntegerVit integer = load_integer_vit(path);
    ASSERT_EQ(integer.shape, checkpoint.shape);
    const Graph graph = make_vit_graph(integer);
    Reference reference(graph);
    const FloatVit real(checkpoint);
    for (std::size_t i = 0; i < data.count; ++i) {
      const std::vector<std::int32_t> patches = patches_of(data, i, integer.shape);
      reference.set_input("patches", patches);
      reference.run();
      const std::vector<std::int32_t> codes = reference.values("logits");
      const std::vector<double> expected = real.logits(patches);
      for (std::size_t c = 0; c < expected.size(); ++c) {
        EXPECT_NEAR(codes[c] * integer.logit_scale, expected[c], 0.25) << i << " " << c;
      }
    }
  }
}

TEST_F(ColourVit, ErrorsNameFileAndKey) {
  const std::string name = directory_.path("preprocessor_config.json");
  EXPECT_EQ(error_with("{\"image_mean\": [0.5, 0.5,"),
            name + ": no JSON object, expected the configuration of the checkpoint beside it");
  EXPECT_EQ(error_with("[]").find(name + ": no JSON object"), 0U);
  EXPECT_EQ(error_with(R"({"image_mean": [0.5]})"),
            name +
                ": image_mean: expected a list of 3, one for each channel of the patch "
                "embedding");
  EXPECT_EQ(error_with(R"({"image_mean": 0.5})").find(name + ": image_mean: "), 0U);
  EXPECT_EQ(error_with(R"({"image_std": [1, 0, 1]})"),
            name + ": image_std[1]: expected a number from 1e-06 to 1000000");
  EXPECT_EQ(error_with(R"({"image_std": [1, 1, "1"]})").find(name + ": image_std[2]: "), 0U);
  EXPECT_EQ(error_with(R"({"image_mean": [1, 1e9, 1]})").find(name + ": image_mean[1]: "), 0U);
  EXPECT_EQ(error_with(R"({"rescale_factor": 0})").find(name + ": rescale_factor: "), 0U);
  EXPECT_EQ(error_with(R"({"do_rescale": 1})"), name + ": do_rescale: expected true or false");
  EXPECT_EQ(error_with(R"({"do_normalize": "no"})").find(name + ": do_normalize: "), 0U);
}

TEST_F(ColourVit, RefusesADistilledNetwork) {
  TinyHfVit vit(8, 4, 3, "deit.");
  vit.add("deit.embeddings.distillation_token", {1, 1, TinyHfVit::kWidth}, 0.5);
  EXPECT_NE(input_error_of([&] { return load(vit); })
                .find("'deit.embeddings.distillation_token': a distilled network, expected one "
                      "with a class token alone"),
            std::string::npos);
}

}  // namespace
}  // namespace systole::model

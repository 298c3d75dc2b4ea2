#include "model/checkpoint/vit_checkpoint.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/model/tiny_vit.h"
#include "tests/model/vision.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_directory.h"

namespace systole::model {
namespace {

using ::testing::Test;

class VitCheckpointFile : public Test {
 protected:
  std::string error() {
    return input_error_of([&] { load(); });
  }
  VitCheckpoint load() {
    return load_vit_checkpoint(tiny_.write(directory_.path("tiny.safetensors")));
  }

  TempDirectory directory_;
  TinyVit tiny_;
};

TEST(VitCheckpoint, ShapesOfTheEmbeddedModels) {
  const VitCheckpoint small = load_vit_checkpoint(checkpoint_path("vit17"));
  EXPECT_EQ(small.shape, (VitShape{{4, 64, 4, 256, false}, 8, 2, 10, 1}));
  EXPECT_EQ(small.shape.tokens(), 17U);
  EXPECT_EQ(small.blocks.size(), 4U);
  const VitCheckpoint large = load_vit_checkpoint(checkpoint_path("vit65"));
  EXPECT_EQ(large.shape, (VitShape{{4, 64, 4, 256, false}, 16, 2, 10, 2}));
  EXPECT_EQ(large.position.size(), 65U * 64U);
  EXPECT_TRUE(load_vit_checkpoint(checkpoint_path("vit17-post")).shape.encoder.post_norm);
}

TEST_F(VitCheckpointFile, ValuesAreThoseOfTheFile) {
  tiny_.set("blocks.0.attn.qkv.weight", 8 * 3 + 5, 0.25F);
  tiny_.set("head.bias", 2, -3.5F);
  tiny_.set("pos_embed", 8 + 1, 1.5F);
  const VitCheckpoint checkpoint = load();
  EXPECT_EQ(checkpoint.blocks[0].qkv.inputs, 8U);
  EXPECT_EQ(checkpoint.blocks[0].qkv.outputs, 24U);
  EXPECT_EQ(checkpoint.blocks[0].qkv.weight[8 * 3 + 5], 0.25);
  EXPECT_EQ(checkpoint.head.bias[2], -3.5);
  EXPECT_EQ(checkpoint.position[8 + 1], 1.5);
}

TEST_F(VitCheckpointFile, MissingMetadataIsNamed) {
  for (const char* key : {"img", "patch", "d", "h", "L", "ratio", "ncls", "post", "ae", "up"}) {
    TinyVit spoilt;
    spoilt.metadata.erase(key);
    const std::string path = spoilt.write(directory_.path("spoilt.safetensors"));
    expect_contains(input_error_of([&] { return load_vit_checkpoint(path); }),
                    path + ": metadata '" + key + "': missing");
  }
}

TEST_F(VitCheckpointFile, MetadataOutOfRangeAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"L", "0"},         {"L", "999999"},   {"d", "-8"},    {"d", "8x"},    {"d", ""},
      {"h", "0"},         {"post", "2"},     {"ratio", "0"}, {"ratio", "5"}, {"img", "4294967296"},
      {"ncls", "1e3"},    {"up", "3"},       {"ae", "1"},    {"patch", "0"}, {"channels", "0"},
      {"channels", "17"}, {"levels", "255"}, {"levels", "x"}};
  for (const auto& [key, value] : cases) {
    TinyVit spoilt;
    spoilt.metadata[key] = value;
    const std::string path = spoilt.write(directory_.path("spoilt.safetensors"));
    expect_contains(input_error_of([&] { return load_vit_checkpoint(path); }),
                    path + ": metadata '" + key + "': ");
  }
}

TEST_F(VitCheckpointFile, MetadataThatContradictEachOther) {
  tiny_.metadata["h"] = "3";
  expect_contains(error(), "metadata 'h': 3, expected a divisor of d = 8");
  tiny_.metadata["h"] = "2";
  tiny_.metadata["patch"] = "3";
  expect_contains(error(), "metadata 'patch': 3, expected a divisor of img = 4");
}

TEST_F(VitCheckpointFile, MetadataThatLieAboutTheTensors) {
  tiny_.metadata["d"] = "16";
  expect_contains(error(),
                  "'patch_embed.proj.weight': shape is [8, 1, 2, 2], expected [16, 1, 2, 2]");
  tiny_.metadata["d"] = "8";
  tiny_.metadata["L"] = "2";
  expect_contains(error(), "'blocks.1.norm1.weight': missing");
  tiny_.metadata["L"] = "1";
  tiny_.metadata["img"] = "8";
  expect_contains(error(), "'pos_embed': shape is [1, 5, 8], expected [1, 17, 8]");
}

TEST_F(VitCheckpointFile, TensorThatIsNotPartOfTheNetwork) {
  tiny_.add("blocks.1.norm1.weight", {8}, 1.0);
  expect_contains(error(), "'blocks.1.norm1.weight': not part of the network");
}

TEST_F(VitCheckpointFile, MissingTensorIsNamed) {
  tiny_.remove("blocks.0.mlp.fc2.bias");
  expect_contains(error(), "'blocks.0.mlp.fc2.bias': missing");
}

TEST_F(VitCheckpointFile, IntegersAreNoWeights) {
  tiny_.tensor("head.weight") =
      make_tensor("head.weight", FileDtype::kI32, {3, 8}, std::vector<std::int32_t>(24));
  expect_contains(error(), "'head.weight': ");
}

TEST_F(VitCheckpointFile, ValuesThatAreNotFinite) {
  tiny_.set("norm.bias", 3, std::numeric_limits<float>::quiet_NaN());
  expect_contains(error(), "tensor 'norm.bias': element 3 is not finite");
  tiny_.set("norm.bias", 3, 0.0F);
  tiny_.set("cls_token", 0, -std::numeric_limits<float>::infinity());
  expect_contains(error(), "tensor 'cls_token': element 0 is not finite");
}

}  // namespace
}  // namespace systole::model

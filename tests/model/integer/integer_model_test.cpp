#include "model/integer/integer_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "model/format/safetensors_writer.h"
#include "model/model_files.h"
#include "tests/model/vision.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_directory.h"

namespace systole::model {
namespace {

class IntegerModel : public ::testing::TestWithParam<const char*> {};

TEST_P(IntegerModel, SurvivesARoundTrip) {
  const TempDirectory directory;
  const std::string path = integer_model_path(GetParam());
  const IntegerVit vit = load_integer_vit(path);
  EXPECT_EQ(vit.name, GetParam());
  save_integer_vit(vit, directory.path("copy.safetensors"));
  EXPECT_TRUE(read_file(directory.path("copy.safetensors")) == read_file(path));
}

INSTANTIATE_TEST_SUITE_P(EmbeddedModels, IntegerModel, ::testing::ValuesIn(kVisionModels),
                         model_test_name);

INSTANTIATE_TEST_SUITE_P(SparseModels, IntegerModel, ::testing::ValuesIn(kSparseModels),
                         model_test_name);

/// A copy of a shipped file that a test spoils, writes and loads.
class HostileIntegerModel : public ::testing::Test {
 protected:
  explicit HostileIntegerModel(const char* name = "vit17") {
    const Safetensors file = Safetensors::open(integer_model_path(name));
    metadata_ = file.metadata();
    for (const std::string& tensor : file.names()) {
      const TensorView& view = file.tensor(tensor);
      tensors_[tensor] = {tensor, view.dtype, view.shape, {view.data, view.data + view.bytes}};
    }
  }

 public:
  template <typename T>
  void set(const std::string& tensor, std::size_t index, T value) {
    std::memcpy(tensors_.at(tensor).data.data() + index * sizeof value, &value, sizeof value);
  }

 protected:
  std::string write() {
    std::vector<TensorData> tensors;
    for (const auto& [name, tensor] : tensors_) tensors.push_back(tensor);
    const std::string path = directory_.path("spoilt.safetensors");
    write_safetensors(path, tensors, metadata_);
    return path;
  }

  std::string error() {
    const std::string path = write();
    const std::string text = input_error_of([&] { return load_integer_vit(path); });
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_EQ(text.find(path), 0U) << text;
    return text;
  }

  void expect_error(const std::string& part) {
    const std::string text = error();
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  TempDirectory directory_;
  std::map<std::string, std::string> metadata_;
  std::map<std::string, TensorData> tensors_;
};

class HostilePostNormModel : public HostileIntegerModel {
 protected:
  HostilePostNormModel() : HostileIntegerModel("vit17-post") {}
};

TEST_F(HostileIntegerModel, CheckpointIsNoIntegerModel) {
  const std::string path = checkpoint_path("vit17");
  EXPECT_EQ(
      input_error_of([&] { return load_integer_vit(path); }),
      path + ": metadata 'format': missing, expected systole-integer-vit of an integer model");
}

TEST_F(HostileIntegerModel, EveryMetadatumIsNeeded) {
  for (const auto& entry : std::map<std::string, std::string>(metadata_)) {
    metadata_.erase(entry.first);
    expect_error("metadata '" + entry.first + "': missing");
    metadata_.insert(entry);
  }
}

TEST_F(HostileIntegerModel, MetadataOutOfRange) {
  const std::pair<const char*, const char*> cases[] = {{"format", "systole-integer-gpt"},
                                                       {"version", "2"},
                                                       {"L", "0"},
                                                       {"d", "64.0"},
                                                       {"h", "5"},
                                                       {"post", "yes"},
                                                       {"datapath.multiplier_bits", "32"},
                                                       {"datapath.rounding", "half_up"},
                                                       {"datapath.residual_bits", "7"},
                                                       {"datapath.softmax", "\x1b[2J"},
                                                       {"datapath.softmax_bits", "9"}};
  for (const auto& [key, value] : cases) {
    const std::string kept = metadata_[key];
    metadata_[key] = value;
    expect_error("metadata '" + std::string(key) + "': ");
    metadata_[key] = kept;
  }
}

TEST_F(HostileIntegerModel, EveryTensorIsNeeded) {
  for (const auto& entry : std::map<std::string, TensorData>(tensors_)) {
    tensors_.erase(entry.first);
    expect_error("'" + entry.first + "'");
    tensors_.insert(entry);
  }
}

TEST_F(HostileIntegerModel, MetadataThatLieAboutTheTensors) {
  metadata_["L"] = "5";
  expect_error("blocks.4.norm1.multiplier");
  metadata_["L"] = "3";
  expect_error("'blocks.3.attn.context.multiplier': not part of the model");
  metadata_["L"] = "4";
  metadata_["ncls"] = "11";
  expect_error("'head.weight': shape is [10, 64], expected [11, 64]");
  metadata_["ncls"] = "10";
  metadata_["post"] = "1";
  expect_error("blocks.0.attn.identity.multiplier");
}

TEST_F(HostileIntegerModel, TensorOfAnotherType) {
  tensors_["head.bias"] =
      make_tensor("head.bias", FileDtype::kF32, {10}, std::vector<float>(10, 1.0F));
  expect_error("'head.bias': ");
}

TEST_F(HostileIntegerModel, TensorThatIsNotPartOfTheModel) {
  tensors_["extra"] = make_tensor("extra", FileDtype::kI8, {1}, std::vector<std::int8_t>{1});
  expect_error("'extra': not part of the model");
}

TEST_F(HostileIntegerModel, TruncatedFile) {
  const std::string bytes = read_file(integer_model_path("vit17"));
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, bytes.size() / 2, bytes.size() - 1}) {
    const std::string path = directory_.write("short.safetensors", bytes.substr(0, size));
    EXPECT_EQ(input_error_of([&] { return load_integer_vit(path); }).find(path), 0U);
  }
}

TEST_F(HostileIntegerModel, ValuesOutsideTheDatapath) {
  struct Case {
    const char* name;  ///< in the message
    std::function<void(HostileIntegerModel&)> spoil;
  };
  const Case cases[] = {
      {"patch_embed.weight: -128,",
       [](auto& m) { m.set("patch_embed.weight", 5, std::int8_t{-128}); }},
      {"head.bias: 2147483647,", [](auto& m) { m.set("head.bias", 9, std::int32_t{2147483647}); }},
      {"head.bias: -2147483648,",
       [](auto& m) { m.set("head.bias", 0, std::numeric_limits<std::int32_t>::min()); }},
      {"blocks.1.mlp.fc1.multiplier: 65536,",
       [](auto& m) { m.set("blocks.1.mlp.fc1.multiplier", 255, std::int32_t{65536}); }},
      {"blocks.1.mlp.fc1.multiplier: -1,",
       [](auto& m) { m.set("blocks.1.mlp.fc1.multiplier", 0, std::int32_t{-1}); }},
      {"blocks.2.attn.qkv.shift: -1,",
       [](auto& m) { m.set("blocks.2.attn.qkv.shift", 191, std::int8_t{-1}); }},
      {"blocks.2.attn.qkv.shift: 64,",
       [](auto& m) { m.set("blocks.2.attn.qkv.shift", 0, std::int8_t{64}); }},
      {"blocks.3.attn.score.multiplier: -7,",
       [](auto& m) { m.set("blocks.3.attn.score.multiplier", 0, std::int32_t{-7}); }},
      {"blocks.3.attn.context.shift: 127,",
       [](auto& m) { m.set("blocks.3.attn.context.shift", 0, std::int8_t{127}); }},
      {"softmax.multiplier: 65536,",
       [](auto& m) { m.set("softmax.multiplier", 0, std::int32_t{65536}); }},
      {"position: 32768,", [](auto& m) { m.set("position", 16, std::int32_t{32768}); }},
      {"norm.multiplier: 32769,",
       [](auto& m) { m.set("norm.multiplier", 1, std::int32_t{32769}); }},
      {"norm.shift: 63,", [](auto& m) { m.set("norm.shift", 0, std::int8_t{63}); }},
      {"blocks.0.norm2.shift: ",
       [](auto& m) { m.set("blocks.0.norm2.shift", 0, std::int8_t{-1}); }},
      {"blocks.0.norm1.scale: ", [](auto& m) { m.set("blocks.0.norm1.scale", 0, std::nan("")); }},
      {"logits.scale: ", [](auto& m) { m.set("logits.scale", 0, -1.0); }},
      {"embedding.scale: ", [](auto& m) { m.set("embedding.scale", 0, HUGE_VAL); }},
      {"blocks.0.attn.key.scale: ", [](auto& m) { m.set("blocks.0.attn.key.scale", 0, 0.0); }},
      {"blocks.0.mlp.gelu.b: 1,",
       [](auto& m) { m.set("blocks.0.mlp.gelu.b", 0, std::int64_t{1}); }},
      {"blocks.0.mlp.gelu.b: ",
       [](auto& m) { m.set("blocks.0.mlp.gelu.b", 0, std::numeric_limits<std::int64_t>::min()); }},
      {"blocks.0.mlp.gelu.c: 9,",
       [](auto& m) { m.set("blocks.0.mlp.gelu.c", 0, std::int64_t{9}); }},
      {"blocks.0.mlp.gelu.one: ",
       [](auto& m) { m.set("blocks.0.mlp.gelu.one", 0, -(std::int64_t{1} << 41)); }},
      {"blocks.0.mlp.gelu: the product exceeds its register",
       [](auto& m) { m.set("blocks.0.mlp.gelu.c", 0, -(std::int64_t{1} << 30)); }},
      {"blocks.0.mlp.gelu.multiplier: -65536,",
       [](auto& m) { m.set("blocks.0.mlp.gelu.multiplier", 0, std::int32_t{-65536}); }},
  };
  const std::map<std::string, TensorData> kept = tensors_;
  for (const Case& spoilt : cases) {
    spoilt.spoil(*this);
    expect_error(spoilt.name);
    tensors_ = kept;
  }
  EXPECT_EQ(load_integer_vit(write()).name, "vit17");
}

TEST_F(HostilePostNormModel, IdentityThatWouldAddTheStreamUnscaled) {
  set("blocks.1.attn.identity.multiplier", 0, std::int32_t{0});
  expect_error("blocks.1.attn.identity.multiplier: 0, expected 1 to 65535");
}

/// Sets SYSTOLE_DATA for the time of a test.
class DataDirectory {
 public:
  explicit DataDirectory(const std::string& path) { ::setenv("SYSTOLE_DATA", path.c_str(), 1); }
  ~DataDirectory() { ::unsetenv("SYSTOLE_DATA"); }
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;
};

TEST(ModelFiles, FindsTheEmbeddedModels) {
  std::vector<std::string> expected(kVisionModels.begin(), kVisionModels.end());
  expected.insert(expected.end(), kSparseModels.begin(), kSparseModels.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(model_names(), expected);
  EXPECT_EQ(load_integer_vit(find_model("vit65")).name, "vit65");
  EXPECT_EQ(load_integer_vit(find_model("vit65-sparse90")).name, "vit65-sparse90");
  EXPECT_EQ(find_checkpoint("vit65"), models_directory() + "/vit65.safetensors");
}

TEST(ModelFiles, TakesPathsAsTheyAre) {
  EXPECT_EQ(find_model("./here"), "./here");
  EXPECT_EQ(find_model("mine.safetensors"), "mine.safetensors");
}

TEST(ModelFiles, UnknownNameListsWhatExists) {
  const std::string text = input_error_of([] { static_cast<void>(find_model("vit\n18")); });
  EXPECT_NE(text.find("vit17, vit17-post, vit65"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(ModelFiles, EnvironmentNamesAnotherDirectory) {
  const TempDirectory directory;
  const DataDirectory data(directory.path());
  EXPECT_EQ(models_directory(), directory.path("models"));
  EXPECT_TRUE(model_names().empty());
  EXPECT_NE(input_error_of([] {
              static_cast<void>(find_model("vit17"));
            }).find("there are no models in " + directory.path("models")),
            std::string::npos);
}

}  // namespace
}  // namespace systole::model

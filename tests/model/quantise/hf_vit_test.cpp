#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "model/format/safetensors.h"
#include "model/integer/integer_model.h"
#include "model/quantise/quantiser.h"
#include "tests/model/tiny_pictures.h"
#include "tests/model/tiny_vit.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_directory.h"

namespace systole::model {
namespace {

/// The tensors of a timm checkpoint under Hugging Face's names.
TinyVit renamed(const TinyVit& timm, const std::string& prefix) {
  static const std::map<std::string, std::string> names = {
      {"patch_embed.proj", "embeddings.patch_embeddings.projection"},
      {"blocks.0.norm1", "encoder.layer.0.layernorm_before"},
      {"blocks.0.norm2", "encoder.layer.0.layernorm_after"},
      {"blocks.0.attn.proj", "encoder.layer.0.attention.output.dense"},
      {"blocks.0.mlp.fc1", "encoder.layer.0.intermediate.dense"},
      {"blocks.0.mlp.fc2", "encoder.layer.0.output.dense"},
      {"norm", "layernorm"}};
  TinyVit hf;
  hf.tensors.clear();
  hf.metadata = {{"h", timm.metadata.at("h")}};
  for (const TensorData& tensor : timm.tensors) {
    const std::size_t dot = tensor.name.rfind('.');
    const std::string layer = tensor.name.substr(0, dot);
    const std::string kind = dot == std::string::npos ? "" : tensor.name.substr(dot);
    TensorData copy = tensor;
    if (layer == "blocks.0.attn.qkv") {
      // A third of the rows each.
      copy.shape[0] /= 3;
      const std::size_t bytes = tensor.data.size() / 3;
      const char* const parts[] = {"query", "key", "value"};
      for (std::size_t i = 0; i < 3; ++i) {
        copy.name = prefix + "encoder.layer.0.attention.attention." + parts[i] + kind;
        const auto begin = tensor.data.begin() + static_cast<std::ptrdiff_t>(i * bytes);
        copy.data.assign(begin, begin + static_cast<std::ptrdiff_t>(bytes));
        hf.tensors.push_back(copy);
      }
      continue;
    }
    if (tensor.name == "cls_token") {
      copy.name = prefix + "embeddings.cls_token";
    } else if (tensor.name == "pos_embed") {
      copy.name = prefix + "embeddings.position_embeddings";
    } else if (layer == "head") {
      copy.name = "classifier" + kind;
    } else {
      copy.name = prefix + names.at(layer) + kind;
    }
    hf.tensors.push_back(copy);
  }
  return hf;
}

void expect_same_constants(const std::string& a_path, const std::string& b_path) {
  const Safetensors a = Safetensors::open(a_path), b = Safetensors::open(b_path);
  ASSERT_EQ(a.names(), b.names());
  for (const std::string& name : a.names()) {
    const TensorView &x = a.tensor(name), &y = b.expect(name, {x.dtype}, x.shape);
    EXPECT_EQ(std::memcmp(x.data, y.data, x.bytes), 0) << name;
  }
}

/// That of all names, for pictures of `channels`.
void expect_same_integer_model(const TinyVit& timm, std::size_t channels) {
  const TempDirectory directory;
  const auto integer = [&](const TinyVit& vit, const std::string& name) {
    const std::string path = directory.path(name + ".int8.safetensors");
    save_integer_vit(quantise(load_vit_checkpoint(vit.write(directory.path(name + ".safetensors"))),
                              tiny_pictures(channels)),
                     path);
    return path;
  };
  const std::string expected = integer(timm, "timm");
  for (const char* prefix : {"vit.", "deit.", ""}) {
    expect_same_constants(expected, integer(renamed(timm, prefix), "hf"));
  }
}

TEST(HfVit, GivesTheSameIntegerModelAsTimmsNames) { expect_same_integer_model(TinyVit(), 1); }

TEST(HfVit, GivesTheSameIntegerModelAsTimmsNamesInColour) {
  TinyVit timm;
  timm.metadata["channels"] = "3";
  timm.remove("patch_embed.proj.weight");
  timm.add("patch_embed.proj.weight", {8, 3, 2, 2}, 0.5);
  expect_same_integer_model(timm, 3);
}

TEST(HfVit, ErrorsNameTensorAndShape) {
  const TempDirectory directory;
  const std::string path = directory.path("vit.safetensors");
  const auto error = [&](const TinyVit& vit) {
    vit.write(path);
    return input_error_of([&] { return load_vit_checkpoint(path); });
  };
  TinyVit vit = renamed(TinyVit(), "vit.");
  vit.remove("vit.layernorm.bias");
  EXPECT_NE(error(vit).find("'vit.layernorm.bias': missing, expected shape [8]"),
            std::string::npos);
  vit = renamed(TinyVit(), "vit.");
  vit.remove("vit.embeddings.patch_embeddings.projection.weight");
  vit.add("vit.embeddings.patch_embeddings.projection.weight", {8, 17, 2, 2}, 1.0);
  EXPECT_NE(error(vit).find("projection.weight"), std::string::npos);
  vit = renamed(TinyVit(), "vit.");
  vit.remove("vit.embeddings.position_embeddings");
  vit.add("vit.embeddings.position_embeddings", {1, 6, 8}, 1.0);
  EXPECT_NE(error(vit).find("position_embeddings"), std::string::npos);
  vit = renamed(TinyVit(), "vit.");
  vit.remove("classifier.weight");
  EXPECT_NE(error(vit).find("classifier.weight"), std::string::npos);
}

}  // namespace
}  // namespace systole::model

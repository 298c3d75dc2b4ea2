#include "model/checkpoint/network_checkpoint.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/float/gpt.h"
#include "model/format/float_formats.h"
#include "support/network/tiny_text.h"
#include "tests/model/network/spoilt_network.h"
#include "tests/model/tiny_vit.h"
#include "tests/model/vision.h"
#include "tests/support/input_error.h"
#include "tests/support/paths.h"

namespace systole::model {
namespace {

using test::TinyText;

void expect_same(const FloatLinear& a, const FloatLinear& b) {
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_EQ(a.bias, b.bias);
}

void expect_same(const FloatNorm& a, const FloatNorm& b) {
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_EQ(a.bias, b.bias);
}

void expect_same(const std::vector<FloatBlock>& a, const std::vector<FloatBlock>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    expect_same(a[i].norm1, b[i].norm1);
    expect_same(a[i].norm2, b[i].norm2);
    expect_same(a[i].qkv, b[i].qkv);
    expect_same(a[i].proj, b[i].proj);
    expect_same(a[i].fc1, b[i].fc1);
    expect_same(a[i].fc2, b[i].fc2);
    expect_same(a[i].query_link.encoder, b[i].query_link.encoder);
    expect_same(a[i].key_link.decoder, b[i].key_link.decoder);
    EXPECT_EQ(a[i].keep, b[i].keep);
  }
}

void expect_same(const VitCheckpoint& a, const VitCheckpoint& b) {
  EXPECT_TRUE(a.shape == b.shape);
  EXPECT_EQ(a.norm_epsilon, b.norm_epsilon);
  expect_same(a.patch_embed, b.patch_embed);
  EXPECT_EQ(a.cls_token, b.cls_token);
  EXPECT_EQ(a.position, b.position);
  expect_same(a.blocks, b.blocks);
  expect_same(a.norm, b.norm);
  expect_same(a.head, b.head);
}

TEST(NetworkOfACheckpoint, HasEveryNumberOfAVisionModel) {
  const TempDirectory directory;
  for (const char* const name : {"vit17", "vit17-post", "vit65-sparse90", "vit65-sparse90-ae"}) {
    const VitCheckpoint real = load_vit_checkpoint(checkpoint_path(name));
    const std::string path = directory.path("n.safetensors");
    write_network(real, name, path);
    EXPECT_TRUE(reads_pictures(read_network_document(Safetensors::open(path))));
    expect_same(load_vit_checkpoint(path), real);
  }
}

/// What normalises bytes is an operator of the graph, or a file beside a checkpoint: either way the
/// patch embedding has it.
TEST(NetworkOfACheckpoint, FoldsTheNormalisationOfPictures) {
  const TempDirectory directory;
  TinyVit tiny;
  const std::string plain = directory.path("v.safetensors");
  tiny.write(plain);
  const std::string path = directory.path("n.safetensors");
  write_network(load_vit_checkpoint(plain), "tiny", path);
  directory.write("preprocessor_config.json",
                  R"({"rescale_factor": 0.01, "image_mean": [0.3], "image_std": [0.7]})");
  const VitCheckpoint expected = load_vit_checkpoint(plain);
  EXPECT_EQ(expected.shape.levels, kByteLevels);

  SpoiltNetwork network(path);
  network.document["tensors"]["pixels"] = {{"type", "f32"}, {"shape", {1, 4, 4}}};
  network.document["nodes"].push_back(
      {{"name", "pixels"},
       {"op", "normalise"},
       {"inputs", {"picture"}},
       {"outputs", {"pixels"}},
       {"attributes", {{"rescale", 0.01}, {"mean", {0.3}}, {"deviation", {0.7}}}}});
  network.node("patches")["inputs"] = {"pixels"};
  expect_same(load_vit_checkpoint(network.write(path)), expected);
  network.attributes("pixels")["mean"] = {0.3, 0.3};
  expect_contains(input_error_of([&] { return load_vit_checkpoint(network.write(path)); }),
                  "node 'pixels': attributes 'mean', 'deviation': expected a number for each");
}

TEST(NetworkOfACheckpoint, HasEveryNumberOfATextsHead) {
  const TempDirectory directory;
  TextCheckpoint real =
      load_text_checkpoint(TinyText::classifier().write(directory.path("t.safetensors")));
  for (const HeadFunction function : {HeadFunction::kTanh, HeadFunction::kRelu}) {
    real.head->function = function;
    const std::string path = directory.path("n.safetensors");
    write_network(real, {}, "tiny", path);
    const TextCheckpoint again = load_text_checkpoint(path);
    EXPECT_TRUE(again.shape == real.shape);
    ASSERT_TRUE(again.head);
    EXPECT_EQ(again.head->function, function);
    expect_same(again.head->dense, real.head->dense);
    expect_same(again.head->classes, real.head->classes);
    EXPECT_TRUE(read_text_checkpoint(NetworkFile(Safetensors::open(path))).head.empty());
  }
}

TEST(NetworkOfACheckpoint, HasEveryNumberOfAText) {
  for (const TinyText& file : {TinyText::bert(""), TinyText::gpt2("")}) {
    const TempDirectory directory;
    const TextCheckpoint real = load_text_checkpoint(file.write(directory.path("t.safetensors")));
    const std::string path = directory.path("n.safetensors");
    write_network(real, {}, "tiny", path);
    EXPECT_FALSE(reads_pictures(read_network_document(Safetensors::open(path))));
    const TextCheckpoint again = load_text_checkpoint(path);
    EXPECT_TRUE(again.shape == real.shape);
    EXPECT_EQ(again.norm_epsilon, real.norm_epsilon);
    EXPECT_EQ(again.gelu, real.gelu);
    EXPECT_EQ(again.word, real.word);
    EXPECT_EQ(again.position, real.position);
    EXPECT_EQ(again.token_type, real.token_type);
    expect_same(again.norm, real.norm);
    expect_same(again.blocks, real.blocks);
  }
}

TEST(NetworkOfACheckpoint, LeavesOutPositionsBeforeTheOffset) {
  const TempDirectory directory;
  const TextCheckpoint real =
      load_text_checkpoint(TinyText::bert("").write(directory.path("t.safetensors")));
  const std::string path = directory.path("n.safetensors");
  write_network(real, {}, "tiny", path);
  SpoiltNetwork network(path);
  network.attributes("position")["offset"] = 2;
  const TextCheckpoint again = load_text_checkpoint(network.write(path));
  EXPECT_EQ(again.shape.positions, real.shape.positions - 2);
  EXPECT_TRUE(std::equal(again.position.begin(), again.position.end(),
                         real.position.begin() + 2 * real.shape.encoder.width));
}

TEST(NetworkOfACheckpoint, DecodesScaledCodes) {
  const TempDirectory directory;
  const TextCheckpoint real =
      load_text_checkpoint(TinyText::bert("").write(directory.path("t.safetensors")));
  const std::string path = directory.path("n.safetensors");
  write_network(real, {}, "tiny", path);
  SpoiltNetwork network(path);
  const std::size_t rows = real.shape.vocabulary, width = real.shape.encoder.width;
  std::vector<std::int8_t> codes(rows * width);
  std::vector<float> by_row(rows), by_column(width);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::int8_t>(i % 251);
  for (std::size_t i = 0; i < rows; ++i) by_row[i] = 0.25F + 0.1F * static_cast<float>(i);
  for (std::size_t i = 0; i < width; ++i) by_column[i] = 0.5F + 0.1F * static_cast<float>(i);
  network.set(make_tensor("word.table", FileDtype::kI8, {rows, width}, codes));
  const auto expect_scaled = [&](const auto& scale_at) {
    const TextCheckpoint again = load_text_checkpoint(network.write(path));
    for (std::size_t i = 0; i < codes.size(); ++i) {
      ASSERT_EQ(again.word[i], static_cast<float>(codes[i]) * scale_at(i)) << i;
    }
  };
  expect_contains(input_error_of([&] { return load_text_checkpoint(network.write(path)); }),
                  "dtype is I8, expected F32 or F16 or BF16 or F64, or I8 with a scale");
  network.document["tensors"]["word.table"] = {{"scale", 0.5}};
  expect_scaled([](std::size_t) { return 0.5F; });
  network.set(make_tensor("scales", FileDtype::kF32, {rows}, by_row));
  network.document["tensors"]["word.table"] = {{"scale", {{"axis", 0}, {"values", "scales"}}}};
  expect_scaled([&](std::size_t i) { return by_row[i / width]; });
  network.set(make_tensor("scales", FileDtype::kF32, {width}, by_column));
  network.document["tensors"]["word.table"] = {{"scale", {{"axis", 1}, {"values", "scales"}}}};
  expect_scaled([&](std::size_t i) { return by_column[i % width]; });
}

TEST(NetworkOfACheckpoint, HasTheGeneratorWithItsHead) {
  const TempDirectory directory;
  const std::string kjv = source_path("traces/models/kjv.f16.safetensors");
  const Gpt real = load_gpt(kjv);
  const TextCheckpoint text = load_text_checkpoint(kjv);
  std::vector<double> head;
  for (const hw::Half value : real.head()) head.push_back(f16_to_float(value.bits));
  const std::string path = directory.path("n.safetensors");
  write_network(text, head, "kjv", path);
  const Gpt again = load_gpt(path);
  EXPECT_TRUE(again.shape == real.shape);
  EXPECT_EQ(again.word, real.word);
  EXPECT_EQ(again.position, real.position);
  EXPECT_EQ(again.untied, real.untied);
  EXPECT_EQ(again.norm.weight, real.norm.weight);
  ASSERT_EQ(again.layers.size(), real.layers.size());
  for (std::size_t i = 0; i < real.layers.size(); ++i) {
    EXPECT_EQ(again.layers[i].query.weight, real.layers[i].query.weight);
    EXPECT_EQ(again.layers[i].key.bias, real.layers[i].key.bias);
    EXPECT_EQ(again.layers[i].value.weight, real.layers[i].value.weight);
    EXPECT_EQ(again.layers[i].fc1.weight, real.layers[i].fc1.weight);
    EXPECT_EQ(again.layers[i].fc2.weight, real.layers[i].fc2.weight);
  }
  EXPECT_EQ(read_text_checkpoint(NetworkFile(Safetensors::open(path))).head, head);
}

TEST(NetworkOfACheckpoint, IsNotWhatItIsNot) {
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  write_network(load_vit_checkpoint(checkpoint_path("vit17")), "vit17", path);
  expect_contains(input_error_of([&] { return load_text_checkpoint(path); }), path + ": node ");
  SpoiltNetwork network(path);
  network.attributes("blocks.0.norm1")["epsilon"] = 1e-3;
  expect_contains(input_error_of([&] { return load_vit_checkpoint(network.write(path)); }),
                  "node 'blocks.0.norm1': attribute 'epsilon': is not that of the other");
  network.attributes("blocks.0.norm1")["epsilon"] = 1e-6;
  network.attributes("blocks.0.mlp.gelu")["form"] = "tanh";
  expect_contains(input_error_of([&] { return load_vit_checkpoint(network.write(path)); }),
                  "node 'blocks.0.mlp.gelu': attribute 'form': is not that of the other gelus");
}

}  // namespace
}  // namespace systole::model

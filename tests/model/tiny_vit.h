#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "model/safetensors_writer.h"

namespace systole::model {

/// A checkpoint file in the making: one block of width 8 on 4 x 4 pictures, with seeded weights.
/// Tests spoil parts of it before they write it.
struct TinyVit {
  std::map<std::string, std::string> metadata = {
      {"img", "4"},   {"patch", "2"}, {"d", "8"},    {"h", "2"},  {"L", "1"},
      {"ratio", "2"}, {"ncls", "3"},  {"post", "0"}, {"ae", "0"}, {"up", "1"}};
  std::vector<TensorData> tensors;

  TinyVit() {
    add("patch_embed.proj.weight", {8, 1, 2, 2}, 0.5);
    add("patch_embed.proj.bias", {8}, 0.1);
    add("cls_token", {1, 1, 8}, 0.5);
    add("pos_embed", {1, 5, 8}, 0.5);
    for (const std::string norm : {"blocks.0.norm1", "blocks.0.norm2", "norm"}) {
      add(norm + ".weight", {8}, 0.5, 1.0);
      add(norm + ".bias", {8}, 0.2);
    }
    layer("blocks.0.attn.qkv", 24, 8);
    layer("blocks.0.attn.proj", 8, 8);
    layer("blocks.0.mlp.fc1", 16, 8);
    layer("blocks.0.mlp.fc2", 8, 16);
    layer("head", 3, 8);
  }

  /// An auto-encoder across heads on Q and K, from 2 heads to 1.
  void add_auto_encoder() {
    metadata["ae"] = "1";
    for (const std::string operand : {"q", "k"}) {
      layer("blocks.0.attn.encoder_" + operand, 1, 2);
      layer("blocks.0.attn.decoder_" + operand, 2, 1);
    }
  }

  /// A mask for 2 heads of 5 tokens; bit k of a row is key k.
  void add_mask(const std::vector<std::uint8_t>& rows) {
    tensors.push_back(make_tensor("blocks.0.attn.keep_mask", FileDtype::kU8, {2, 5, 1}, rows));
  }

  TensorData& tensor(const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const TensorData& t) { return t.name == name; });
  }

  /// All elements of a tensor times `factor`.
  void scale(const std::string& name, float factor) {
    TensorData& data = tensor(name);
    std::vector<float> values(data.data.size() / sizeof(float));
    std::memcpy(values.data(), data.data.data(), data.data.size());
    for (float& value : values) value *= factor;
    std::memcpy(data.data.data(), values.data(), data.data.size());
  }

  void set(const std::string& name, std::size_t index, float value) {
    std::memcpy(tensor(name).data.data() + index * sizeof value, &value, sizeof value);
  }

  void remove(const std::string& name) {
    tensors.erase(tensors.begin() + (&tensor(name) - tensors.data()));
  }

  const std::string& write(const std::string& path) const {
    write_safetensors(path, tensors, metadata);
    return path;
  }

  void add(const std::string& name, const std::vector<std::size_t>& shape, double spread,
           double centre = 0.0) {
    std::size_t count = 1;
    for (const std::size_t n : shape) count *= n;
    std::vector<float> values(count);
    for (float& value : values) {
      const double uniform = static_cast<double>(engine_()) / 0xffffffff;
      value = static_cast<float>(centre + spread * (2.0 * uniform - 1.0));
    }
    tensors.push_back(make_tensor(name, FileDtype::kF32, shape, values));
  }

 private:
  void layer(const std::string& name, std::size_t outputs, std::size_t inputs) {
    add(name + ".weight", {outputs, inputs}, 0.5);
    add(name + ".bias", {outputs}, 0.2);
  }

  std::mt19937 engine_{7};
};

}  // namespace systole::model

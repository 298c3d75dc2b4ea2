#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "model/safetensors_writer.h"

namespace systole::test {

/// A checkpoint of a small text network with seeded weights under Hugging Face's names: two blocks
/// of width 12 in 3 heads, MLP 20, vocabulary 30, 11 positions. Tests spoil parts of it.
class TinyText {
 public:
  static constexpr std::size_t kWidth = 12, kHeads = 3, kHidden = 20, kVocabulary = 30,
                               kPositions = 11, kLayers = 2;

  static TinyText bert(const std::string& prefix = "bert.") {
    TinyText text;
    const std::string embeddings = prefix + "embeddings.";
    text.add(embeddings + "word_embeddings.weight", {kVocabulary, kWidth}, 1.0);
    text.add(embeddings + "position_embeddings.weight", {kPositions, kWidth}, 0.5);
    text.add(embeddings + "token_type_embeddings.weight", {2, kWidth}, 0.3);
    text.norm(embeddings + "LayerNorm");
    for (std::size_t i = 0; i < kLayers; ++i) {
      const std::string layer = prefix + "encoder.layer." + std::to_string(i) + ".";
      for (const char* part : {"query", "key", "value"}) {
        text.linear(layer + "attention.self." + part, kWidth, kWidth);
      }
      text.linear(layer + "attention.output.dense", kWidth, kWidth);
      text.norm(layer + "attention.output.LayerNorm");
      text.linear(layer + "intermediate.dense", kHidden, kWidth);
      text.linear(layer + "output.dense", kWidth, kHidden);
      text.norm(layer + "output.LayerNorm");
    }
    return text;
  }

  static TinyText gpt2(const std::string& prefix = "transformer.") {
    TinyText text;
    text.add(prefix + "wte.weight", {kVocabulary, kWidth}, 1.0);
    text.add(prefix + "wpe.weight", {kPositions, kWidth}, 0.5);
    for (std::size_t i = 0; i < kLayers; ++i) {
      const std::string layer = prefix + "h." + std::to_string(i) + ".";
      text.norm(layer + "ln_1");
      // Conv1D: [inputs, outputs].
      text.conv1d(layer + "attn.c_attn", 3 * kWidth, kWidth);
      text.conv1d(layer + "attn.c_proj", kWidth, kWidth);
      text.norm(layer + "ln_2");
      text.conv1d(layer + "mlp.c_fc", kHidden, kWidth);
      text.conv1d(layer + "mlp.c_proj", kWidth, kHidden);
    }
    text.norm(prefix + "ln_f");
    return text;
  }

  std::map<std::string, std::string> metadata = {{"h", std::to_string(kHeads)}};
  std::vector<model::TensorData> tensors;

  [[nodiscard]] std::vector<double> values(const std::string& name) const {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const auto& tensor) { return tensor.name == name; });
    std::vector<float> values(found->data.size() / sizeof(float));
    std::memcpy(values.data(), found->data.data(), found->data.size());
    return {values.begin(), values.end()};
  }

  void remove(const std::string& name) {
    tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                                 [&](const auto& tensor) { return tensor.name == name; }),
                  tensors.end());
  }

  void add(const std::string& name, const std::vector<std::size_t>& shape, double spread,
           double centre = 0.0) {
    std::size_t count = 1;
    for (const std::size_t n : shape) count *= n;
    std::vector<float> drawn(count);
    for (float& value : drawn) {
      const double uniform = static_cast<double>(engine_()) / 0xffffffff;
      value = static_cast<float>(centre + spread * (2.0 * uniform - 1.0));
    }
    tensors.push_back(model::make_tensor(name, model::FileDtype::kF32, shape, drawn));
  }

  const std::string& write(const std::string& path) const {
    model::write_safetensors(path, tensors, metadata);
    return path;
  }

  /// A file of `count` texts of `length` seeded token ids.
  static const std::string& write_ids(const std::string& path, std::size_t count,
                                      std::size_t length, std::uint32_t seed = 3) {
    std::mt19937 engine(seed);
    std::vector<std::int64_t> ids(count * length);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(engine() % kVocabulary);
    model::write_safetensors(
        path, {model::make_tensor("input_ids", model::FileDtype::kI64, {count, length}, ids)});
    return path;
  }

 private:
  void norm(const std::string& name) {
    add(name + ".weight", {kWidth}, 0.3, 1.0);
    add(name + ".bias", {kWidth}, 0.2);
  }
  void linear(const std::string& name, std::size_t outputs, std::size_t inputs) {
    add(name + ".weight", {outputs, inputs}, 0.5);
    add(name + ".bias", {outputs}, 0.2);
  }
  void conv1d(const std::string& name, std::size_t outputs, std::size_t inputs) {
    add(name + ".weight", {inputs, outputs}, 0.5);
    add(name + ".bias", {outputs}, 0.2);
  }

  std::mt19937 engine_{7};
};

}  // namespace systole::test

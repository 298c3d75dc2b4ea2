#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/format/safetensors_writer.h"
#include "tests/support/random/seeded_tensors.h"

namespace systole::test {

/// A checkpoint of a small vision transformer with seeded weights under Hugging Face's names: two
/// blocks of width 12 in 3 heads, MLP 24, 300 classes, which no byte can count.
class TinyHfVit : public SeededTensors {
 public:
  static constexpr std::size_t kWidth = 12, kHeads = 3, kHidden = 24, kLayers = 2, kClasses = 300;

  /// For pictures of `side` x `side` pixels.
  explicit TinyHfVit(std::size_t side = 8, std::size_t patch = 4, std::size_t channels = 3,
                     std::string names = "vit.")
      : prefix(std::move(names)), side_(side), channels_(channels) {
    metadata = {{"h", std::to_string(kHeads)}};
    const std::string embeddings = prefix + "embeddings.";
    const std::size_t tokens = (side / patch) * (side / patch) + 1;
    add(embeddings + "cls_token", {1, 1, kWidth}, 0.5);
    add(embeddings + "position_embeddings", {1, tokens, kWidth}, 0.5);
    add(embeddings + "patch_embeddings.projection.weight", {kWidth, channels, patch, patch}, 0.2);
    add(embeddings + "patch_embeddings.projection.bias", {kWidth}, 0.2);
    for (std::size_t i = 0; i < kLayers; ++i) {
      const std::string layer = prefix + "encoder.layer." + std::to_string(i) + ".";
      for (const char* part : {"query", "key", "value"}) {
        add_linear(layer + "attention.attention." + part, kWidth, kWidth);
      }
      add_linear(layer + "attention.output.dense", kWidth, kWidth);
      add_norm(layer + "layernorm_before", kWidth);
      add_norm(layer + "layernorm_after", kWidth);
      add_linear(layer + "intermediate.dense", kHidden, kWidth);
      add_linear(layer + "output.dense", kWidth, kHidden);
    }
    add_norm(prefix + "layernorm", kWidth);
    add_linear("classifier", kClasses, kWidth);
  }

  /// `count` pictures of seeded bytes, darkest and brightest among them.
  [[nodiscard]] std::vector<std::uint8_t> pictures(std::size_t count) const {
    std::mt19937 engine(5);
    std::vector<std::uint8_t> bytes(count * channels_ * side_ * side_);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(engine());
    bytes.front() = 0;
    bytes.back() = 255;
    return bytes;
  }

  /// A file of them.
  const std::string& write_pictures(const std::string& path, std::size_t count,
                                    const std::vector<std::int64_t>& labels = {}) const {
    std::vector<model::TensorData> data = {make_tensor(
        "images", model::FileDtype::kU8, {count, channels_, side_, side_}, pictures(count))};
    if (!labels.empty()) {
      data.push_back(make_tensor("labels", model::FileDtype::kI64, {labels.size()}, labels));
    }
    model::write_safetensors(path, data);
    return path;
  }

  std::string prefix;  ///< of the tensors but the classifier's

  [[nodiscard]] std::size_t side() const { return side_; }

 private:
  std::size_t side_, channels_;
};

}  // namespace systole::test

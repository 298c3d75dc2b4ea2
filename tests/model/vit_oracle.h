#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/network/tiny_hf_vit.h"
#include "tests/model/plain_layers.h"

namespace systole::model {

/// A ViT of Hugging Face's names from the bytes of a picture to its logits, in plain loops.
class VitOracle : public PlainLayers {
 public:
  /// Byte x of a channel is (x * rescale - mean) / deviation to the network.
  struct Channel {
    double rescale, mean, deviation;
  };

  explicit VitOracle(const test::TinyHfVit& vit)
      : PlainLayers(vit, test::TinyHfVit::kHeads), vit_(vit) {}

  /// `picture` is [channels, side, side].
  [[nodiscard]] std::vector<double> logits(const std::uint8_t* picture,
                                           const std::vector<Channel>& channels) const {
    const std::string& prefix = vit_.prefix;
    Matrix x = embed(picture, channels);
    for (std::size_t i = 0; i < test::TinyHfVit::kLayers; ++i) {
      const std::string layer = prefix + "encoder.layer." + std::to_string(i) + ".";
      const std::string self = layer + "attention.attention.";
      const Matrix in = norm(x, layer + "layernorm_before", kEpsilon);
      const Matrix context = attention(linear(in, self + "query"), linear(in, self + "key"),
                                       linear(in, self + "value"), false);
      x = sum(x, linear(context, layer + "attention.output.dense"));
      const Matrix hidden =
          linear(norm(x, layer + "layernorm_after", kEpsilon), layer + "intermediate.dense");
      x = sum(x, linear(gelu(hidden), layer + "output.dense"));
    }
    return linear(norm({x[0]}, prefix + "layernorm", kEpsilon), "classifier")[0];
  }

 private:
  static constexpr std::size_t kWidth = test::TinyHfVit::kWidth;
  static constexpr double kEpsilon = 1e-6;

  /// The convolution whose stride is its size, the class token first, positions.
  [[nodiscard]] Matrix embed(const std::uint8_t* picture,
                             const std::vector<Channel>& channels) const {
    const std::string embeddings = vit_.prefix + "embeddings.";
    const auto weight = vit_.values(embeddings + "patch_embeddings.projection.weight");
    const auto bias = vit_.values(embeddings + "patch_embeddings.projection.bias");
    const auto position = vit_.values(embeddings + "position_embeddings");
    Matrix x{vit_.values(embeddings + "cls_token")};
    const std::size_t side = vit_.side();
    const auto patch = static_cast<std::size_t>(
        std::lround(std::sqrt(weight.size() / (kWidth * channels.size()))));
    for (std::size_t top = 0; top < side; top += patch) {
      for (std::size_t left = 0; left < side; left += patch) {
        std::vector<double> row = bias;
        for (std::size_t o = 0; o < kWidth; ++o) {
          const double* w = &weight[o * channels.size() * patch * patch];
          for (std::size_t c = 0; c < channels.size(); ++c) {
            for (std::size_t i = 0; i < patch * patch; ++i, ++w) {
              const std::size_t y = top + i / patch, column = left + i % patch;
              const double byte = picture[(c * side + y) * side + column];
              row[o] +=
                  *w * (byte * channels[c].rescale - channels[c].mean) / channels[c].deviation;
            }
          }
        }
        x.push_back(row);
      }
    }
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t i = 0; i < kWidth; ++i) x[t][i] += position[t * kWidth + i];
    }
    return x;
  }

  const test::TinyHfVit& vit_;
};

}  // namespace systole::model

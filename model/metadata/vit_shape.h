#pragma once

#include <cstdint>

#include "model/data/picture_format.h"

namespace systole::model {

/// A stack of Transformer blocks. All counts are positive and `heads` divides `width`.
struct EncoderShape {
  std::uint32_t layers = 0;
  std::uint32_t width = 0;  ///< of the residual stream
  std::uint32_t heads = 0;
  std::uint32_t hidden = 0;  ///< of the MLP
  bool post_norm = false;    ///< LayerNorm after the residual addition (BERT) or before (ViT)
  /// Heads that an auto-encoder across heads compresses Q and K to, less than `heads`; 0: none.
  std::uint32_t latent_heads = 0;
  /// A token attends to itself and to those before it (GPT-2).
  bool causal = false;

  [[nodiscard]] std::uint32_t head_width() const { return width / heads; }
};

/// An encoder that classifies square images: patch embedding, class token, position
/// table, blocks, final norm, linear head.
struct VitShape {
  EncoderShape encoder;
  std::uint32_t image = 0;  ///< pixels per side, after upsampling
  std::uint32_t patch = 0;  ///< pixels per side; divides `image`
  std::uint32_t classes = 0;
  std::uint32_t upsample = 1;  ///< how much larger `image` is than the pictures of the data set
  std::uint32_t channels = 1;
  std::uint32_t levels = kDigitLevels;  ///< of a sample: kDigitLevels or kByteLevels

  [[nodiscard]] std::uint32_t patches() const { return (image / patch) * (image / patch); }
  [[nodiscard]] std::uint32_t tokens() const { return patches() + 1; }
  /// Inputs of the patch embedding.
  [[nodiscard]] std::uint32_t patch_samples() const { return channels * patch * patch; }
  [[nodiscard]] PictureFormat pictures() const {
    return {channels, image / upsample, levels, classes};
  }
};

[[nodiscard]] inline bool operator==(const EncoderShape& a, const EncoderShape& b) {
  return a.layers == b.layers && a.width == b.width && a.heads == b.heads && a.hidden == b.hidden &&
         a.post_norm == b.post_norm && a.latent_heads == b.latent_heads && a.causal == b.causal;
}

[[nodiscard]] inline bool operator==(const VitShape& a, const VitShape& b) {
  return a.encoder == b.encoder && a.image == b.image && a.patch == b.patch &&
         a.classes == b.classes && a.upsample == b.upsample && a.channels == b.channels &&
         a.levels == b.levels;
}

}  // namespace systole::model

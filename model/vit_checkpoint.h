#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/vit_shape.h"

namespace systole::model {

/// y = W x + bias.
struct FloatLinear {
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
  std::vector<double> weight;  ///< [outputs, inputs]
  std::vector<double> bias;    ///< [outputs]
};

struct FloatNorm {
  std::vector<double> weight;
  std::vector<double> bias;
};

/// The auto-encoder on Q or K, linear across heads and the same for every token and feature of a
/// head: latent[a] = sum over heads of encoder[a, h] x[h] + bias[a], decoded likewise.
struct FloatLink {
  FloatLinear encoder;  ///< [latent heads, heads]; 0 outputs once folded into `qkv`
  FloatLinear decoder;  ///< [heads, latent heads]
};

struct FloatBlock {
  FloatNorm norm1;
  /// Query, key and value, each head after head: 3 * width outputs, or, with folded encoders, the
  /// latent heads of query and key and the width of value.
  FloatLinear qkv;
  FloatLink query_link, key_link;  ///< without auto-encoder: 0 outputs everywhere
  std::vector<std::uint8_t> keep;  ///< attention mask (model/keep_mask.h); empty: none
  FloatLinear proj;
  FloatNorm norm2;
  FloatLinear fc1;
  FloatLinear fc2;
};

/// Real-valued weights of a vision model.
struct VitCheckpoint {
  std::string path;
  VitShape shape;
  FloatLinear patch_embed;
  std::vector<double> cls_token;  ///< [width]
  std::vector<double> position;   ///< [tokens, width]
  std::vector<FloatBlock> blocks;
  FloatNorm norm;  ///< pre-norm: after the last block; post-norm: after the embedding
  FloatLinear head;
};

/// Added to the variance by every LayerNorm of timm's vision transformers.
inline constexpr double kNormEpsilon = 1e-6;

/// Loads a safetensors file with the tensor names of timm's vision transformers (DeiT); its
/// metadata give the shape (model/vit_metadata.h). With an auto-encoder every block has besides
/// "attn.encoder_q", "attn.decoder_q", "attn.encoder_k" and "attn.decoder_k", weight and bias. A
/// block may have a mask, "attn.keep_mask" (model/keep_mask.h).
///
/// Throws InputError if metadata or tensors are missing, contradict each other, are too many, or
/// hold a value that is not finite, and for a mask with a row that keeps no key.
[[nodiscard]] VitCheckpoint load_vit_checkpoint(const std::string& path);

}  // namespace systole::model

#pragma once

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

struct FloatBlock {
  FloatNorm norm1;
  FloatLinear qkv;  ///< 3 * width outputs: query, key, value
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
/// metadata give the shape (model/vit_metadata.h). Throws InputError if metadata or tensors are
/// missing, contradict each other, are too many, or hold a value that is not finite.
[[nodiscard]] VitCheckpoint load_vit_checkpoint(const std::string& path);

}  // namespace systole::model

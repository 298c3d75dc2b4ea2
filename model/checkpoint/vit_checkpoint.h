#pragma once

#include <string>
#include <vector>

#include "model/checkpoint/float_layers.h"
#include "model/metadata/vit_shape.h"

namespace systole::model {

/// Added to the variance by every LayerNorm of timm's vision transformers.
inline constexpr double kNormEpsilon = 1e-6;

/// Real-valued weights of a vision model.
struct VitCheckpoint {
  std::string path;
  VitShape shape;
  double norm_epsilon = kNormEpsilon;  ///< added to the variance by every LayerNorm
  FloatLinear patch_embed;
  std::vector<double> cls_token;  ///< [width]
  std::vector<double> position;   ///< [tokens, width]
  std::vector<FloatBlock> blocks;
  FloatNorm norm;  ///< pre-norm: after the last block; post-norm: after the embedding
  FloatLinear head;
};

/// The integer input (model/data/image.h) that is 1 to the patch embedding.
inline constexpr double kInputSteps = 127.0;

/// Loads a safetensors file with the tensor names of timm's vision transformers (DeiT); its
/// metadata give the shape (model/metadata/vit_metadata.h). With an auto-encoder every block has
/// besides "attn.encoder_q", "attn.decoder_q", "attn.encoder_k" and "attn.decoder_k", weight and
/// bias. A block may have a mask, "attn.keep_mask" (model/checkpoint/keep_mask.h).
///
/// Or with the names of Hugging Face's ViTForImageClassification, with or without the prefix "vit."
/// ("deit."): then the tensors give the shape, except for the heads
/// (model/checkpoint/checkpoint_names.h), and the pictures are not enlarged unless the metadata say
/// "up".
///
/// What normalises bytes ("preprocessor_config.json" beside the file) is folded into the patch
/// embedding.
///
/// Or a network file (model/network/network_document.h) of such a network.
///
/// Throws InputError if metadata or tensors are missing, contradict each other, are too many, or
/// hold a value that is not finite, for a distilled network, and for a mask with a row that keeps
/// no key.
[[nodiscard]] VitCheckpoint load_vit_checkpoint(const std::string& path);

}  // namespace systole::model

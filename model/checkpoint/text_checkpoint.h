#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/checkpoint/float_layers.h"
#include "model/metadata/vit_shape.h"

namespace systole::model {

/// A text network: tokens and positions become vectors, Transformer blocks follow.
struct TextShape {
  EncoderShape encoder;
  std::uint32_t vocabulary = 0;
  std::uint32_t positions = 0;    ///< tokens of a text, at most
  std::uint32_t token_types = 0;  ///< numbered from 0; 0: the network has none (GPT-2)
};

// Wide enough for the published ones; beyond, sums and file offsets would need more care.
inline constexpr std::uint32_t kMaxTextLayers = 256;
inline constexpr std::uint32_t kMaxTextWidth = 1U << 14;
inline constexpr std::uint32_t kMaxTextHidden = 1U << 16;
inline constexpr std::uint32_t kMaxVocabulary = 1U << 20;
inline constexpr std::uint32_t kMaxPositions = 1U << 16;
inline constexpr std::uint32_t kMaxTokenTypes = 1U << 8;

[[nodiscard]] inline bool operator==(const TextShape& a, const TextShape& b) {
  return a.encoder == b.encoder && a.vocabulary == b.vocabulary && a.positions == b.positions &&
         a.token_types == b.token_types;
}

/// Real-valued weights of BERT or GPT-2.
struct TextCheckpoint {
  std::string path;
  TextShape shape;
  double norm_epsilon = 0.0;  ///< added to the variance by every LayerNorm
  GeluForm gelu = GeluForm::kErf;
  std::vector<double> word;        ///< [vocabulary, width]
  std::vector<double> position;    ///< [positions, width]; of BERT, token type 0 is added
  std::vector<double> token_type;  ///< [token_types, width], less that of type 0
  FloatNorm
      norm;  ///< post-norm (BERT): after the embedding; pre-norm (GPT-2): after the last block
  std::vector<FloatBlock> blocks;
};

/// Added to variances by BERT and by GPT-2, as their published configurations say.
inline constexpr double kBertNormEpsilon = 1e-12;
inline constexpr double kGpt2NormEpsilon = 1e-5;

/// Loads a safetensors file with the names of Hugging Face's BertModel or GPT2Model, with or
/// without the prefix "bert." or "transformer.". The tensors give the shape, except for the heads
/// (model/checkpoint/checkpoint_names.h). Poolers, heads for tasks and masks that the files carry
/// along are left out.
///
/// Throws InputError that names file, tensor and expected shape if one is missing or has another
/// shape, holds a value that is not finite, or is part of no such network.
[[nodiscard]] TextCheckpoint load_text_checkpoint(const std::string& path);

}  // namespace systole::model

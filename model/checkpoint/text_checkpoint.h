#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/checkpoint/checkpoint_reader.h"
#include "model/checkpoint/float_layers.h"
#include "model/metadata/text_shape.h"

namespace systole::model {

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
  std::optional<FloatTextHead> head;  ///< of a BERT that classifies texts
};

/// Added to variances by BERT and by GPT-2, as their published configurations say.
inline constexpr double kBertNormEpsilon = 1e-12;
inline constexpr double kGpt2NormEpsilon = 1e-5;

/// Loads a safetensors file with the names of Hugging Face's BertModel or GPT2Model, with or
/// without the prefix "bert." or "transformer.". The tensors give the shape, except for the heads
/// (model/checkpoint/checkpoint_names.h). A pooler and a classifier of two classes or more, as in
/// BertForSequenceClassification, are the head; other poolers, heads for tasks and masks that the
/// files carry along are left out.
///
/// Or a network file (model/network/network_document.h) of such a network.
///
/// Throws InputError that names file, tensor and expected shape if one is missing or has another
/// shape, holds a value that is not finite, or is part of no such network.
[[nodiscard]] TextCheckpoint load_text_checkpoint(const std::string& path);

/// Its parts: a network whose tensors begin with `prefix`. With `cross` the blocks of a GPT-2
/// attend to an encoder, too. `path` of the result is still missing.
[[nodiscard]] TextCheckpoint read_bert(CheckpointReader& reader, const std::string& prefix);
[[nodiscard]] TextCheckpoint read_gpt2(CheckpointReader& reader, const std::string& prefix,
                                       bool cross = false);

}  // namespace systole::model

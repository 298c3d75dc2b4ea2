#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/checkpoint/checkpoint_reader.h"
#include "model/checkpoint/text_checkpoint.h"

namespace systole::model {

/// How Hugging Face's GPT2Model calls its tensors. Layers and norms are without ".weight" and
/// ".bias".
struct Gpt2Names {
  /// `prefix`: "" or "transformer.".
  explicit Gpt2Names(const std::string& prefix);

  struct Layer {
    std::string norm1, qkv, proj, norm2, fc1, fc2;
    /// Of the attention to an encoder.
    std::string cross_norm, cross_query, cross_key_value, cross_proj;
  };
  [[nodiscard]] Layer layer(std::uint32_t index) const;

  std::string word, position;  ///< the two tables
  std::string norm;            ///< after the last layer
  std::string layers;          ///< what the names of all layers begin with
};

/// What the head for the next word is called, if a file has one; [vocabulary, width].
inline constexpr const char* kGpt2Head = "lm_head.weight";

/// The sizes of a text network by its two tables, [vocabulary, width] and [positions, width], and
/// the weight of the MLP's first layer, whose dimension `hidden_at` is the MLP's width; heads as of
/// checkpoint_heads(). Layers and layout are still missing.
[[nodiscard]] TextShape shape_of_tables(const CheckpointReader& reader, const std::string& word,
                                        const std::string& position, const std::string& mlp,
                                        std::size_t hidden_at);

/// The whole shape of a GPT-2.
[[nodiscard]] TextShape gpt2_shape(const CheckpointReader& reader, const Gpt2Names& names);

/// Leaves out the causal masks that the layers of published files carry as tables.
void skip_gpt2_masks(CheckpointReader& reader, const Gpt2Names& names, std::uint32_t layers);

/// Leaves out what files for a task have beside the text network, and buffers.
void skip_task_heads(CheckpointReader& reader, const std::string& prefix);

}  // namespace systole::model

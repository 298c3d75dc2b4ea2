#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/format/safetensors.h"

namespace systole::model {

/// Whose names the tensors of a checkpoint have.
enum class CheckpointNames {
  kTimmVit,  ///< timm: blocks.0.attn.qkv.weight
  kHfVit,    ///< Hugging Face: [vit. or deit.]encoder.layer.0.attention.attention.query.weight
  kBert,     ///< [bert.]encoder.layer.0.attention.self.query.weight
  kGpt2,     ///< [transformer.]h.0.attn.c_attn.weight
};

struct CheckpointFamily {
  CheckpointNames names = CheckpointNames::kTimmVit;
  std::string prefix;  ///< of the tensors of the network itself, "" or with its dot
};

/// By the names of the first block; nothing if there is none.
[[nodiscard]] std::optional<CheckpointFamily> find_family(const Safetensors& file);
/// The same; throws InputError that lists what would be one if there is
/// none.
[[nodiscard]] CheckpointFamily checkpoint_family(const Safetensors& file);

[[nodiscard]] inline bool is_text(const CheckpointFamily& family) {
  return family.names == CheckpointNames::kBert || family.names == CheckpointNames::kGpt2;
}

/// Whether a real-valued checkpoint, a network file included, is one of a text network; throws
/// InputError for a network file that cannot be read.
[[nodiscard]] bool is_text_checkpoint(const Safetensors& file);

/// "BERT", "GPT-2", "ViT".
[[nodiscard]] const char* family_name(CheckpointNames names);

/// Blocks whose first tensor "PREFIX<i>SUFFIX" is there, from 0 without a gap, at most 256.
[[nodiscard]] std::uint32_t count_blocks(const Safetensors& file, const std::string& prefix,
                                         const std::string& suffix);

/// Heads of a checkpoint whose tensors do not tell: metadata "h" or "n_head", else
/// "num_attention_heads" or "n_head" of config.json in its directory, else as many as have 64
/// features, which all published BERT, GPT-2 and ViT models have. Throws InputError if they do not
/// divide the width.
[[nodiscard]] std::uint32_t checkpoint_heads(const Safetensors& file, std::uint32_t width);

}  // namespace systole::model

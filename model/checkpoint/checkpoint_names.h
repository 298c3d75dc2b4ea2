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
  /// BERT and GPT-2: decoder.transformer.h.0.crossattention.c_attn.weight
  kSeq2Seq,
};

struct CheckpointFamily {
  CheckpointNames names = CheckpointNames::kTimmVit;
  std::string prefix;  ///< of the tensors of the network itself, "" or with its dot
};

/// Tokens of a decoder that mean no text.
struct Seq2SeqTokens {
  std::int32_t begin = 0;  ///< that the first token follows
  std::int32_t end = 0;    ///< that ends a text
};

/// By the names of the first block; nothing if there is none.
[[nodiscard]] std::optional<CheckpointFamily> find_family(const Safetensors& file);
/// The same; throws InputError that lists what would be one if there is
/// none.
[[nodiscard]] CheckpointFamily checkpoint_family(const Safetensors& file);

[[nodiscard]] inline bool is_text(const CheckpointFamily& family) {
  return family.names == CheckpointNames::kBert || family.names == CheckpointNames::kGpt2;
}

/// Whether the names are those of an encoder-decoder.
[[nodiscard]] bool is_seq2seq_checkpoint(const Safetensors& file);

/// Whether a real-valued checkpoint, a network file included, is one of a text network; throws
/// InputError for a network file that cannot be read.
[[nodiscard]] bool is_text_checkpoint(const Safetensors& file);

/// "BERT", "GPT-2", "ViT", "BERT to GPT-2".
[[nodiscard]] const char* family_name(CheckpointNames names);

/// Blocks whose first tensor "PREFIX<i>SUFFIX" is there, from 0 without a gap, at most 256.
[[nodiscard]] std::uint32_t count_blocks(const Safetensors& file, const std::string& prefix,
                                         const std::string& suffix);

/// Heads of a checkpoint whose tensors do not tell: metadata "h" or "n_head", else
/// "num_attention_heads" or "n_head" of config.json in its directory, else as many as have 64
/// features, which all published BERT, GPT-2 and ViT models have. Throws InputError if they do not
/// divide the width. Of a part of an encoder-decoder, the numbers of config.json are those of the
/// object `part` in it.
[[nodiscard]] std::uint32_t checkpoint_heads(const Safetensors& file, std::uint32_t width,
                                             const std::string& part = {});

/// The part of an encoder-decoder that a tensor belongs to, "encoder" or "decoder"; else empty.
[[nodiscard]] std::string part_of_encoder_decoder(const std::string& tensor);

}  // namespace systole::model

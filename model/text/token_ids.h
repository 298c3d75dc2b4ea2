#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/checkpoint/text_checkpoint.h"
#include "model/metadata/llama_shape.h"

namespace systole::model {

/// A text as numbers of a vocabulary.
struct TokenText {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> types;  ///< of the tokens; empty: all 0
  std::size_t valid = 0;            ///< tokens before the padding at its end

  /// Without the padding.
  [[nodiscard]] TokenText trimmed() const;
};

/// Texts of the same length, padding included.
struct TokenIds {
  std::size_t count = 0, length = 0;
  std::vector<std::int32_t> ids;    ///< [count, length]
  std::vector<std::int32_t> types;  ///< [count, length]; empty: all 0
  std::vector<std::size_t> valid;   ///< [count] tokens of each that are no padding, 1 to length
  /// [count] classes; empty: not known, or the network classifies nothing.
  std::vector<std::uint32_t> labels;

  [[nodiscard]] TokenText text(std::size_t index) const;
};

/// Of a safetensors file, tensors [count, length] of type I64, I32, I16, U16 or U8:
/// - "input_ids": 0 to the vocabulary - 1;
/// - "attention_mask", not required, or of BOOL: 1 for every token and 0 for the padding at the end
///   of a text, which no token attends to;
/// - "token_type_ids", not required: 0 to the network's token types - 1;
/// and of a network that classifies "labels" [count] of the same types, not required: 0 to its
/// classes - 1.
/// Throws InputError if the first is missing, if one has another shape, type or value, if it has
/// nothing in it, and for texts longer than the network has positions.
[[nodiscard]] TokenIds load_token_ids(const std::string& path, const TextShape& shape);

/// Texts and what an encoder-decoder makes of them.
struct TextPairs {
  TokenIds source;  ///< what the encoder reads
  TokenIds target;  ///< what the decoder reads, from the token that begins a text on
};

/// load_token_ids(), and of the same file the targets: "decoder_input_ids", and, not required,
/// "decoder_attention_mask". Each of them begins with `begin`, and there are as many as of the
/// others. Throws InputError as load_token_ids() does.
[[nodiscard]] TextPairs load_text_pairs(const std::string& path, const TextShape& encoder,
                                        const TextShape& decoder, std::int32_t begin);

/// What load_token_ids() has to know of a Llama.
[[nodiscard]] TextShape llama_text_shape(const LlamaShape& shape);

/// Throws std::invalid_argument unless `types` is empty, or has a type of the network for each id.
void require_token_types(const TextShape& shape, const std::vector<std::int32_t>& ids,
                         const std::vector<std::int32_t>& types);

/// The bytes of a text: of the U8 tensor "valid" [length] if `path` ends in ".safetensors", else of
/// the file itself. Throws InputError that names the file if it cannot be read or is empty.
[[nodiscard]] std::string load_text(const std::string& path);

}  // namespace systole::model

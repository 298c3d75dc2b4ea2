#pragma once

#include <map>
#include <string>

#include "model/checkpoint/text_checkpoint.h"
#include "model/format/safetensors.h"

namespace systole::model {

/// The shape of a text network in a file's metadata: L (blocks), d (width), h (heads), hidden, post
/// (1: post-norm), causal (1: a token attends to itself and to earlier ones), vocabulary,
/// positions, token_types. A file without the last has type 0 alone, of an encoder, or none. Throws
/// InputError if a key is missing, out of range, or contradicts another.
[[nodiscard]] TextShape read_text_shape(const Safetensors& file);

/// The inverse.
[[nodiscard]] std::map<std::string, std::string> text_shape_metadata(const TextShape& shape);

}  // namespace systole::model

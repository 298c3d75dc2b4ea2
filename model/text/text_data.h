#pragma once

#include <string>

namespace systole::model {

/// The bytes of a text: of the U8 tensor "valid" [length] if `path` ends in ".safetensors", else of
/// the file itself. Throws InputError that names the file if it cannot be read or is empty.
[[nodiscard]] std::string load_text(const std::string& path);

}  // namespace systole::model

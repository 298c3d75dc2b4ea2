#pragma once

#include <cstdint>
#include <string>

#include "model/format/safetensors.h"

namespace systole::model {

/// The free text under `key`; InputError if the file has none.
[[nodiscard]] std::string metadata_text(const Safetensors& file, const std::string& key);

/// The decimal number under `key`; InputError that names the key if it is missing, no number, or
/// outside [lowest, highest].
[[nodiscard]] std::uint32_t metadata_number(const Safetensors& file, const std::string& key,
                                            std::uint32_t lowest, std::uint32_t highest);

}  // namespace systole::model

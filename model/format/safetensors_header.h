#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "model/format/tensor_view.h"

namespace systole::model {

/// The key of the header's free-text section; no tensor can have this name.
inline constexpr std::string_view kMetadataKey = "__metadata__";

/// The longest header accepted, in bytes, as in the reference implementation of the format.
inline constexpr std::size_t kMaxHeaderBytes = 100'000'000;

/// The most dimensions a tensor may have.
inline constexpr std::size_t kMaxDimensions = 8;

/// Why `name` cannot name a tensor (empty, control characters, `kMetadataKey`); nullptr if it can.
const char* tensor_name_problem(std::string_view name);

/// The contents of a safetensors file; the views point into the file's bytes.
struct SafetensorsHeader {
  std::map<std::string, TensorView> tensors;
  std::map<std::string, std::string> metadata;
};

/// Parses and checks a whole safetensors file: 8 bytes of header length (little-endian), a JSON
/// header, and the tensors' data, which must cover the rest of the file without overlap or hole.
/// Throws `InputError` at the first thing that is wrong; `file_name` is for that message only.
SafetensorsHeader parse_safetensors(std::string_view file, const std::string& file_name);

}  // namespace systole::model

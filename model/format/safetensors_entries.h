#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/format/tensor_view.h"

namespace systole::model {

/// A tensor as the header of a safetensors file tells it; each field is set and checked against the
/// others, but not against the rest of the file. Offsets count from the end of the header.
struct SafetensorsEntry {
  std::string name;
  std::optional<FileDtype> dtype;
  std::optional<std::vector<std::size_t>> shape;
  std::optional<std::vector<std::size_t>> offsets;  // begin, end

  std::size_t begin() const { return (*offsets)[0]; }
  std::size_t end() const { return (*offsets)[1]; }
};

/// What the JSON header of a safetensors file says.
struct SafetensorsEntries {
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads the JSON header `text`, which starts with '{' and contains no zero byte. Throws
/// `InputError` at the first thing that is wrong; `file_name` is for that message only.
SafetensorsEntries read_safetensors_entries(std::string_view text, const std::string& file_name);

/// A name from a header as error messages show it: quoted, printable, of limited length.
std::string in_quotes(std::string_view name);

}  // namespace systole::model

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "model/format/safetensors.h"

namespace systole::model {

/// Free texts by their keys, and where they are, for messages.
struct Metadata {
  Metadata(const std::map<std::string, std::string>& texts, std::string where)
      : values(texts), place(std::move(where)) {}
  /// Those of a file, which outlives this object.
  Metadata(const Safetensors& file)  // NOLINT(google-explicit-constructor): a file has them
      : Metadata(file.metadata(), file.path() + ": metadata") {}

  const std::map<std::string, std::string>& values;
  std::string place;
};

/// The text under `key`; InputError if there is none.
[[nodiscard]] std::string metadata_text(const Metadata& metadata, const std::string& key);

/// The decimal number under `key`; InputError that names the key if it is missing, no number, or
/// outside [lowest, highest].
[[nodiscard]] std::uint32_t metadata_number(const Metadata& metadata, const std::string& key,
                                            std::uint32_t lowest, std::uint32_t highest);

}  // namespace systole::model

#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace systole::model {

/// A JSON object beside a checkpoint: what its tensors do not tell.
struct ConfigFile {
  std::string path;
  nlohmann::json values;

  /// Throws InputError that names file and key.
  [[noreturn]] void fail(const std::string& key, const std::string& expected) const;
};

/// The file `name` in the directory of a checkpoint; nothing if there is none. Throws InputError if
/// it holds no JSON object.
[[nodiscard]] std::optional<ConfigFile> config_beside(const std::string& checkpoint,
                                                      const std::string& name);

}  // namespace systole::model

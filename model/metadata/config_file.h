#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

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

// Files that are read beside a checkpoint where they exist.
inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kPreprocessorFile = "preprocessor_config.json";
inline constexpr const char* kTokensFile = "vocab.json";
inline constexpr const char* kMergesFile = "merges.txt";
/// Their paths.
[[nodiscard]] std::vector<std::string> companions_of(const std::string& checkpoint);

}  // namespace systole::model

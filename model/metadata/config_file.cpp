#include "model/metadata/config_file.h"

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/printable.h"

namespace systole::model {

void ConfigFile::fail(const std::string& key, const std::string& expected) const {
  throw hw::InputError(hw::printable(path) + ": " + key + ": expected " + expected);
}

std::optional<ConfigFile> config_beside(const std::string& checkpoint, const std::string& name) {
  const auto path = std::filesystem::path(checkpoint).replace_filename(name);
  std::ifstream file(path);
  if (!file) return std::nullopt;
  ConfigFile config{path.string(), nlohmann::json::parse(file, nullptr, false)};
  if (!config.values.is_object()) {
    throw hw::InputError(hw::printable(config.path) +
                         ": no JSON object, expected the configuration of the checkpoint beside "
                         "it");
  }
  return config;
}

std::vector<std::string> companions_of(const std::string& checkpoint) {
  std::vector<std::string> paths;
  for (const char* name : {kConfigFile, kPreprocessorFile, kTokensFile, kMergesFile}) {
    const auto path = std::filesystem::path(checkpoint).replace_filename(name);
    std::error_code ignored;  // what cannot be looked at is not there
    if (std::filesystem::exists(path, ignored)) paths.push_back(path.string());
  }
  return paths;
}

}  // namespace systole::model

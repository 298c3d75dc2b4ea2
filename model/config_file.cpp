#include "model/config_file.h"

#include <filesystem>
#include <fstream>

#include "hw/error.h"
#include "hw/printable.h"

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

}  // namespace systole::model

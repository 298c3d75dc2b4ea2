#include "hw/description/machine_presets.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "base/installation.h"
#include "base/printable.h"

namespace systole::hw {
namespace {

constexpr const char* kPresetSuffix = ".toml";

}  // namespace

std::string machine_presets_directory() {
  return (std::filesystem::path(data_directory()) / "machines").string();
}

std::vector<std::string> machine_presets() {
  std::vector<std::string> names;
  std::error_code error;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator it(machine_presets_directory(), error);
       !error && it != end; it.increment(error)) {
    const auto& path = it->path();
    if (path.extension() == kPresetSuffix) names.push_back(path.stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string list_of_machine_presets() {
  const std::vector<std::string> names = machine_presets();
  if (names.empty()) {
    return "a machine preset, but there are none in " + printable(machine_presets_directory());
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : " or ";
    text += printable(names[i]);
  }
  return text;
}

std::string machine_preset_path(const std::string& name) {
  const std::vector<std::string> names = machine_presets();
  if (std::find(names.begin(), names.end(), name) == names.end()) return {};
  return (std::filesystem::path(machine_presets_directory()) / (name + kPresetSuffix)).string();
}

}  // namespace systole::hw

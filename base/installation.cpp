#include "base/installation.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace systole::hw {
namespace {

namespace fs = std::filesystem;

std::string find_installation() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path places[] = {program.parent_path().parent_path() / "share" / "systole",
                             SYSTOLE_SOURCE_TREE};
  for (const fs::path& place : places) {
    if (fs::is_directory(place / "traces", error)) return place.string();
  }
  return SYSTOLE_INSTALLED;
}

}  // namespace

const std::string& installation() {
  static const std::string found = find_installation();
  return found;
}

std::string data_directory() {
  const char* const given = std::getenv("SYSTOLE_DATA");
  return given != nullptr && *given != '\0' ? given : installation() + "/traces";
}

}  // namespace systole::hw

#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace systole {

/// Where a file of the data that are not part of this project lies: below the directory that the
/// environment variable SYSTOLE_SHARED_DATA names. Empty if there is no such file; a test that
/// needs it says "NOT TESTED" and is skipped then.
inline std::string shared_data(const std::string& name) {
  const char* const directory = std::getenv("SYSTOLE_SHARED_DATA");
  if (directory == nullptr) return "";
  const std::filesystem::path path = std::filesystem::path(directory) / name;
  return std::filesystem::is_regular_file(path) ? path.string() : "";
}

}  // namespace systole

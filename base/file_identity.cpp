#include "base/file_identity.h"

#include <sys/stat.h>

namespace systole::hw {
namespace {

namespace fs = std::filesystem;

}  // namespace

fs::path follow_links(const std::string& path, std::error_code& error) {
  constexpr int kMaxLinks = 40;  // as the kernel's own limit; more is a loop
  error.clear();
  fs::path result = path;
  std::error_code ignored;
  for (int i = 0; fs::is_symlink(result, ignored); ++i) {
    if (i == kMaxLinks) error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
    const fs::path target = error ? fs::path() : fs::read_symlink(result, error);
    if (error) return path;
    result = result.parent_path() / target;
  }
  return result;
}

FileIdentity FileIdentity::of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return {status.st_dev, status.st_ino, {}};
  std::error_code error;
  const fs::path last = follow_links(path, error);
  const fs::path folder = last.has_parent_path() ? last.parent_path() : fs::path(".");
  if (::stat(folder.c_str(), &status) == 0) {
    return {status.st_dev, status.st_ino, last.filename().string()};
  }
  return {0, 0, fs::absolute(last, error).lexically_normal().string()};
}

}  // namespace systole::hw

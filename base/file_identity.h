#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace systole::hw {

/// `path` with a symbolic link in its last place resolved, also one that leads to no file yet. Sets
/// `error` for a loop of links and for one that cannot be read.
[[nodiscard]] std::filesystem::path follow_links(const std::string& path, std::error_code& error);

/// Which file a path leads to, whatever it is called there: equal for two paths of one file, and
/// for two paths at which one file would be made.
struct FileIdentity {
  dev_t device = 0;  ///< of the file, or if there is none of the folder it would be in
  ino_t inode = 0;   ///< likewise; 0: there is no such folder either
  std::string name;  ///< of a file that does not exist: in its folder, or the path without one

  [[nodiscard]] static FileIdentity of(const std::string& path);
  friend bool operator==(const FileIdentity& a, const FileIdentity& b) {
    return a.device == b.device && a.inode == b.inode && a.name == b.name;
  }
};

}  // namespace systole::hw

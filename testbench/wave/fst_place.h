#pragma once

#include <string>

#include "base/atomic_file.h"
#include "base/signal_cleanup.h"

namespace systole::testbench {

/// Where GTKWave's writer of FST files, which opens files by name, makes one that appears whole or
/// not at all.
class FstPlace {
 public:
  /// Throws InputError if `path` cannot be written, or is no regular file: the writer goes back to
  /// what it has written, and replaces a device.
  explicit FstPlace(const std::string& path);
  ~FstPlace();
  FstPlace(const FstPlace&) = delete;
  FstPlace& operator=(const FstPlace&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// For the writer. It has closed the file before commit().
  [[nodiscard]] const std::string& place() const noexcept { return place_; }
  /// Puts the file in place if it is a whole one; the writer itself does not notice a full disk.
  /// Throws InputError if not.
  void commit();

 private:
  const std::string path_;
  hw::AtomicFile file_;
  const std::string place_;
  const std::string hierarchy_;  ///< a file of the writer, beside it until it is closed
  const hw::RememberedFile remembered_hierarchy_;
};

}  // namespace systole::testbench

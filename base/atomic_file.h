#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

namespace systole::hw {

/// An output file that appears whole or not at all. What is written to `stream()` goes to a hidden
/// temporary file in the same directory; `commit()` puts it in place of `path`, and without a
/// commit (after an exception, say, or Ctrl-C after install_signal_cleanup()) the temporary
/// file is removed and `path` keeps what it held.
///
/// - A new file gets permissions 0644 less the umask; a replaced one keeps its own. A symbolic link
///   is followed, and the file it leads to is replaced.
/// - Devices, pipes and a file that is this process's standard output or error (`/dev/null`,
///   `/dev/stdout`) are written directly: a rename would replace the device by a file. What has
///   reached them cannot be taken back.
///
/// Every failure (missing or unwritable directory, a directory as target, disk full) is an
/// `InputError` that names `path` as it was given.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Binary, in the classic locale, not seekable. A write error is kept and thrown by `commit()`.
  std::ostream& stream();

  /// Where another library, which opens files by name, writes the contents in the place of
  /// `stream()`.
  std::string place_to_write();

  /// Flushes to the disk and puts the file in place. At most one call; nothing may be written
  /// after.
  void commit();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes `bytes` as the whole file `path`; see `AtomicFile`.
void write_file_atomically(const std::string& path, std::string_view bytes);

/// Writes what `producer` puts into its stream as the whole file `path`; see `AtomicFile`. An
/// exception of `producer` passes through and leaves `path` as it was.
void write_file_atomically(const std::string& path,
                           const std::function<void(std::ostream&)>& producer);

}  // namespace systole::hw

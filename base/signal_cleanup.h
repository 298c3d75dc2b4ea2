#pragma once

#include <csignal>
#include <cstddef>
#include <string>

/// Unfinished files go when a signal ends the process.
namespace systole::hw {

/// From now on SIGHUP, SIGINT, SIGPIPE and SIGTERM remove the remembered files and then end the
/// process as they usually do. One that the process was started to ignore stays ignored.
void install_signal_cleanup();

/// Holds these signals back during its life, in this thread: a file that is remembered and made
/// meanwhile is never one without the other.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_;
};

/// Remembers a file during its life. Its end removes nothing.
class RememberedFile {
 public:
  /// Throws std::logic_error if there are too many at once, or the path is longer than a path can
  /// be.
  explicit RememberedFile(const std::string& path);
  ~RememberedFile();
  RememberedFile(const RememberedFile&) = delete;
  RememberedFile& operator=(const RememberedFile&) = delete;

 private:
  std::size_t slot_;
};

/// In a copy of the process: the files are those of the original.
void forget_remembered_files();

}  // namespace systole::hw

#pragma once

#include <string>

namespace systole::testbench {

/// For writers that open their file by name: they write to `staged()`, a hidden file beside `path`,
/// and commit() puts it in place. Without a commit it is removed.
class StagedFile {
 public:
  /// Throws InputError if `path` cannot be written or does not end in `extension` (".vcd").
  StagedFile(std::string path, const std::string& extension);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  /// Ends in the extension.
  [[nodiscard]] const std::string& staged() const noexcept { return staged_; }
  /// Throws InputError if the file cannot be put in place.
  void commit();

 private:
  std::string path_;
  std::string staged_;
};

}  // namespace systole::testbench

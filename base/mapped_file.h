#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace systole::hw {

/// A whole file in memory, read-only and mapped, so that large checkpoints cost neither a copy nor
/// a wait. Copies share the mapping. The file must not be shortened while it is mapped.
class MappedFile {
 public:
  /// Throws `InputError` if `path` is missing, unreadable, empty or not a regular file (reading a
  /// pipe could wait for ever, reading a device never end).
  explicit MappedFile(const std::string& path);
  /// Bytes that are no file, as if they were one.
  static MappedFile of_bytes(std::string bytes);

  /// Of a file at least one byte; lives as long as any copy of this object.
  std::string_view bytes() const { return bytes_; }

  /// Gives back the host memory of the pages with these bytes of a file, and near them, which come
  /// again from the file where they are read. Bytes that are no file stay.
  void let_go(const void* first, std::size_t bytes) const;

 private:
  MappedFile(std::shared_ptr<const void> owner, std::string_view bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}

  std::shared_ptr<const void> owner_;  ///< of the bytes
  std::string_view bytes_;
  bool is_file_ = false;
};

}  // namespace systole::hw

#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace boost::interprocess {
class mapped_region;
}

namespace systole::hw {

/// A whole file in memory, read-only and mapped, so that large checkpoints cost neither a copy nor
/// a wait. Copies share the mapping. The file must not be shortened while it is mapped.
class MappedFile {
 public:
  /// Throws `InputError` if `path` is missing, unreadable, empty or not a regular file (reading a
  /// pipe could wait for ever, reading a device never end).
  explicit MappedFile(const std::string& path);

  /// At least one byte; lives as long as any copy of this object.
  std::string_view bytes() const;

 private:
  std::shared_ptr<const boost::interprocess::mapped_region> region_;
};

}  // namespace systole::hw

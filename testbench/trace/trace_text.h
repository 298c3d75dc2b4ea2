#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <string>

#include "base/atomic_file.h"

namespace systole::testbench {

/// Whether the name of a trace asks for compression: it ends in .gz.
[[nodiscard]] bool is_compressed(const std::string& path);

/// Writes the text of a trace to a file, through zlib if its name ends in .gz. The file appears
/// when it is complete.
class TraceText {
 public:
  /// Opened before the run, so that a path that cannot be written costs no time. Throws InputError.
  explicit TraceText(const std::string& path);
  ~TraceText() { close(); }
  TraceText(const TraceText&) = delete;
  TraceText& operator=(const TraceText&) = delete;

  template <typename Format, typename... Values>
  void add(const Format& format, const Values&... values) {
    fmt::format_to(std::back_inserter(buffer_), format, values...);
    if (buffer_.size() >= kBuffer) flush();
  }
  /// Puts the file in place. Throws InputError if that fails.
  void commit();

 private:
  static constexpr std::size_t kBuffer = std::size_t{1} << 18;  ///< bytes that are written at once

  void flush();
  int close();

  const std::string path_;
  hw::AtomicFile file_;
  gzFile gzip_ = nullptr;  ///< null: not compressed
  fmt::memory_buffer buffer_;
};

}  // namespace systole::testbench

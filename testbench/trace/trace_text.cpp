#include "testbench/trace/trace_text.h"

#include <utility>

#include "base/error.h"

namespace systole::testbench {

bool is_compressed(const std::string& path) {
  return path.size() >= 3 && path.compare(path.size() - 3, 3, ".gz") == 0;
}

TraceText::TraceText(const std::string& path) : path_(path), file_(path) {
  if (!is_compressed(path)) return;
  // The fastest level: it keeps up with the simulation.
  gzip_ = ::gzopen(file_.place_to_write().c_str(), "wb1");
  if (gzip_ == nullptr) throw hw::InputError(path + ": cannot be written");
  ::gzbuffer(gzip_, kBuffer);
}

void TraceText::commit() {
  flush();
  if (close() != Z_OK) throw hw::InputError(path_ + ": cannot be written");
  file_.commit();
}

void TraceText::flush() {
  const auto size = static_cast<unsigned>(buffer_.size());
  if (gzip_ == nullptr) {
    file_.stream().write(buffer_.data(), size);
  } else if (size != 0 && ::gzwrite(gzip_, buffer_.data(), size) == 0) {
    throw hw::InputError(path_ + ": cannot be written");
  }
  buffer_.clear();
}

int TraceText::close() {
  if (gzip_ == nullptr) return Z_OK;
  return ::gzclose(std::exchange(gzip_, nullptr));
}

}  // namespace systole::testbench

#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <locale>
#include <optional>
#include <stdexcept>
#include <streambuf>
#include <system_error>

#include "base/error.h"
#include "base/file_identity.h"
#include "base/printable.h"
#include "base/signal_cleanup.h"

namespace systole::hw {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw InputError(printable(path) + ": cannot write: " + why);
}

[[noreturn]] void fail(const std::string& path, int error) {
  fail(path, std::generic_category().message(error));
}

/// A copy of the standard output or error if that is the file `target`, else -1. The copy shares
/// the position of the stream, so neither overwrites the other.
int duplicate_standard_stream(const struct stat& target) {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat status {};
    const bool same = ::fstat(descriptor, &status) == 0 && status.st_dev == target.st_dev &&
                      status.st_ino == target.st_ino;
    if (!same || (::fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY) continue;
    std::cout.flush();
    std::fflush(stdout);  // its own buffer after sync_with_stdio(false)
    return ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  }
  return -1;
}

}  // namespace

/// An open file descriptor with an output buffer. The first error is kept; later bytes are dropped.
class DescriptorBuffer : public std::streambuf {
 public:
  DescriptorBuffer() { setp(buffer_.data(), buffer_.data() + buffer_.size()); }
  ~DescriptorBuffer() override { close(); }
  DescriptorBuffer(const DescriptorBuffer&) = delete;
  DescriptorBuffer& operator=(const DescriptorBuffer&) = delete;

  void attach(int descriptor) { descriptor_ = descriptor; }
  int descriptor() const { return descriptor_; }
  int error() const { return error_; }

  /// 0 or the error number.
  int close() {
    if (descriptor_ < 0) return 0;
    const int result = ::close(descriptor_);
    descriptor_ = -1;
    return result == 0 ? 0 : errno;
  }

 protected:
  int sync() override {
    const char* next = pbase();
    while (next < pptr() && error_ == 0) {
      const ssize_t written = ::write(descriptor_, next, static_cast<std::size_t>(pptr() - next));
      if (written > 0) {
        next += written;
      } else if (written == 0) {
        error_ = EIO;  // no progress and no reason given: trying again could go on for ever
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return error_ == 0 ? 0 : -1;
  }

  int_type overflow(int_type character) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(character, traits_type::eof())) {
      sputc(traits_type::to_char_type(character));
    }
    return traits_type::not_eof(character);
  }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
  std::array<char, kBufferBytes> buffer_;
  int descriptor_ = -1;
  int error_ = 0;
};

class AtomicFile::Impl {
 public:
  explicit Impl(const std::string& path) : path_(path), stream_(&buffer_) {
    stream_.imbue(std::locale::classic());
    if (path.empty()) fail("''", "the file name is empty");
    struct stat status {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (!exists && errno != ENOENT) fail(path, errno);
    if (exists && S_ISDIR(status.st_mode)) fail(path, EISDIR);
    const int standard_stream = exists ? duplicate_standard_stream(status) : -1;
    if (standard_stream >= 0) {
      buffer_.attach(standard_stream);
    } else if (exists && !S_ISREG(status.st_mode)) {
      const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
      if (descriptor < 0) fail(path, errno);
      buffer_.attach(descriptor);
    } else {
      // A rename needs only the directory's permission; a write-protected file must stay protected.
      if (exists && ::access(path.c_str(), W_OK) != 0) fail(path, errno);
      std::error_code error;
      final_path_ = follow_links(path, error);
      if (error) fail(path, error.message());
      if (!final_path_.has_filename()) fail(path, "this names a directory, expected a file");
      open_temporary();
      if (exists && ::fchmod(buffer_.descriptor(), status.st_mode & 0777) != 0) {
        fail_and_remove(errno);
      }
    }
  }

  ~Impl() { remove_temporary(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::ostream& stream() { return stream_; }

  std::string place_to_write() {
    if (temporary_path_.empty()) return path_;
    by_name_ = true;
    return temporary_path_;
  }

  void commit() {
    if (buffer_.descriptor() < 0) throw std::logic_error("AtomicFile: committed twice");
    stream_.flush();
    if (buffer_.error() != 0) fail_and_remove(buffer_.error());
    if (stream_.fail()) {
      remove_temporary();
      fail(path_, "the contents could not be produced");
    }
    const bool renames = !temporary_path_.empty();
    if (by_name_) open_what_was_written();
    if (renames && ::fsync(buffer_.descriptor()) != 0) fail_and_remove(errno);
    if (const int error = buffer_.close(); error != 0) fail_and_remove(error);
    if (!renames) return;
    if (::rename(temporary_path_.c_str(), final_path_.c_str()) != 0) fail_and_remove(errno);
    temporary_path_.clear();
    remembered_.reset();
    sync_directory();
  }

 private:
  /// The name does not contain the target's: that may already be as long as a name can be.
  void open_temporary() {
    static std::atomic<unsigned> counter{0};
    constexpr int kMaxAttempts = 1000;  // files left by killed processes with our process id
    int error = EEXIST;
    for (int attempt = 0; attempt < kMaxAttempts && error == EEXIST; ++attempt) {
      const std::string name =
          ".systole-" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";
      const std::string candidate = (final_path_.parent_path() / name).string();
      if (candidate.size() >= PATH_MAX) fail(path_, ENAMETOOLONG);
      const HeldSignals held;
      remembered_.emplace(candidate);
      const int descriptor =
          ::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      if (descriptor >= 0) {
        buffer_.attach(descriptor);
        temporary_path_ = candidate;
        return;
      }
      error = errno;
      remembered_.reset();
    }
    const std::string directory = final_path_.parent_path().string();
    fail(path_, "directory '" + (directory.empty() ? "." : printable(directory)) +
                    "': " + std::generic_category().message(error));
  }

  /// A library that writes by name may have replaced the file of that name.
  void open_what_was_written() {
    buffer_.close();
    const int descriptor = ::open(temporary_path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) fail_and_remove(errno);
    buffer_.attach(descriptor);
  }

  void remove_temporary() {
    if (temporary_path_.empty()) return;
    ::unlink(temporary_path_.c_str());
    temporary_path_.clear();
    remembered_.reset();
  }

  [[noreturn]] void fail_and_remove(int error) {
    remove_temporary();
    fail(path_, error);
  }

  /// Makes the rename itself durable. A file system that cannot do this has still done the rename,
  /// so there is nothing to report.
  void sync_directory() const {
    const fs::path parent = final_path_.parent_path();
    const int directory =
        ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return;
    ::fsync(directory);
    ::close(directory);
  }

  std::string path_;
  fs::path final_path_;
  std::string temporary_path_;  // empty: written directly, or already in place or removed
  std::optional<RememberedFile> remembered_;
  bool by_name_ = false;
  DescriptorBuffer buffer_;
  std::ostream stream_;
};

AtomicFile::AtomicFile(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
AtomicFile::~AtomicFile() = default;
std::ostream& AtomicFile::stream() { return impl_->stream(); }
std::string AtomicFile::place_to_write() { return impl_->place_to_write(); }
void AtomicFile::commit() { impl_->commit(); }

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.stream().write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.commit();
}

void write_file_atomically(const std::string& path,
                           const std::function<void(std::ostream&)>& producer) {
  AtomicFile file(path);
  producer(file.stream());
  file.commit();
}

}  // namespace systole::hw

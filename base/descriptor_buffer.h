#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <streambuf>

namespace systole::hw {

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

}  // namespace systole::hw

#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>

namespace systole::testbench {

/// Plain data, zero at first, that this process and its later copies share.
template <typename T>
class SharedArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>, "processes share bytes");

  /// Throws std::bad_alloc.
  explicit SharedArray(std::size_t size) : size_(size) {
    void* const pages =
        ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<T*>(pages);
  }
  ~SharedArray() { ::munmap(static_cast<void*>(data_), bytes()); }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + size_; }

 private:
  [[nodiscard]] std::size_t bytes() const noexcept { return (size_ + 1) * sizeof(T); }

  std::size_t size_;
  T* data_ = nullptr;
};

}  // namespace systole::testbench

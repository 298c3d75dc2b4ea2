#pragma once

#include <cstdint>

namespace systole::tlm_model {

/// Zero-initialised memory that costs host memory only where it has been touched.
class SparseMemory {
 public:
  /// `bytes` may be 0. Throws std::bad_alloc if the address space cannot be had.
  explicit SparseMemory(std::uint64_t bytes);
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  ~SparseMemory();

  [[nodiscard]] unsigned char* data() noexcept { return data_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  std::uint64_t size_;
  unsigned char* data_ = nullptr;
};

}  // namespace systole::tlm_model

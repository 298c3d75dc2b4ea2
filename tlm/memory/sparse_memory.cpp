#include "tlm/memory/sparse_memory.h"

#include <sys/mman.h>

#include <new>

namespace systole::tlm_model {

SparseMemory::SparseMemory(std::uint64_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<unsigned char*>(pages);
}

SparseMemory::~SparseMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace systole::tlm_model

#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <systemc>

#if defined(__SANITIZE_ADDRESS__)
#define SYSTOLE_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SYSTOLE_ADDRESS_SANITIZER
#endif
#endif

#if defined(SYSTOLE_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace systole::test {

/// Frames of killed processes never return, so AddressSanitizer still takes their variables for
/// guarded when the next kernel puts a new stack in the same place. Lifts the guard from all memory
/// that could be such a stack: mapped, not too large, and far above the sanitizer's own tables.
inline void forget_process_stacks() {
#if defined(SYSTOLE_ADDRESS_SANITIZER)
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 30;
  constexpr std::uint64_t kLowest = 0x700000000000;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::uint64_t begin = 0, end = 0, inode = 0;
    std::string access, offset, device;
    char dash = 0;
    fields >> std::hex >> begin >> dash >> end >> access >> offset >> device >> std::dec >> inode;
    if (access != "rw-p" || inode != 0 || begin < kLowest || end - begin > kLargest) continue;
    __asan_unpoison_memory_region(reinterpret_cast<void*>(begin), end - begin);
  }
#endif
}

/// The kernel says at each switch which stack it goes to, but not when a stopped simulation comes
/// back to the first one: an exception after that would be taken for one of the process that ran
/// last.
inline void return_to_first_stack() {
#if defined(SYSTOLE_ADDRESS_SANITIZER)
  pthread_attr_t attributes;
  void* bottom = nullptr;
  std::size_t bytes = 0;
  ::pthread_getattr_np(::pthread_self(), &attributes);
  ::pthread_attr_getstack(&attributes, &bottom, &bytes);
  ::pthread_attr_destroy(&attributes);
  __sanitizer_start_switch_fiber(nullptr, bottom, bytes);
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

/// Ends what has been simulated in this process, so that a test may build and run modules anew. No
/// module may be alive.
inline void fresh_kernel() {
  return_to_first_stack();
  forget_process_stacks();
  sc_core::sc_get_curr_simcontext()->reset();
}

}  // namespace systole::test

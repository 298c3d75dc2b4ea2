#pragma once

#include <time.h>

namespace systole::bench {

/// CPU time of this thread, so that a busy host does not count against what is measured.
[[nodiscard]] inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace systole::bench

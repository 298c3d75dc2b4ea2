#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <vector>

namespace systole::bench {

using Bytes = std::vector<std::uint8_t>;

/// Runs `work` in a copy of this process and returns what it returns: SystemC elaborates once per
/// process. The process must have one thread. Throws std::runtime_error if the copy fails; its
/// reason is on standard error.
[[nodiscard]] inline Bytes run_in_child(const std::function<Bytes()>& work) {
  int ends[2];
  // Whatever is buffered would be printed twice.
  std::fflush(nullptr);
  if (::pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot start a process");
  if (child == 0) {
    int status = 1;
    try {
      const Bytes result = work();
      std::size_t written = 0;
      while (written < result.size()) {
        const ssize_t more = ::write(ends[1], &result[written], result.size() - written);
        if (more < 0 && errno != EINTR) break;
        if (more > 0) written += static_cast<std::size_t>(more);
      }
      status = written == result.size() ? 0 : 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    std::_Exit(status);
  }
  ::close(ends[1]);
  Bytes result;
  std::uint8_t buffer[65536];
  for (;;) {
    const ssize_t more = ::read(ends[0], buffer, sizeof buffer);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    result.insert(result.end(), buffer, buffer + more);
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) throw std::runtime_error("the simulation in a process of its own failed");
  return result;
}

}  // namespace systole::bench

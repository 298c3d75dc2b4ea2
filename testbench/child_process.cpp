#include "testbench/child_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace systole::testbench {
namespace {

/// The child's answer: a byte that says whether it worked, then the result or a message.
constexpr char kWorked = 1, kFailed = 0;

void write_all(int file, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = ::write(file, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the parent is gone
    data += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

std::string read_all(int file) {
  std::string text;
  char block[4096];
  for (;;) {
    const ssize_t count = ::read(file, block, sizeof(block));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(block, static_cast<std::size_t>(count));
  }
}

std::string answer_of(const std::function<void(void*)>& work, std::size_t bytes) {
  try {
    std::vector<char> result(bytes);
    work(result.data());
    return kWorked + std::string(result.data(), bytes);
  } catch (const std::exception& error) {
    return kFailed + std::string(error.what());
  }
}

}  // namespace

void run_in_child(const std::function<void(void*)>& work, void* result, std::size_t bytes) {
  int pipe[2];
  if (::pipe(pipe) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  std::cout.flush();
  std::fflush(nullptr);  // or the child might print it again
  const pid_t child = ::fork();
  if (child < 0) {
    const int error = errno;
    ::close(pipe[0]);
    ::close(pipe[1]);
    throw std::system_error(error, std::generic_category(), "fork");
  }
  if (child == 0) {
    const std::string answer = answer_of(work, bytes);
    write_all(pipe[1], answer.data(), answer.size());
    ::_exit(0);  // what the parent set up is not ours to take down
  }
  ::close(pipe[1]);
  const std::string answer = read_all(pipe[0]);
  ::close(pipe[0]);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (answer.size() == bytes + 1 && answer[0] == kWorked) {
    std::memcpy(result, answer.data() + 1, bytes);
    return;
  }
  throw std::runtime_error(answer.size() > 1 ? answer.substr(1) : "a simulation ended early");
}

}  // namespace systole::testbench

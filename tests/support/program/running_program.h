#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/program/program_run.h"

namespace systole {

/// Waits until `condition` holds; false: it did not in four minutes, which is less than a test may
/// take.
inline bool wait_until(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(4);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// The program while it runs. What it prints is dropped. Killed at the end of its life.
class RunningProgram {
 public:
  RunningProgram(const std::vector<std::string>& arguments, const std::string& directory,
                 const std::map<std::string, std::string>& variables = {}, int ignored_signal = 0)
      : child_(::fork()) {
    if (child_ < 0) throw std::runtime_error("cannot fork");
    if (child_ != 0) return;
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    if (ignored_signal != 0) std::signal(ignored_signal, SIG_IGN);
    become_systole(arguments, directory, variables);
  }
  ~RunningProgram() {
    if (has_ended_) return;
    ::kill(child_, SIGKILL);
    (void)wait();
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  void send(int signal) const { ::kill(child_, signal); }
  /// Its status, as of waitpid().
  int wait() {
    int status = 0;
    ::waitpid(child_, &status, 0);
    has_ended_ = true;
    return status;
  }
  /// Whether it ignores a signal.
  [[nodiscard]] bool ignores(int signal) const {
    std::ifstream file("/proc/" + std::to_string(child_) + "/status");
    for (std::string word; file >> word;) {
      if (word != "SigIgn:") continue;
      std::uint64_t mask = 0;  // bit 0 is signal 1
      file >> std::hex >> mask;
      return (mask >> (signal - 1) & 1U) != 0;
    }
    return false;
  }
  /// Its child processes.
  [[nodiscard]] std::vector<pid_t> children() const {
    const std::string process = std::to_string(child_);
    std::ifstream file("/proc/" + process + "/task/" + process + "/children");
    std::vector<pid_t> children;
    for (pid_t child = 0; file >> child;) children.push_back(child);
    return children;
  }

 private:
  pid_t child_;
  bool has_ended_ = false;
};

/// Whether a process runs; one that has ended, but was not waited for, does not.
inline bool is_running(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return false;
  const std::size_t state = text.rfind(')') + 2;
  return text.at(state) != 'Z' && text.at(state) != 'X';
}

}  // namespace systole

#include "testbench/common/tool.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "testbench/common/child_process.h"

namespace systole::testbench {
namespace {

constexpr int kNotStarted = 127;  // as a shell has it

[[noreturn]] void become(const std::vector<std::string>& command, int from_parent,
                         const std::vector<std::string>& environment) {
  ::dup2(from_parent, STDIN_FILENO);
  ::close(from_parent);
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  std::_Exit(kNotStarted);
}

}  // namespace

int run_tool(const std::vector<std::string>& command, const std::string& input,
             const std::vector<std::string>& environment, const std::function<void()>& meanwhile) {
  const auto fail = [&](const char* what) {
    throw hw::InputError(hw::printable(command.at(0)) + ": " + what);
  };
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) fail("the system gives it no pipe");
  std::fflush(nullptr);
  const pid_t child = fork_child();
  if (child < 0) fail("the system starts no process");
  if (child == 0) {
    ::close(ends[1]);
    become(command, ends[0], environment);
  }
  ::close(ends[0]);
  // A program that reads no further must not end this one.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  for (std::size_t written = 0; written < input.size();) {
    const ssize_t more = ::write(ends[1], input.data() + written, input.size() - written);
    if (more < 0 && errno != EINTR) break;
    if (more > 0) written += static_cast<std::size_t>(more);
  }
  ::close(ends[1]);
  std::signal(SIGPIPE, before);
  const std::optional<int> code = wait_for_child(child, meanwhile);
  if (!code) fail("was ended by a signal");
  if (*code == kNotStarted) fail("cannot be started, expected an installed program");
  return *code;
}

std::string environment_or(const char* variable, const char* otherwise) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::string python_interpreter() { return environment_or("SYSTOLE_PYTHON", "python3"); }

}  // namespace systole::testbench

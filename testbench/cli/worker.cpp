#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/program.h"
#include "testbench/common/child_process.h"

/// A process that runs one command line after the other, each in a copy of itself: SystemC
/// elaborates once per process, and a copy has no start-up (python/systole/worker.py has the other
/// end of the socket).
namespace systole::testbench {
namespace {

struct WorkerOptions {};

constexpr int kSocket = STDIN_FILENO;

/// A message: the folder to run in and a command line with the program, each word ended by a zero
/// byte, and two open files: standard output and standard error.
struct Request {
  std::vector<std::string> words;
  std::array<int, 2> files;
};

[[noreturn]] void refuse(std::string_view found) {
  throw hw::InputError("worker: standard input: found " + std::string(found) +
                       ", expected a socket of the package systole");
}

void require_socket() {
  int type = 0;
  socklen_t size = sizeof type;
  const bool is_socket = ::getsockopt(kSocket, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
  if (!is_socket || type != SOCK_SEQPACKET) refuse("something else");
}

std::vector<std::string> split_words(std::string_view message) {
  std::vector<std::string> words;
  while (!message.empty()) {
    const std::size_t end = std::min(message.find('\0'), message.size());
    words.emplace_back(message.substr(0, end));
    message.remove_prefix(std::min(end + 1, message.size()));
  }
  return words;
}

/// The next request; nothing once the other end is closed.
std::optional<Request> receive(std::vector<char>& buffer) {
  Request request;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof request.files)> control{};
  iovec text{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t size = 0;
  do {
    size = ::recvmsg(kSocket, &message, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size <= 0) return std::nullopt;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  const bool has_files = header != nullptr && header->cmsg_len == CMSG_LEN(sizeof request.files) &&
                         header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS;
  if (!has_files || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) refuse("no request");
  std::memcpy(request.files.data(), CMSG_DATA(header), sizeof request.files);
  request.words = split_words({buffer.data(), static_cast<std::size_t>(size)});
  return request;
}

/// In the copy: as if the command line had started a process. Returns the exit code.
int run_request(const Request& request) {
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(request.files[0], STDOUT_FILENO);
  ::dup2(request.files[1], STDERR_FILENO);
  const std::string& folder = request.words.at(0);
  if (::chdir(folder.c_str()) != 0) {
    throw hw::InputError(folder + ": " + std::strerror(errno) + ", expected a folder to run in");
  }
  std::vector<const char*> line;
  for (std::size_t i = 1; i < request.words.size(); ++i) line.push_back(request.words[i].c_str());
  const int count = static_cast<int>(line.size());
  line.push_back(nullptr);
  return run_command_line(count, line.data());
}

void answer(std::int32_t number) {
  // A closed socket ends the loop when it is read.
  static_cast<void>(::send(kSocket, &number, sizeof number, MSG_NOSIGNAL));
}

/// Waits for the end of a copy, which the other end's closing brings about. Returns its exit code,
/// or -N if signal N ended it.
int wait_for(pid_t child) {
  // The header of glibc 2.36 declares pidfd_open() as a C++ function.
  const int watch = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  std::array<pollfd, 2> events{{{watch, POLLIN, 0}, {kSocket, 0, 0}}};
  while (::poll(events.data(), events.size(), -1) < 0 && errno == EINTR) {
  }
  if (events[0].revents == 0) ::kill(child, SIGKILL);
  ::close(watch);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int run(const WorkerOptions&) {
  require_socket();
  std::vector<char> buffer(std::size_t{1} << 18);  // more than such a socket takes
  while (const std::optional<Request> request = receive(buffer)) {
    std::fflush(nullptr);
    const pid_t child = fork_child();
    if (child == 0) return run_request(*request);
    if (child < 0) throw std::runtime_error("cannot start a process");
    for (const int file : request->files) ::close(file);
    answer(child);
    answer(wait_for(child));
  }
  return kExitOk;
}

}  // namespace

void add_worker_command(CLI::App& app, Action& action) {
  CLI::App* const command = app.add_subcommand("worker", "run what the Python package asks for");
  set_action(*command, action, std::make_shared<WorkerOptions>(), run);
}

}  // namespace systole::testbench

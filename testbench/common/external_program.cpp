#include "testbench/common/external_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <stdexcept>

#include "testbench/common/child_process.h"

namespace systole::testbench {
namespace {

/// Two connected sockets; both are closed at the end.
struct Connection {
  int ours = -1, theirs = -1;

  Connection() {
    int ends[2];
    // No pipe: writing to a socket whose other end is closed need not raise SIGPIPE.
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw std::runtime_error("cannot make a socket");
    }
    ours = ends[0];
    theirs = ends[1];
  }
  ~Connection() {
    close_end(ours);
    close_end(theirs);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
};

[[noreturn]] void become(const std::string& name, int connection) {
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(connection, STDIN_FILENO);
  ::dup2(connection, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  ::execlp(name.c_str(), name.c_str(), static_cast<char*>(nullptr));
  ::_exit(ProgramOutput::kNotFound);
}

/// Writes `input` and reads what comes meanwhile, up to its end: neither side waits for the other.
std::string converse(int connection, std::string_view input) {
  std::string output;
  std::array<char, std::size_t{1} << 16U> buffer;
  for (;;) {
    if (input.empty()) ::shutdown(connection, SHUT_WR);
    pollfd wait{connection, static_cast<short>(input.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    if (::poll(&wait, 1, -1) < 0 && errno != EINTR) return output;
    if ((wait.revents & POLLOUT) != 0) {
      const ssize_t sent =
          ::send(connection, input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) input.remove_prefix(static_cast<std::size_t>(sent));
      if (sent < 0 && errno != EINTR && errno != EAGAIN) input = {};  // it reads no more
    }
    if ((wait.revents & (POLLIN | POLLHUP)) == 0) continue;
    const ssize_t more = ::recv(connection, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (more > 0) output.append(buffer.data(), static_cast<std::size_t>(more));
    if (more == 0 || (more < 0 && errno != EINTR && errno != EAGAIN)) return output;
  }
}

}  // namespace

ProgramOutput run_external_program(const std::string& name, std::string_view input) {
  Connection connection;
  const pid_t child = fork_child();
  if (child == 0) become(name, connection.theirs);
  if (child < 0) throw std::runtime_error("cannot start a process");
  Connection::close_end(connection.theirs);
  ProgramOutput result;
  result.output = converse(connection.ours, input);
  result.exit_code = wait_for_child(child).value_or(ProgramOutput::kEndedBySignal);
  return result;
}

}  // namespace systole::testbench

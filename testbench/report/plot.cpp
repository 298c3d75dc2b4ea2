#include "testbench/report/plot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/installation.h"
#include "base/printable.h"
#include "testbench/common/child_process.h"

namespace systole::testbench {
namespace {

namespace fs = std::filesystem;

/// What a program printed on standard output, and how it ended.
struct ProgramOutput {
  static constexpr int kNotFound = 127;  ///< as the shell has it
  static constexpr int kEndedBySignal = -1;

  int exit_code = 0;
  std::string output;
};

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

/// Runs the program `name`, found in PATH, on `input` as its standard input. Its standard error is
/// dropped. It ends with this process. Throws std::runtime_error if the system refuses.
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

/// How every PNG file begins, and its last chunk.
constexpr std::string_view kPngBegin = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kPngEnd("\0\0\0\0IEND\xae\x42\x60\x82", 12);

bool is_whole_png(std::string_view bytes) {
  return bytes.size() >= kPngBegin.size() + kPngEnd.size() &&
         bytes.substr(0, kPngBegin.size()) == kPngBegin &&
         bytes.substr(bytes.size() - kPngEnd.size()) == kPngEnd;
}

}  // namespace

std::string draw_plot(const Plot& plot, const std::string& path) {
  std::string script;
  if (!plot.script.empty()) {
    const std::string file = hw::data_directory() + "/plots/" + plot.script + ".gp";
    if (!fs::exists(file)) {
      throw hw::InputError(hw::printable(file) +
                           ": found no such file, expected a script of gnuplot");
    }
    script = "load " + gnuplot_quoted(file);
  }
  // gnuplot does not write the file itself: it does not notice a full disk.
  const ProgramOutput drawn = run_external_program(
      "gnuplot",
      fmt::format(
          "set terminal pngcairo noenhanced size {},{} font 'sans,11' background '#ffffff'\n"
          "{}{}\nunset output\n",
          plot.width, plot.height, plot.data, script));
  if (drawn.exit_code == ProgramOutput::kNotFound) {
    throw hw::InputError("gnuplot: not found, expected it installed to draw pictures");
  }
  const auto fail = [&](const std::string& how) {
    throw hw::InputError(hw::printable(path) + ": gnuplot could not draw it (" + how +
                         "), expected gnuplot 5 with pngcairo");
  };
  if (drawn.exit_code != 0) fail("exit code " + std::to_string(drawn.exit_code));
  if (!is_whole_png(drawn.output)) {
    fail(std::to_string(drawn.output.size()) + " bytes, not a whole picture");
  }
  return drawn.output;
}

PlotWriter::PlotWriter(std::string directory) : directory_(std::move(directory)) {
  if (directory_.empty()) return;
  fs::path place = directory_;
  if (!fs::exists(place)) place = fs::absolute(place).parent_path();
  if (!fs::is_directory(place)) {
    throw hw::InputError(hw::printable(directory_) +
                         ": no folder and cannot become one, expected a folder for pictures");
  }
  const hw::AtomicFile probe((place / "plot.png").string());
}

void PlotWriter::write(const std::vector<Plot>& plots) const {
  if (directory_.empty()) return;
  fs::create_directory(directory_);
  for (const Plot& plot : plots) {
    const std::string path = (fs::path(directory_) / plot.file).string();
    hw::write_file_atomically(path, draw_plot(plot, path));
  }
}

std::string gnuplot_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c;
    if (c == '\'') quoted += c;
  }
  return quoted + "'";
}

std::string data_block(const std::string& name, const std::string& rows) {
  return "$" + name + " << EOD\n" + rows + "EOD\n";
}

}  // namespace systole::testbench

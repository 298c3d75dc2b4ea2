#include "testbench/cores/alone_run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <stdexcept>
#include <system_error>

namespace systole::testbench {
namespace {

void close_end(int& end) {
  if (end >= 0) ::close(end);
  end = -1;
}

void write_text(int to, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = ::write(to, text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw std::system_error(errno, std::generic_category(), "write");
    at += static_cast<std::size_t>(count);
  }
}

/// Up to and without `end`, or all there is.
std::string read_text(int from, char end) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    // Byte by byte only while looking for an end: an order is short.
    const ssize_t count = ::read(from, buffer.data(), end == '\0' ? buffer.size() : 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || buffer[0] == end) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

AloneRun::AloneRun(const std::function<std::string(const std::string& order)>& work) {
  std::array<int, 2> orders{}, results{};
  if (::pipe(orders.data()) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  if (::pipe(results.data()) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  const pid_t parent = ::getpid();
  child_ = ::fork();
  if (child_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child_ == 0) {
    // Nothing of this copy's may reach the terminal, files or the exit handlers of the original.
    int status = 1;
    try {
      close_end(orders[1]);
      close_end(results[0]);
      const std::string order = read_text(orders[0], '\n');
      if (!order.empty() && ::getppid() == parent) {
        write_text(results[1], work(order));
        status = 0;
      }
    } catch (const std::exception&) {
      status = 1;  // the original misses the result
    }
    ::_exit(status);
  }
  close_end(orders[0]);
  close_end(results[1]);
  orders_ = orders[1];
  results_ = results[0];
}

AloneRun::~AloneRun() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  close_end(orders_);
  close_end(results_);
}

void AloneRun::start(const std::string& order) {
  write_text(orders_, order + "\n");
  close_end(orders_);
}

std::string AloneRun::result() {
  std::string text = read_text(results_, '\0');
  int status = 0;
  ::waitpid(child_, &status, 0);
  child_ = -1;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || text.empty()) {
    throw std::runtime_error("the simulation of one core alone ended without a result");
  }
  return text;
}

}  // namespace systole::testbench

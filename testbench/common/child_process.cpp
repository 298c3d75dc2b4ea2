#include "testbench/common/child_process.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "base/signal_cleanup.h"
#include "testbench/common/progress.h"

namespace systole::testbench {
namespace {

/// Exit codes of the copy; the last two come with a text.
enum Status { kDone = 0, kFailed = 1, kBadInput = 2 };

bool write_all(int file, const std::uint8_t* bytes, std::size_t size) {
  std::size_t written = 0;
  while (written < size) {
    const ssize_t more = ::write(file, bytes + written, size - written);
    if (more < 0 && errno != EINTR) return false;
    if (more > 0) written += static_cast<std::size_t>(more);
  }
  return true;
}

Bytes text_of(const std::exception& error) {
  const std::string text = error.what();
  return {text.begin(), text.end()};
}

[[noreturn]] void run(const std::function<Bytes()>& work, int to_parent) {
  Status status = kFailed;
  Bytes answer;
  try {
    answer = work();
    status = kDone;
  } catch (const hw::InputError& error) {
    answer = text_of(error);
    status = kBadInput;
  } catch (const std::exception& error) {
    answer = text_of(error);
  }
  if (!write_all(to_parent, answer.data(), answer.size())) status = kFailed;
  // No destructors or handlers of the copied process.
  std::_Exit(status);
}

/// Waits for a moment; true if there is something to read, or never will be.
bool has_answer(int from_child) {
  constexpr int kMilliseconds = 200;
  pollfd answer{from_child, POLLIN, 0};
  const int ready = ::poll(&answer, 1, kMilliseconds);
  return ready > 0 || (ready < 0 && errno != EINTR);
}

}  // namespace

pid_t fork_child() {
  const hw::HeldSignals held;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  hw::forget_remembered_files();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kFailed);  // it ended before the line above
  return child;
}

std::optional<int> wait_for_child(pid_t child, const std::function<void()>& meanwhile) {
  constexpr int kTick = 100'000;  // us
  int status = 0;
  while (meanwhile && ::waitpid(child, &status, WNOHANG) == 0) {
    meanwhile();
    ::usleep(kTick);
  }
  while (!meanwhile && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) return std::nullopt;
  return WEXITSTATUS(status);
}

ChildProcess::ChildProcess(const std::function<Bytes()>& work) {
  int ends[2];
  // Whatever is buffered would be printed twice.
  std::fflush(nullptr);
  if (::pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
  child_ = fork_child();
  if (child_ == 0) run(work, ends[1]);
  ::close(ends[1]);
  from_child_ = ends[0];
  if (child_ < 0) {
    ::close(from_child_);
    throw std::runtime_error("cannot start a process");
  }
}

ChildProcess::~ChildProcess() {
  ::close(from_child_);
  if (child_ < 0) return;
  ::kill(child_, SIGKILL);
  wait_for_child(child_);
}

Bytes ChildProcess::result(const std::function<void()>& meanwhile) {
  BatchProgress* const progress = BatchProgress::current();
  while ((progress != nullptr || meanwhile) && !has_answer(from_child_)) {
    if (progress != nullptr) progress->tick();
    if (meanwhile) meanwhile();
  }
  Bytes result;
  std::vector<std::uint8_t> buffer(std::size_t{1} << 16);
  for (;;) {
    const ssize_t more = ::read(from_child_, buffer.data(), buffer.size());
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    result.insert(result.end(), buffer.begin(), buffer.begin() + more);
  }
  const std::optional<int> status = wait_for_child(child_);
  child_ = -1;
  if (status == kDone) return result;
  const std::string text(result.begin(), result.end());
  if (status == kBadInput) throw hw::InputError(text);
  throw std::runtime_error(text.empty() ? "work in a separate process ended early" : text);
}

}  // namespace systole::testbench

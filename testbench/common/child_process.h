#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace systole::testbench {

using Bytes = std::vector<std::uint8_t>;

/// fork(). The copy ends when this process ends, in whatever way, and leaves the files of the
/// original alone.
[[nodiscard]] pid_t fork_child();

/// Waits for the end of a child process: its exit code, or nothing if a signal ended it. Calls
/// `meanwhile`, if there is one, ten times a second.
std::optional<int> wait_for_child(pid_t child, const std::function<void()>& meanwhile = {});

/// Work in a copy of this process, beside it: SystemC elaborates once per process. The process must
/// have one thread.
class ChildProcess {
 public:
  /// Begins `work` in the copy. Throws std::runtime_error if the system refuses.
  explicit ChildProcess(const std::function<Bytes()>& work);
  /// Ends the copy if nobody has waited for its result.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Waits for what `work` returns, and calls `meanwhile`, if there is one, some times a second; at
  /// most one call. Throws InputError with the text of one that
  /// `work` threw, std::runtime_error with the text of another exception, or if it ended early.
  [[nodiscard]] Bytes result(const std::function<void()>& meanwhile = {});

 private:
  pid_t child_ = -1;  ///< -1: has ended
  int from_child_ = -1;
};

/// The same, one after the other.
[[nodiscard]] inline Bytes run_in_child(const std::function<Bytes()>& work) {
  return ChildProcess(work).result();
}

/// The same for work that returns plain data.
template <typename Work>
auto in_child(const Work& work) {
  using Result = decltype(work());
  static_assert(std::is_trivially_copyable_v<Result>, "the result crosses processes as bytes");
  const Bytes bytes = run_in_child([&] {
    const Result result = work();
    Bytes copy(sizeof(Result));
    std::memcpy(copy.data(), &result, sizeof(Result));
    return copy;
  });
  Result result{};
  if (bytes.size() != sizeof(Result)) throw std::runtime_error("a process ended without a result");
  std::memcpy(&result, bytes.data(), sizeof(Result));
  return result;
}

}  // namespace systole::testbench

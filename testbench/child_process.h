#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>

namespace systole::testbench {

/// Runs `work` in a child process, which gets `bytes` of room for its result, and copies that to
/// `result`. Throws std::runtime_error with the child's message if it failed.
void run_in_child(const std::function<void(void* result)>& work, void* result, std::size_t bytes);

/// For simulations beside one that this process runs: a process has one SystemC kernel. No module
/// may have been made yet.
template <typename Work>
auto in_child(const Work& work) {
  using Result = decltype(work());
  static_assert(std::is_trivially_copyable_v<Result>, "the result crosses processes as bytes");
  Result result{};
  run_in_child([&](void* to) { *static_cast<Result*>(to) = work(); }, &result, sizeof(Result));
  return result;
}

}  // namespace systole::testbench

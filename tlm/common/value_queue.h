#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace systole::tlm_model {

/// What commands do to stored values, in the order in which they begin. Time does not depend on it:
/// with one thread it is done at once, with more by another thread, in the same order, so that the
/// bytes are the same.
///
/// An action works on the contents of main memory and of a core's memories alone; whatever else it
/// needs is its own, or stays as it is until await() returns. Whoever uses these contents
/// otherwise waits for the actions before, as main memory does for every access with data.
///
/// All calls come from the thread that simulates. What an action throws is thrown by the calls that
/// follow, and no action after it is done.
class ValueQueue {
 public:
  using Action = std::function<void()>;
  /// Bytes of main memory.
  struct Span {
    std::uint64_t offset, bytes;
  };

  /// Actions that wait at most: then post() does.
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 14;

  /// Beside a main memory with these contents, which outlive it.
  ValueQueue(std::uint8_t* memory, std::uint64_t bytes) : memory_(memory), bytes_(bytes) {}
  ValueQueue(const ValueQueue&) = delete;
  ValueQueue& operator=(const ValueQueue&) = delete;
  ~ValueQueue() { stop(); }

  /// Before the first action. With 1, actions are done by post().
  void set_threads(unsigned threads) noexcept { is_beside_ = threads > 1; }

  /// Contents of main memory; null: the span is not inside.
  [[nodiscard]] std::uint8_t* at(Span span) const noexcept {
    const bool inside = span.offset <= bytes_ && span.bytes <= bytes_ - span.offset;
    return inside ? memory_ + span.offset : nullptr;
  }

  /// `written`: what the action may write of main memory.
  void post(Action action, Span written = {});
  /// Returns when all actions are done.
  void await() {
    if (worker_.joinable()) await_done(posted_.load(std::memory_order_relaxed));
  }
  /// Returns when all are done that may write to the span, which is inside main memory.
  void await_written(Span span) {
    if (worker_.joinable()) await_done(last_writer(span));
  }
  /// Drops actions that are not done. For whoever owns what they use and goes before the queue
  /// does.
  void stop() noexcept;

 private:
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};

  void start();
  void work();
  /// Waits until so many actions are done.
  void await_done(std::uint64_t count);
  /// The last action that may write there, as a number of actions.
  [[nodiscard]] std::uint64_t last_writer(Span span) const;
  void wake_worker();
  /// Throws what an action has thrown.
  void check() const;

  std::uint8_t* const memory_;
  const std::uint64_t bytes_;
  bool is_beside_ = false;
  std::vector<Action> ring_;
  std::vector<std::uint64_t> writers_;  ///< by page of main memory: last_writer()
  std::atomic<std::uint64_t> posted_{0}, done_{0};
  std::atomic<std::uint64_t> awaited_{kNobody};  ///< so many actions are waited for
  std::atomic<bool> sleeps_{false};              ///< the worker
  std::atomic<bool> stopped_{false}, failed_{false};
  std::exception_ptr failure_;  ///< of the worker, set before `failed_`
  std::mutex mutex_;
  std::condition_variable has_work_, has_progress_;
  std::thread worker_;
};

}  // namespace systole::tlm_model

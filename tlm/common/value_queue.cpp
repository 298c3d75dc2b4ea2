#include "tlm/common/value_queue.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace systole::tlm_model {
namespace {

/// Finer pages cost memory; in coarser ones a program and results are more often neighbours, and
/// whoever reads the one waits for the other.
constexpr unsigned kPageBits = 14;

/// A worker that sleeps is woken for so many actions: to wake it takes as long as a few of them.
constexpr std::uint64_t kWorthWaking = 16;

/// Looks whether `condition` holds for about as long as it takes to sleep and to be woken.
template <typename Condition>
bool looks_until(Condition condition) {
  constexpr int kLooks = 1000;
  for (int i = 0; i < kLooks; ++i) {
    if (condition()) return true;
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
  }
  return false;
}

}  // namespace

void ValueQueue::start() {
  ring_.resize(kMost);
  writers_.resize((bytes_ >> kPageBits) + 1);
  // Signals are for the thread that simulates.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  worker_ = std::thread([this] { work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ValueQueue::check() const {
  if (failed_.load()) std::rethrow_exception(failure_);
}

void ValueQueue::post(Action action, Span written) {
  if (!is_beside_) return action();
  check();
  if (!worker_.joinable()) start();
  const std::uint64_t count = posted_.load(std::memory_order_relaxed) + 1;
  // Half of them, so that the two threads do not wait in turn for each action.
  if (count - done_.load() > kMost) await_done(count - kMost / 2);
  ring_[count % kMost] = std::move(action);
  if (written.bytes != 0) {
    const auto first = writers_.begin() + static_cast<std::ptrdiff_t>(written.offset >> kPageBits);
    const std::uint64_t last = (written.offset + written.bytes - 1) >> kPageBits;
    std::fill(first, writers_.begin() + static_cast<std::ptrdiff_t>(last + 1), count);
  }
  posted_.store(count);
  if (sleeps_.load() && count - done_.load() >= kWorthWaking) wake_worker();
}

std::uint64_t ValueQueue::last_writer(Span span) const {
  if (span.bytes == 0) return 0;
  const auto first = writers_.begin() + static_cast<std::ptrdiff_t>(span.offset >> kPageBits);
  const std::uint64_t last = (span.offset + span.bytes - 1) >> kPageBits;
  return *std::max_element(first, writers_.begin() + static_cast<std::ptrdiff_t>(last + 1));
}

void ValueQueue::wake_worker() {
  { const std::lock_guard<std::mutex> lock(mutex_); }
  has_work_.notify_one();
}

void ValueQueue::await_done(std::uint64_t count) {
  const auto is_done = [&] { return done_.load() >= count; };
  if (!is_done()) {
    awaited_.store(count);
    if (sleeps_.load()) wake_worker();
    if (!looks_until(is_done)) {
      std::unique_lock<std::mutex> lock(mutex_);
      has_progress_.wait(lock, is_done);
    }
    awaited_.store(kNobody);
  }
  check();
}

void ValueQueue::work() {
  const auto has_work = [&] { return posted_.load() != done_.load() || stopped_.load(); };
  const auto is_worth_it = [&] {
    const std::uint64_t waiting = posted_.load() - done_.load();
    return stopped_.load() || waiting >= kWorthWaking ||
           (waiting != 0 && awaited_.load() != kNobody);
  };
  for (;;) {
    if (!looks_until(has_work)) {
      std::unique_lock<std::mutex> lock(mutex_);
      sleeps_.store(true);
      has_work_.wait(lock, is_worth_it);
      sleeps_.store(false);
    }
    if (stopped_.load()) return;
    const std::uint64_t count = done_.load(std::memory_order_relaxed) + 1;
    Action& action = ring_[count % kMost];
    try {
      if (!failed_.load(std::memory_order_relaxed)) action();
    } catch (...) {
      failure_ = std::current_exception();
      failed_.store(true);
    }
    action = nullptr;
    done_.store(count);
    if (count >= awaited_.load()) {
      { const std::lock_guard<std::mutex> lock(mutex_); }
      has_progress_.notify_one();
    }
  }
}

void ValueQueue::stop() noexcept {
  if (!worker_.joinable()) return;
  stopped_.store(true);
  wake_worker();
  worker_.join();
}

}  // namespace systole::tlm_model

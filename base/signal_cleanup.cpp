#include "base/signal_cleanup.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstring>
#include <stdexcept>

namespace systole::hw {
namespace {

constexpr std::array<int, 4> kEndingSignals = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};

/// More than a run has outputs at once.
constexpr std::size_t kSlots = 128;

/// A fixed table: the handler may neither allocate nor lock.
struct PathSlot {
  enum State : int { kFree, kTaken, kRemembered };
  std::atomic<int> state{kFree};
  std::array<char, PATH_MAX> path;  ///< kRemembered
};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler reads it");

std::array<PathSlot, kSlots> path_slots;

std::size_t take_slot() {
  for (std::size_t i = 0; i < kSlots; ++i) {
    int expected = PathSlot::kFree;
    if (path_slots[i].state.compare_exchange_strong(expected, PathSlot::kTaken)) return i;
  }
  throw std::logic_error("signal cleanup: too many files at once");
}

/// Calls only what POSIX allows in a handler.
void clean_up_and_end(int signal) {
  for (const PathSlot& slot : path_slots) {
    if (slot.state.load() == PathSlot::kRemembered) ::unlink(slot.path.data());
  }
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  ::raise(signal);  // pending until this handler returns
}

sigset_t ending_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : kEndingSignals) ::sigaddset(&set, signal);
  return set;
}

}  // namespace

void install_signal_cleanup() {
  struct sigaction action {};
  action.sa_handler = clean_up_and_end;
  action.sa_mask = ending_signals();
  for (const int signal : kEndingSignals) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
}

HeldSignals::HeldSignals() {
  const sigset_t held = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &held, &before_);
}

HeldSignals::~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

RememberedFile::RememberedFile(const std::string& path) {
  if (path.size() >= PATH_MAX) throw std::logic_error("signal cleanup: path too long");
  slot_ = take_slot();
  std::memcpy(path_slots[slot_].path.data(), path.c_str(), path.size() + 1);
  path_slots[slot_].state = PathSlot::kRemembered;
}

RememberedFile::~RememberedFile() { path_slots[slot_].state = PathSlot::kFree; }

void forget_remembered_files() {
  for (PathSlot& slot : path_slots) slot.state = PathSlot::kFree;
}

}  // namespace systole::hw

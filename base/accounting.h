/// Where a block's time went: counters with names, units and meanings, and a timeline whose parts
/// sum to the whole by construction.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace systole::hw {

/// One figure of a block. Every writer (terminal, JSON, CSV, documentation) gets it in this form.
struct Counter {
  std::string name;
  std::string unit;  ///< "ps", "cycles", "bytes", "requests", ...
  std::string meaning;
  std::uint64_t value = 0;
};

/// Where the time of a server went: busy + all of stalled + idle == total.
struct TimeAccount {
  struct Stall {
    std::string cause;
    std::string meaning;
    std::uint64_t time = 0;
  };
  std::string unit;  ///< "cycles" (of the block's own clock) or "ps"
  std::uint64_t busy = 0;
  std::vector<Stall> stalled;  ///< by cause
  std::uint64_t idle = 0;
  std::uint64_t total = 0;

  [[nodiscard]] std::uint64_t stalled_total() const {
    return std::accumulate(stalled.begin(), stalled.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Stall& stall) { return sum + stall.time; });
  }
};

/// What a block has to say at the end of a run.
struct BlockReport {
  std::string name;
  std::optional<TimeAccount> time;  ///< none of a block whose parts work side by side
  std::vector<Counter> counters;
  std::vector<BlockReport> parts;  ///< channels and banks with their times, initiators without
};

/// All blocks and parts that have an account of their time, by whole names: "array",
/// "dram.channel0".
[[nodiscard]] inline std::vector<BlockReport> accounts_of(const std::vector<BlockReport>& blocks) {
  std::vector<BlockReport> accounts;
  for (const BlockReport& block : blocks) {
    if (block.time) accounts.push_back({block.name, block.time, block.counters, {}});
    for (const BlockReport& part : block.parts) {
      if (part.time) {
        accounts.push_back({block.name + "." + part.name, part.time, part.counters, {}});
      }
    }
  }
  return accounts;
}

/// A counter of a block. Throws std::out_of_range if there is none of that name.
[[nodiscard]] inline std::uint64_t counter_of(const std::vector<BlockReport>& blocks,
                                              std::string_view block, std::string_view name) {
  for (const BlockReport& report : blocks) {
    if (report.name != block) continue;
    for (const Counter& counter : report.counters) {
      if (counter.name == name) return counter.value;
    }
  }
  throw std::out_of_range("no counter " + std::string(block) + "." + std::string(name));
}

/// Watches an account: told what a server does from one time to another, counted or not, in the
/// order of the account. Idle time is not told.
class AccountWatch {
 public:
  /// What a server does: nothing, work, or 2 + i while it waits for cause i.
  static constexpr std::uint8_t kIdle = 0, kBusy = 1, kStalled = 2;

  virtual ~AccountWatch() = default;
  virtual void spend(std::uint64_t from, std::uint64_t to, std::uint8_t state) = 0;
};

/// Timeline of a server that does one thing after another (a channel, a port, a pipeline).
///
/// Time is accounted from 0 to now() without holes: each call moves now() forward and adds the step
/// to exactly one of idle, stalled by one cause, or busy, or to none while time does not count.
/// Hence busy + stalled + idle == total always, which is now() if all time counts. The time unit
/// (cycles, ps) is the block's choice.
class BlockAccount {
 public:
  /// Why a server with work to do does not work; `meaning` is one line of documentation.
  struct Cause {
    std::string name;
    std::string meaning;
  };

  /// `causes[i]` is what the block later calls cause i.
  BlockAccount(std::string unit, const std::vector<Cause>& causes) {
    time_.unit = std::move(unit);
    for (const Cause& cause : causes) time_.stalled.push_back({cause.name, cause.meaning, 0});
  }

  /// No work until `time`. Like the next two, does nothing if `time` has been accounted already.
  void idle_until(std::uint64_t time) { time_.idle += advance(time, AccountWatch::kIdle); }
  /// Work is waiting for `cause` until `time`.
  void stall_until(std::uint64_t time, std::size_t cause) {
    time_.stalled[cause].time +=
        advance(time, static_cast<std::uint8_t>(AccountWatch::kStalled + cause));
  }
  /// Working until `time`.
  void busy_until(std::uint64_t time) { time_.busy += advance(time, AccountWatch::kBusy); }

  /// idle_until(arrival), stall_until(begin, cause) and busy_until(end) in one. Not while watched.
  void serve(std::uint64_t arrival, std::uint64_t begin, std::uint64_t end, std::size_t cause) {
    const std::uint64_t wanted = std::max(now_, arrival), begun = std::max(wanted, begin);
    const std::uint64_t ended = std::max(begun, end), before = std::exchange(now_, ended);
    if (!counting_) return;
    time_.total += ended - before;
    time_.idle += wanted - before;
    time_.stalled[cause].time += begun - wanted;
    time_.busy += ended - begun;
  }

  /// Many steps in one: of the time up to `time`, at least now(), so much was idle, and stalled by
  /// each cause, whose numbers are the indices; busy is the rest. Not while watched, since the
  /// order is lost.
  template <std::size_t kCauses>
  void spend(std::uint64_t time, std::uint64_t idle,
             const std::array<std::uint64_t, kCauses>& stalled) {
    std::uint64_t busy = time - std::exchange(now_, time);
    if (!counting_) return;
    time_.total += busy;
    time_.idle += idle;
    busy -= idle;
    for (std::size_t cause = 0; cause < kCauses; ++cause) {
      time_.stalled[cause].time += stalled[cause];
      busy -= stalled[cause];
    }
    time_.busy += busy;
  }

  /// From `time` on, time counts or it does not, whatever the block does; at first it counts. What
  /// is left before `time` is idle, if it counts. Work that has been accounted beyond `time` stays
  /// where it is.
  void set_counting(bool on, std::uint64_t time) {
    idle_until(time);
    counting_ = on;
  }

  /// Closes the timeline at `end`, the end of the run: what is left is idle. May be called again
  /// with a later end. Throws std::logic_error if time after `end` has been accounted.
  void finish(std::uint64_t end) {
    if (end < now_) throw std::logic_error("BlockAccount: the run ends before its last work");
    idle_until(end);
  }

  /// Closes a copy at `end`.
  [[nodiscard]] BlockReport report(std::string name, std::uint64_t end,
                                   std::vector<Counter> counters) const {
    BlockAccount closed = *this;
    closed.finish(end);
    return {std::move(name), std::move(closed.time_), std::move(counters), {}};
  }

  /// Tells `watch` of the time to come. It has to outlive the account.
  void watch(AccountWatch& watch) noexcept { watch_ = &watch; }

  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }
  /// Of the time that counted so far.
  [[nodiscard]] const TimeAccount& time() const noexcept { return time_; }

 private:
  std::uint64_t advance(std::uint64_t time, std::uint8_t state) {
    if (time <= now_) return 0;
    if (watch_ != nullptr && state != AccountWatch::kIdle) watch_->spend(now_, time, state);
    const std::uint64_t step = time - now_;
    now_ = time;
    if (!counting_) return 0;
    time_.total += step;
    return step;
  }

  TimeAccount time_;
  bool counting_ = true;
  std::uint64_t now_ = 0;
  AccountWatch* watch_ = nullptr;
};

}  // namespace systole::hw

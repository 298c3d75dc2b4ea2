#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/accounting.h"

namespace systole::hw {

/// Reservations of a resource that serves one user at a time, such as a channel of a bus.
///
/// A reservation takes the first gap that is long enough, so a transfer that is already known but
/// far in the future does not block the ones before it. The account lags: time counts as
/// busy or idle once it is over.
class Calendar {
 public:
  explicit Calendar(std::string unit) : account_(std::move(unit), {}) {}

  /// Reserves `length` time units and returns their start, the first possible one >= `earliest`,
  /// which must not lie before the last retire().
  std::uint64_t reserve(std::uint64_t earliest, std::uint64_t length);

  /// No caller will ask for time before `now` any more. Must not go backwards. Cheap: does its work
  /// once in a while.
  void retire(std::uint64_t now) {
    if (booked_.size() >= kBatch) drop(now);
  }

  /// End of the last reservation so far.
  [[nodiscard]] std::uint64_t last_end() const noexcept {
    return booked_.empty() ? account_.now() : booked_.back().end;
  }

  /// From `now` on, time counts or it does not. A reservation in progress is divided. See
  /// BlockAccount::set_counting().
  void set_counting(bool on, std::uint64_t now);

  /// Ends the account at `end`. See BlockAccount::finish().
  void finish(std::uint64_t end);

  [[nodiscard]] const BlockAccount& account() const noexcept { return account_; }

 private:
  struct Interval {
    std::uint64_t begin, end;
  };

  void drop(std::uint64_t now);
  void pass(std::uint64_t now) {
    drop(now);
    account_.idle_until(booked_.empty() ? now : std::min(now, booked_.front().begin));
  }
  void commit(const Interval& interval) {
    account_.idle_until(interval.begin);
    account_.busy_until(interval.end);
  }

  static constexpr std::size_t kBatch = 16;

  std::vector<Interval> booked_;  ///< in order, not overlapping, not touching
  BlockAccount account_;
};

inline void Calendar::drop(std::uint64_t now) {
  std::size_t over = 0;
  while (over < booked_.size() && booked_[over].end <= now) commit(booked_[over++]);
  if (over != 0)
    booked_.erase(booked_.begin(), booked_.begin() + static_cast<std::ptrdiff_t>(over));
}

inline std::uint64_t Calendar::reserve(std::uint64_t earliest, std::uint64_t length) {
  if (length == 0) return earliest;
  if (booked_.empty() || earliest > booked_.back().end) {
    Interval& interval = booked_.emplace_back();
    interval.begin = earliest;
    interval.end = earliest + length;
    return earliest;
  }
  Interval& last = booked_.back();
  if (earliest >= last.begin) {
    const std::uint64_t begin = last.end;
    last.end += length;
    return begin;
  }
  std::size_t next = booked_.size();  // first interval that begins after the reservation
  while (next > 0 && booked_[next - 1].end > earliest) --next;
  std::uint64_t begin = earliest;
  for (; next < booked_.size() && begin + length > booked_[next].begin; ++next) {
    begin = booked_[next].end;
  }
  const bool joins_previous = next > 0 && booked_[next - 1].end == begin;
  const bool joins_next = next < booked_.size() && begin + length == booked_[next].begin;
  const auto at = booked_.begin() + static_cast<std::ptrdiff_t>(next);
  if (joins_previous && joins_next) {
    booked_[next - 1].end = booked_[next].end;
    booked_.erase(at);
  } else if (joins_previous) {
    booked_[next - 1].end += length;
  } else if (joins_next) {
    booked_[next].begin = begin;
  } else {
    booked_.insert(at, {begin, begin + length});
  }
  return begin;
}

inline void Calendar::set_counting(bool on, std::uint64_t now) {
  pass(now);
  if (!booked_.empty() && booked_.front().begin < now) {
    account_.busy_until(now);
    booked_.front().begin = now;
  }
  account_.set_counting(on, now);
}

inline void Calendar::finish(std::uint64_t end) {
  for (const Interval& interval : booked_) commit(interval);
  booked_.clear();
  if (end > account_.now()) account_.idle_until(end);
  account_.finish(end);
}

}  // namespace systole::hw

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
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
  [[gnu::always_inline]] std::uint64_t reserve(std::uint64_t earliest, std::uint64_t length) {
    if (length == 0) return earliest;
    if (booked_.empty() || earliest > booked_.back().last_end()) {
      booked_.push_back({earliest, earliest + length});
      return earliest;
    }
    if (booked_.back().more != 0) detach_last();
    Interval& last = booked_.back();
    if (earliest < last.begin) return reserve_between(earliest, length);
    const std::uint64_t begin = last.end;
    last.end += length;
    return begin;
  }

  /// What as many calls of reserve() do, the i-th with `earliest` + i `step`, if their results are
  /// `step` after each other and their reservations follow all others: returns the first start.
  /// Nothing, and nothing is reserved, if that is not so. `length` and `count` are not 0.
  std::optional<std::uint64_t> reserve_each(std::uint64_t earliest, std::uint64_t step,
                                            std::uint64_t count, std::uint64_t length);

  /// Takes back the last `count` of more reservations that reserve_each() has just made, each of
  /// that `length`.
  void give_back(std::uint64_t count, std::uint64_t length) {
    Interval& last = booked_.back();
    if (last.more != 0) {
      last.more -= count;
    } else {
      last.end -= count * length;
    }
  }

  /// For which `earliest`, from the first to the second, reserve_each() would return `begin`, for
  /// any number of reservations of that step and length. Nothing: for none.
  [[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>> earliest_for(
      std::uint64_t begin, std::uint64_t step, std::uint64_t length) const {
    if (step < length || begin < last_end()) return std::nullopt;
    const bool joins = !booked_.empty() && step == length && booked_.back().more == 0 &&
                       begin == booked_.back().end;
    return std::pair(joins ? booked_.back().begin : begin, begin);
  }

  /// No caller will ask for time before `now` any more. Must not go backwards. Cheap: does its work
  /// once in a while.
  void retire(std::uint64_t now) {
    if (booked_.size() >= kBatch) drop(now);
  }

  /// End of the last reservation so far.
  [[nodiscard]] std::uint64_t last_end() const noexcept {
    return booked_.empty() ? account_.now() : booked_.back().last_end();
  }

  /// From `now` on, time counts or it does not. A reservation in progress is divided. See
  /// BlockAccount::set_counting().
  void set_counting(bool on, std::uint64_t now);

  /// Ends the account at `end`. See BlockAccount::finish().
  void finish(std::uint64_t end);

  [[nodiscard]] const BlockAccount& account() const noexcept { return account_; }

 private:
  /// A reservation, and `more` like it, each `step` after the one before.
  struct Interval {
    std::uint64_t begin, end;
    std::uint64_t step = 0, more = 0;
    [[nodiscard]] std::uint64_t last_end() const noexcept { return end + more * step; }
  };

  /// Makes the last of several like reservations one by itself.
  void detach_last() {
    Interval& last = booked_.back();
    const std::uint64_t later = last.more-- * last.step;
    booked_.push_back({last.begin + later, last.end + later});
  }
  /// Makes each reservation from that of index `first` on one by itself.
  void detach_from(std::size_t first);
  /// A reservation before the last one, if there is a gap.
  std::uint64_t reserve_between(std::uint64_t earliest, std::uint64_t length);
  void drop(std::uint64_t now);
  void pass(std::uint64_t now) {
    detach_from(0);
    drop(now);
    account_.idle_until(booked_.empty() ? now : std::min(now, booked_.front().begin));
  }
  void commit(const Interval& interval) {
    account_.idle_until(interval.begin);
    account_.busy_until(interval.end);
  }

  static constexpr std::size_t kBatch = 16;

  std::vector<Interval> booked_;  ///< in order, not overlapping
  bool has_like_ = false;         ///< some of them may stand for several
  BlockAccount account_;
};

inline std::optional<std::uint64_t> Calendar::reserve_each(std::uint64_t earliest,
                                                           std::uint64_t step, std::uint64_t count,
                                                           std::uint64_t length) {
  if (step < length) return std::nullopt;
  const bool joined = step == length;  // one long reservation
  if (!booked_.empty() && earliest <= booked_.back().last_end()) {
    Interval& last = booked_.back();
    if (joined && last.more == 0 && earliest >= last.begin) {
      const std::uint64_t begin = last.end;
      last.end += count * length;
      return begin;
    }
    if (earliest < last.last_end()) return std::nullopt;
  }
  if (joined) {
    booked_.push_back({earliest, earliest + count * length});
  } else {
    booked_.push_back({earliest, earliest + length, step, count - 1});
    has_like_ = true;
  }
  return earliest;
}

inline void Calendar::detach_from(std::size_t first) {
  if (!has_like_) return;
  has_like_ = first != 0;  // those before it may be
  const std::vector<Interval> like(booked_.begin() + static_cast<std::ptrdiff_t>(first),
                                   booked_.end());
  booked_.resize(first);
  for (const Interval& of : like) {
    for (std::uint64_t i = 0; i <= of.more; ++i) {
      booked_.push_back({of.begin + i * of.step, of.end + i * of.step});
    }
  }
}

inline void Calendar::drop(std::uint64_t now) {
  std::size_t over = 0;
  std::uint64_t time = account_.now(), idle = 0;
  for (; over < booked_.size() && booked_[over].end <= now; ++over) {
    Interval& of = booked_[over];
    const std::uint64_t later = of.more == 0 ? 0 : std::min(of.more, (now - of.end) / of.step);
    idle += std::max(of.begin, time) - time + later * (of.step - (of.end - of.begin));
    time = std::max(of.end + later * of.step, time);
    if (later == of.more) continue;
    const std::uint64_t passed = (later + 1) * of.step;
    of = {of.begin + passed, of.end + passed, of.step, of.more - later - 1};
    break;
  }
  account_.spend(std::max(time, account_.now()), idle, std::array<std::uint64_t, 0>{});
  booked_.erase(booked_.begin(), booked_.begin() + static_cast<std::ptrdiff_t>(over));
}

inline std::uint64_t Calendar::reserve_between(std::uint64_t earliest, std::uint64_t length) {
  std::size_t next = booked_.size();  // first interval that begins after the reservation
  while (next > 0 && booked_[next - 1].last_end() > earliest) --next;
  detach_from(next);
  while (booked_[next].end <= earliest) ++next;
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
  detach_from(0);
  for (const Interval& interval : booked_) commit(interval);
  booked_.clear();
  if (end > account_.now()) account_.idle_until(end);
  account_.finish(end);
}

}  // namespace systole::hw

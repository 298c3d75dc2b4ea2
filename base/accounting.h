/// Where a block's time went: counters with names, units and meanings, and a timeline whose parts
/// sum to the whole by construction.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace systole::hw {

/// One figure of a block. Every writer (terminal, JSON, CSV, documentation) gets it in this form.
struct Counter {
  std::string name;  ///< dotted path inside the block, "channel0.stalled.refresh"
  std::string unit;  ///< "ps", "cycles", "bytes", "requests", ...
  std::string meaning;
  std::uint64_t value = 0;
};

/// Hands a counter to `visit`, which takes a Counter or just a name and a value.
template <typename Visitor>
void visit_counter(Visitor& visit, const Counter& counter) {
  if constexpr (std::is_invocable_v<Visitor&, const Counter&>) {
    visit(counter);
  } else {
    visit(counter.name, counter.value);
  }
}

/// Timeline of a server that does one thing after another (a channel, a port, a pipeline).
///
/// Time is accounted from 0 to now() without holes: each call moves now() forward and adds the step
/// to exactly one of idle, stalled by one cause, or busy, or to none while time does not count.
/// Hence busy + stalled + idle == total() always, which is now() if all time counts. The time unit
/// (cycles, ps) is the block's choice.
class BlockAccount {
 public:
  /// Why a server with work to do does not work; `meaning` is one line of documentation.
  struct Cause {
    std::string name;
    std::string meaning;
  };

  /// `causes[i]` is what the block later calls cause i.
  BlockAccount(std::string unit, std::vector<Cause> causes)
      : unit_(std::move(unit)), causes_(std::move(causes)), stalled_(causes_.size(), 0) {}

  /// No work until `time`. Like the next two, does nothing if `time` has been accounted already.
  void idle_until(std::uint64_t time) { idle_ += advance(time); }
  /// Work is waiting for `cause` until `time`.
  void stall_until(std::uint64_t time, std::size_t cause) { stalled_[cause] += advance(time); }
  /// Working until `time`.
  void busy_until(std::uint64_t time) { busy_ += advance(time); }

  /// One piece of work in order: it arrived at `arrival` and was worked on in [start, end). The gap
  /// between max(end of the previous piece, arrival) and start is `cause`. Throws std::logic_error
  /// if it starts before its predecessor ended, before it arrived, or after its end.
  void serve(std::uint64_t arrival, std::uint64_t start, std::uint64_t end, std::size_t cause) {
    if (start < std::max(now_, arrival) || end < start) {
      throw std::logic_error("BlockAccount: work overlaps its predecessor or precedes its arrival");
    }
    idle_until(arrival);
    stall_until(start, cause);
    busy_until(end);
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

  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }
  /// Time that counted so far.
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  [[nodiscard]] std::uint64_t busy() const noexcept { return busy_; }
  [[nodiscard]] std::uint64_t idle() const noexcept { return idle_; }
  [[nodiscard]] std::uint64_t stalled(std::size_t cause) const { return stalled_.at(cause); }

  /// Visits busy, stalled.<cause>, idle and total, each name after `prefix`.
  template <typename Visitor>
  void for_each(Visitor visit, const std::string& prefix = {}) const {
    const auto show = [&](const std::string& name, const std::string& meaning,
                          std::uint64_t value) {
      visit_counter(visit, Counter{prefix + name, unit_, meaning, value});
    };
    show("busy", "working", busy_);
    for (std::size_t i = 0; i < causes_.size(); ++i) {
      show("stalled." + causes_[i].name, causes_[i].meaning, stalled_[i]);
    }
    show("idle", "nothing to do", idle_);
    show("total", "busy, stalled and idle together", total_);
  }

 private:
  std::uint64_t advance(std::uint64_t time) noexcept {
    if (time <= now_) return 0;
    const std::uint64_t step = time - now_;
    now_ = time;
    if (!counting_) return 0;
    total_ += step;
    return step;
  }

  std::string unit_;
  std::vector<Cause> causes_;
  std::vector<std::uint64_t> stalled_;
  bool counting_ = true;
  std::uint64_t now_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t busy_ = 0;
  std::uint64_t idle_ = 0;
};

}  // namespace systole::hw

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "hw/array/accumulator.h"
#include "hw/core/operand_stream.h"
#include "support/array/reads_case.h"

namespace systole::hw {

/// What tlm/core/array_unit.cpp does: an action of it each time something is due, or sooner. Of
/// others it knows what they have done by then.
class ModelArray {
 public:
  /// Sees it after each action.
  using Look = std::function<void(std::uint64_t now, OperandStream& stream, const BankService&)>;

  ModelArray(const ReadsCase& test, const std::vector<std::uint64_t>& ready, Look look)
      : test_(test),
        banks_(test.machine.scratchpad.banks, test.machine.scratchpad.ports),
        ready_(ready),
        stream_(test.machine),
        look_(std::move(look)) {
    stream_.steps().keep_sums();
  }

  /// Until all sums have left the array.
  std::vector<FoldTimes> run() {
    for (std::size_t c = 0; c < test_.matmuls.size(); ++c) run(c);
    while (!leaving_.empty()) leave();
    know_others(free_ + 200);
    look_(free_ + 200, stream_, banks_);
    return times_;
  }
  std::uint64_t conflicts = 0;
  std::size_t hidden = 0, late = 0, in_between = 0;

 private:
  void run(std::size_t c) {
    const cmd::Matmul& matmul = test_.matmuls[c];
    const std::uint64_t started = std::max(ready_[c], free_);
    while (!leaving_.empty() && leaving_.front().left <= started) leave();
    number_ = c;
    stream_.begin(matmul, started, ready_[c]);
    const std::uint64_t exposed = stream_.exposed();
    std::uint64_t now = started;
    for (;;) {
      while (!leaving_.empty() && leaving_.front().left <= now) leave();
      const std::uint64_t end = advance(now);
      if (end <= now) break;
      now = random_() % 2 == 0 ? end : std::min(end, now + 1 + random_() % 30);
    }
    free_ = now;
    conflicts += now - started - stream_.moved();
    hidden += stream_.continues() && exposed == 0 ? 1U : 0U;
    in_between += stream_.continues() && exposed != 0 ? 1U : 0U;
    late += stream_.continues() ? 0U : 1U;
    times_.push_back({0, now, 0});
    const std::uint64_t ended = stream_.end(now);
    leaving_.push_back({c, ended, stream_.leaves(ended, now)});
  }
  void know_others(std::uint64_t now) {
    for (; known_ < test_.others.size() && test_.others[known_].from < now; ++known_) {
      add_words(banks_, test_.others[known_]);
    }
  }
  std::uint64_t advance(std::uint64_t now) {
    know_others(now);
    using Next = OperandStream::Next;
    const std::uint64_t end =
        stream_.advance(banks_, now, [&](std::size_t ahead) -> std::optional<Next> {
          const std::size_t next = number_ + ahead;
          if (next >= ready_.size() || ready_[next] > now) return std::nullopt;
          return Next{&test_.matmuls[next], ready_[next]};
        });
    if (random_() % 4 != 0) look_(now, stream_, banks_);
    return end;
  }
  void leave() {
    Leaving& first = leaving_.front();
    (void)advance(first.left);
    const std::uint64_t left = stream_.leaves(first.ended, first.left);
    if (left != first.left) {
      first.left = left;
      return;
    }
    times_[first.matmul].completed = left + kMatmulRegisterCycles + kAccumulatorWriteCycles;
    leaving_.pop_front();
  }

  struct Leaving {
    std::size_t matmul;
    std::uint64_t ended, left;
  };
  const ReadsCase& test_;
  BankService banks_;
  std::size_t known_ = 0;
  const std::vector<std::uint64_t>& ready_;
  OperandStream stream_;
  std::mt19937_64 random_{5};
  std::size_t number_ = 0;
  std::uint64_t free_ = 0;
  std::deque<Leaving> leaving_;
  std::vector<FoldTimes> times_;
  const Look look_;
};

/// Cycles from which random matmuls are ready, one after the other, and what gates do with them.
inline std::vector<std::uint64_t> random_starts(std::mt19937_64& random, std::size_t matmuls) {
  std::vector<std::uint64_t> ready(matmuls);
  std::uint64_t last = 0;
  for (std::uint64_t& cycle : ready) {
    cycle = last += random() % 3 == 0 ? random() % 400 : random() % 20;
  }
  return ready;
}
/// `banks`: as gates() leaves them.
inline FoldSchedule gates_from(const ReadsCase& test, const std::vector<std::uint64_t>& ready,
                               BankService& banks) {
  std::vector<FoldCommand> commands;
  FoldSchedule schedule;
  for (std::size_t c = 0; c < ready.size(); ++c) {
    const std::uint64_t free = c == 0 ? 0 : schedule.times[c - 1].free;
    commands.push_back(fold_command(test.matmuls[c], std::max(ready[c], free)));
    banks = banks_of(test, 1);
    schedule = gates(test, commands, banks);
  }
  return schedule;
}
inline FoldSchedule gates_from(const ReadsCase& test, const std::vector<std::uint64_t>& ready) {
  BankService banks(1);
  return gates_from(test, ready, banks);
}

}  // namespace systole::hw

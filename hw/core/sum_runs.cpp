#include "hw/core/sum_runs.h"

#include <iterator>

namespace systole::hw {
namespace {

/// Looks so often, in runs, for some that can be forgotten.
constexpr std::size_t kBetween = 64;

}  // namespace

void SumRuns::add(const Run& run) {
  forget_before(run);
  runs_.push_back(run);
}

void SumRuns::forget_before(const Run& next) {
  // Moves before the last one of sums that are written in the cycle before the first that is asked
  // for, at least.
  std::uint64_t moves = next.before - std::min(next.before, kLater + 1);
  if (kept_from_ < next.begin) {
    if (runs_.size() % kBetween != 0) return;
    const std::uint64_t last_move = kept_from_ - std::min(kept_from_, kLater + 1);
    const auto after = std::upper_bound(
        runs_.begin() + static_cast<std::ptrdiff_t>(first_), runs_.end(), last_move,
        [](std::uint64_t cycle, const Run& each) { return cycle < each.begin; });
    if (after == runs_.begin() + static_cast<std::ptrdiff_t>(first_)) return;
    moves = std::prev(after)->before;
  }
  while (first_ != runs_.size() && runs_[first_].before + runs_[first_].steps + skew_ < moves) {
    ++first_;
  }
  if (first_ < kBetween || first_ <= runs_.size() / 2) return;
  runs_.erase(runs_.begin(), runs_.begin() + static_cast<std::ptrdiff_t>(first_));
  first_ = 0;
}

const SumRuns::Sums& SumRuns::in(std::uint64_t cycle, const Known& known,
                                 const BankService& banks) {
  if (cycle < from_ || cycle >= to_) {
    // Those of the cycle before are asked for next.
    const std::uint64_t first = cycle - std::min<std::uint64_t>(cycle, 1);
    const bool goes_on = from_ <= first && first < to_ + kWindow / 2;
    if (!goes_on) from_ = to_ = first;
    find(to_, std::min(known_before(known), cycle + kWindow / 2), known, banks);
  }
  return sums_[cycle % kWindow];
}

SumRuns::Sums SumRuns::sums_of(const Run& run, std::uint64_t step) const {
  const std::uint64_t fold = step / run.interval, row = step % run.interval;
  if (row >= run.rows) return {};
  const std::uint64_t depth = run.depth + fold;
  const std::uint64_t column = run.column + depth / run.depths;
  return {run.c + (run.row + row) * run.pitch + column * cols_, true,
          run.accumulate || depth % run.depths != 0};
}

void SumRuns::find_moves(const Run& run, const BankService& banks) {
  if (moves_of_ == run.begin) return;
  moves_of_ = run.begin;
  moves_.clear();
  std::uint64_t at = run.begin;
  for (std::uint64_t step = 0; step < run.steps; ++step) {
    at = banks.pass(at, run.reads, 1, run.end).end;
    moves_.push_back(at - 1);
  }
}

std::optional<std::uint64_t> SumRuns::step_of(const Run& run, std::uint64_t cycles) {
  const std::uint64_t fold = run.interval + run.waits;  // its cycles
  const std::uint64_t first = cycles / fold * run.interval, in_fold = cycles % fold;
  if (in_fold >= 2 * run.waits) return first + in_fold - run.waits;
  return in_fold % 2 == 0 ? std::nullopt : std::optional(first + in_fold / 2);
}

void SumRuns::find(std::uint64_t from, std::uint64_t to, const Known& known,
                   const BankService& banks) {
  if (sums_.empty()) sums_.resize(kWindow);
  // The run whose steps a cycle is one of, or the first after it, and the one whose rows leave
  // then.
  std::size_t now = first_, leaves = first_;
  for (std::uint64_t cycle = from; cycle < to; ++cycle) {
    Sums& sums = sums_[cycle % kWindow];
    sums = {};
    if (cycle < kLater) continue;
    const std::uint64_t last_move = cycle - kLater;
    while (now != runs_.size() && runs_[now].end <= last_move) ++now;
    std::uint64_t moves = 0;  // before it
    if (now != runs_.size() && runs_[now].begin <= last_move) {
      const Run& run = runs_[now];
      moves = run.before + last_move - run.begin;
      if (run.waits != 0) {
        const std::optional<std::uint64_t> step = step_of(run, last_move - run.begin);
        if (!step) continue;
        moves = run.before + *step;
      } else if (run.end - run.begin != run.steps) {
        find_moves(run, banks);
        const auto move = std::lower_bound(moves_.begin(), moves_.end(), last_move);
        if (move == moves_.end() || *move != last_move) continue;
        moves = run.before + static_cast<std::uint64_t>(move - moves_.begin());
      }
    } else if (now == first_) {
      continue;
    } else if (last_move >= known.held_from) {
      continue;
    } else {
      const Run& run = runs_[now - 1];
      moves = run.before + run.steps + last_move - run.end;
    }
    if (moves < skew_) continue;
    const std::uint64_t taken = moves - skew_;
    while (leaves != runs_.size() && runs_[leaves].before + runs_[leaves].steps <= taken) ++leaves;
    if (leaves == runs_.size() || runs_[leaves].before > taken) continue;
    sums = sums_of(runs_[leaves], taken - runs_[leaves].before);
  }
  to_ = to;
  from_ = std::max(from_, to_ - std::min(to_, kWindow));
}

}  // namespace systole::hw

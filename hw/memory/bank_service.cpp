#include "hw/memory/bank_service.h"

#include <algorithm>
#include <limits>

namespace systole::hw {

std::size_t BankService::Busy::after(std::uint64_t at) const {
  const auto found = std::partition_point(intervals_.begin(), intervals_.end(),
                                          [at](const Interval& use) { return use.end <= at; });
  return static_cast<std::size_t>(found - intervals_.begin());
}

std::uint64_t BankService::Busy::free_from(std::uint64_t at) const {
  const std::size_t use = after(at);
  const bool taken = use < intervals_.size() && intervals_[use].begin <= at;
  return taken ? intervals_[use].end : at;
}

std::uint64_t BankService::Busy::next(std::uint64_t at) const {
  const std::size_t use = after(at);
  if (use == intervals_.size()) return std::numeric_limits<std::uint64_t>::max();
  return std::max(at, intervals_[use].begin);
}

void BankService::Busy::add(std::uint64_t begin, std::uint64_t end) {
  const std::size_t use = after(begin);
  const bool joins_next = use < intervals_.size() && intervals_[use].begin == end;
  const bool joins_last = use > 0 && intervals_[use - 1].end == begin;
  const auto at = intervals_.begin() + static_cast<std::ptrdiff_t>(use);
  if (joins_last && joins_next) {
    intervals_[use - 1].end = intervals_[use].end;
    intervals_.erase(at);
  } else if (joins_last) {
    intervals_[use - 1].end = end;
  } else if (joins_next) {
    intervals_[use].begin = begin;
  } else {
    intervals_.insert(at, {begin, end});
  }
}

void BankService::Busy::prune_before(std::uint64_t cycle) {
  intervals_.erase(intervals_.begin(),
                   intervals_.begin() + static_cast<std::ptrdiff_t>(after(cycle)));
}

std::uint64_t BankService::serve_access(std::uint64_t at, const BankAccess& access) {
  Busy& bank = banks_.at(access.bank);
  at = bank.free_from(at);
  if (access.crosses) {
    Busy& next = banks_.at(access.bank + std::size_t{1});
    for (std::uint64_t both = next.free_from(at); both != at; both = next.free_from(at)) {
      at = bank.free_from(both);
    }
    next.add(at, at + 1);
  }
  bank.add(at, at + 1);
  return at;
}

bool BankService::is_free(std::uint64_t at, const BankAccess& access) const {
  const auto free = [&](std::size_t bank) { return banks_.at(bank).free_from(at) == at; };
  return free(access.bank) && (!access.crosses || free(access.bank + std::size_t{1}));
}

bool BankService::serves(std::uint64_t at, const BankAccess& access) {
  if (!is_free(at, access)) return false;
  (void)serve_access(at, access);
  return true;
}

BankService::Served BankService::serve(std::uint64_t at, const BankStep& step) {
  Served served{at, at, 0};
  if (step.first) served.first = serve_access(at, *step.first);
  if (step.second) served.second = serve_access(at, *step.second);
  served.end = std::max(served.first, served.second) + 1;
  return served;
}

std::uint64_t BankService::serve(std::uint64_t at, const BankStep& step, std::uint64_t count) {
  if (!step.first && !step.second) return at + count;
  const bool crosses = (step.first && step.first->crosses) || (step.second && step.second->crosses);
  const bool same = step.first && step.second && step.first->bank == step.second->bank;
  const std::uint64_t cycles = same ? 2 : 1;  // of a step without a conflict
  while (count != 0) {
    std::uint64_t disturbed = std::numeric_limits<std::uint64_t>::max();
    if (step.first) disturbed = banks_.at(step.first->bank).next(at);
    if (step.second) disturbed = std::min(disturbed, banks_.at(step.second->bank).next(at));
    const std::uint64_t quiet = std::min(count, (disturbed - at) / cycles);
    if (quiet == 0 || crosses) {
      at = serve(at, step).end;
      --count;
      continue;
    }
    const std::uint64_t end = at + quiet * cycles;
    if (step.first) banks_[step.first->bank].add(at, end);
    if (step.second && !same) banks_[step.second->bank].add(at, end);
    at = end;
    count -= quiet;
  }
  return at;
}

void BankService::prune_before(std::uint64_t cycle) {
  for (Busy& bank : banks_) bank.prune_before(cycle);
}

}  // namespace systole::hw

#include "hw/memory/bank_service.h"

#include <algorithm>
#include <array>
#include <limits>

namespace systole::hw {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
/// Accesses of a step: two operands, two words of each, in two banks.
constexpr std::size_t kMostAccesses = 8;

}  // namespace

std::size_t BankService::Busy::after(std::uint64_t at) const {
  // Most ask for cycles that nobody uses yet.
  if (is_free_from(at)) return intervals_.size();
  const auto begin = intervals_.begin() + static_cast<std::ptrdiff_t>(first_);
  const auto found = std::partition_point(begin, intervals_.end(),
                                          [at](const Interval& use) { return use.end <= at; });
  return static_cast<std::size_t>(found - intervals_.begin());
}

class BankService::Busy::Cursor {
 public:
  Cursor(const Interval* at, const Interval* end) : at_(at), end_(end) {}

  [[nodiscard]] std::uint64_t free_from(std::uint64_t cycle) {
    pass(cycle);
    return at_ != end_ && at_->begin <= cycle ? at_->end : cycle;
  }
  [[nodiscard]] std::uint64_t next(std::uint64_t cycle) {
    pass(cycle);
    return at_ == end_ ? kNever : std::max(cycle, at_->begin);
  }

 private:
  void pass(std::uint64_t cycle) {
    while (at_ != end_ && at_->end <= cycle) ++at_;
  }

  const Interval *at_, *end_;
};

BankService::Busy::Cursor BankService::Busy::cursor(std::uint64_t at) const {
  return {intervals_.data() + after(at), intervals_.data() + intervals_.size()};
}

BankService::Busy::Cursor BankService::Bank::cursor(std::uint64_t at) const {
  return ports_.back().cursor(at);
}

std::uint64_t BankService::Busy::free_from(std::uint64_t at) const {
  return cursor(at).free_from(at);
}

std::uint64_t BankService::Busy::next(std::uint64_t at) const { return cursor(at).next(at); }

std::uint64_t BankService::Busy::used(std::uint64_t from, std::uint64_t to) const {
  std::uint64_t sum = 0;
  for (std::size_t i = after(from); i < intervals_.size() && intervals_[i].begin < to; ++i) {
    sum += std::min(intervals_[i].end, to) - std::max(intervals_[i].begin, from);
  }
  return sum;
}

void BankService::Busy::add(std::uint64_t begin, std::uint64_t end) {
  const std::size_t use = after(begin);
  const bool joins_next = use < intervals_.size() && intervals_[use].begin == end;
  const bool joins_last = use > first_ && intervals_[use - 1].end == begin;
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

void BankService::Busy::begin_last(std::uint64_t begin, std::uint64_t end) {
  intervals_.push_back({begin, end});
}

void BankService::Busy::prune_before(std::uint64_t cycle) {
  first_ = after(cycle);
  // Moving what is left costs less than what has gone did.
  if (first_ * 2 < intervals_.size()) return;
  intervals_.erase(intervals_.begin(), intervals_.begin() + static_cast<std::ptrdiff_t>(first_));
  first_ = 0;
}

std::uint32_t BankService::Bank::used(std::uint64_t at) const {
  std::uint32_t used = 0;
  while (used < ports_.size() && ports_[used].free_from(at) != at) ++used;
  return used;
}

std::uint64_t BankService::Bank::used(std::uint64_t from, std::uint64_t to) const {
  std::uint64_t sum = 0;
  for (const Busy& port : ports_) sum += port.used(from, to);
  return sum;
}

void BankService::Bank::add(std::uint64_t begin, std::uint64_t end, std::size_t port) {
  Busy& busy = ports_[port];
  while (begin < end) {
    const std::uint64_t free = std::min(busy.free_from(begin), end);
    if (free != begin) {
      add(begin, free, port + 1);
      begin = free;
      continue;
    }
    const std::uint64_t stop = std::min(busy.next(begin), end);
    busy.add(begin, stop);
    begin = stop;
  }
}

void BankService::Bank::prune_before(std::uint64_t cycle) {
  for (Busy& port : ports_) port.prune_before(cycle);
}

/// What a step wants, by bank.
struct BankService::Demands {
  std::array<Demand, kMostAccesses> of{};
  std::size_t banks = 0;
  std::uint32_t most = 0;
  bool crosses = false;

  explicit Demands(const BankStep& step) {
    add(step.first, step.first_times);
    add(step.second, step.second_times);
  }

 private:
  void add(const std::optional<BankAccess>& access, std::uint32_t times) {
    if (!access) return;
    add(access->bank, times);
    if (!access->crosses) return;
    add(access->bank + 1, times);
    crosses = true;
  }
  void add(std::uint32_t bank, std::uint32_t times) {
    std::size_t i = 0;
    while (i < banks && of[i].bank != bank) ++i;
    if (i == banks) of[banks++] = {bank, 0};
    of[i].accesses += times;
    most = std::max(most, of[i].accesses);
  }
};

/// Ports that a step has been served at, before they are added to the banks.
class BankService::Taken {
 public:
  void add(std::uint32_t bank, std::uint64_t cycle) { at_[count_++] = {bank, cycle}; }
  [[nodiscard]] std::uint32_t of(std::uint32_t bank, std::uint64_t cycle) const {
    std::uint32_t taken = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (at_[i].bank == bank && at_[i].cycle == cycle) ++taken;
    }
    return taken;
  }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  void add_to(std::vector<Bank>& banks) const {
    for (std::size_t i = 0; i < count_; ++i) {
      banks[at_[i].bank].add(at_[i].cycle, at_[i].cycle + 1);
    }
  }

 private:
  struct Port {
    std::uint32_t bank = 0;
    std::uint64_t cycle = 0;
  };
  std::array<Port, kMostAccesses> at_;
  std::size_t count_ = 0;
};

// The first cycle from `at` on in which others leave a step fewer ports than it wants.
std::uint64_t BankService::disturbed_from(std::uint64_t at, const Demands& demands) const {
  std::uint64_t disturbed = kNever;
  for (std::size_t i = 0; i < demands.banks; ++i) {
    const auto& [bank, accesses] = demands.of[i];
    const std::uint32_t left = ports_ - std::min(accesses, ports_);
    disturbed = std::min(disturbed, banks_.at(bank).next(at, left + 1));
  }
  return disturbed;
}

// The first cycle from `at` on in which all banks of an access have a port beside those taken.
std::uint64_t BankService::find(std::uint64_t at, const BankAccess& access,
                                const Taken& taken) const {
  const auto free_from = [&](std::uint32_t bank, std::uint64_t cycle) {
    for (;;) {
      cycle = banks_.at(bank).free_from(cycle);
      if (taken.empty()) return cycle;
      const std::uint32_t own = taken.of(bank, cycle);
      if (own == 0 || banks_[bank].used(cycle) + own < ports_) return cycle;
      ++cycle;
    }
  };
  at = free_from(access.bank, at);
  if (!access.crosses) return at;
  for (;;) {
    const std::uint64_t both = free_from(access.bank + 1, at);
    if (both == at) return at;
    at = free_from(access.bank, both);
  }
}

BankService::Served BankService::find(std::uint64_t at, const BankStep& step, Taken& taken) const {
  Served served{at, at, 0};
  const auto take = [&](const std::optional<BankAccess>& access, std::uint32_t times,
                        std::uint64_t& cycle) {
    if (!access) return;
    for (std::uint32_t i = 0; i < times; ++i) {
      cycle = find(cycle, *access, taken);
      taken.add(access->bank, cycle);
      if (access->crosses) taken.add(access->bank + 1, cycle);
    }
  };
  take(step.first, step.first_times, served.first);
  take(step.second, step.second_times, served.second);
  served.end = std::max(served.first, served.second) + 1;
  return served;
}

bool BankService::is_free(std::uint64_t at, const BankAccess& access) const {
  return find(at, access, {}) == at;
}

bool BankService::serves(std::uint64_t at, const BankAccess& access) {
  if (!is_free(at, access)) return false;
  (void)serve(at, {access, std::nullopt});
  return true;
}

BankService::Served BankService::serve(std::uint64_t at, const BankStep& step) {
  Taken taken;
  const Served served = find(at, step, taken);
  taken.add_to(banks_);
  return served;
}

BankService::Served BankService::look(std::uint64_t at, const BankStep& step) const {
  Taken taken;
  return find(at, step, taken);
}

std::uint64_t BankService::Bank::serve_between(std::uint64_t at, std::uint64_t count) {
  Busy& port = ports_.front();
  while (count != 0) {
    at = port.free_from(at);
    const std::uint64_t served = std::min(count, port.next(at) - at);
    port.add(at, at + served);
    at += served;
    count -= served;
  }
  return at;
}

std::uint64_t BankService::serve(std::uint64_t at, const BankStep& step, std::uint64_t count) {
  const Demands demands(step);
  if (demands.banks == 0) return at + count;
  const std::uint32_t cycles = (demands.most + ports_ - 1) / ports_;  // without a conflict
  while (count != 0) {
    const std::uint64_t quiet = std::min(count, (disturbed_from(at, demands) - at) / cycles);
    // Steps of several cycles leave a pattern if their accesses are no multiple of the ports.
    const bool even = cycles == 1 || ports_ == 1;
    if (quiet == 0 || demands.crosses || !even) {
      at = serve(at, step).end;
      --count;
      continue;
    }
    const std::uint64_t end = at + quiet * cycles;
    for (std::size_t i = 0; i < demands.banks; ++i) {
      const auto& [bank, accesses] = demands.of[i];
      if (cycles == 1) {
        for (std::uint32_t a = 0; a < accesses; ++a) banks_[bank].add(at, end);
      } else if (accesses == cycles) {
        banks_[bank].add(at, end);
      } else {
        // Served at the begin of each step, and idle while the other operand is.
        for (std::uint64_t begin = at; begin != end; begin += cycles) {
          banks_[bank].add(begin, begin + accesses);
        }
      }
    }
    at = end;
    count -= quiet;
  }
  return at;
}

BankService::Passed BankService::pass_once(std::uint64_t at, std::uint32_t first,
                                           std::optional<std::uint32_t> second, std::uint64_t count,
                                           std::uint64_t until) const {
  Busy::Cursor a = banks_.at(first).cursor(at);
  Busy::Cursor b = second ? banks_.at(*second).cursor(at) : a;
  Passed passed{0, at};
  while (passed.steps != count && passed.end < until) {
    const std::uint64_t disturbed = std::min(
        second ? std::min(a.next(passed.end), b.next(passed.end)) : a.next(passed.end), until);
    if (disturbed != passed.end) {
      const std::uint64_t quiet = std::min(count - passed.steps, disturbed - passed.end);
      passed.end += quiet;
      passed.steps += quiet;
      continue;
    }
    std::uint64_t served = a.free_from(passed.end);
    if (second) served = std::max(served, b.free_from(passed.end));
    if (served >= until) return passed;
    passed.end = served + 1;
    ++passed.steps;
  }
  return passed;
}

BankService::Passed BankService::pass(std::uint64_t at, const BankStep& step, std::uint64_t count,
                                      std::uint64_t until) const {
  const BankAccess* const one = step.first ? &*step.first : step.second ? &*step.second : nullptr;
  if (one == nullptr) {
    const std::uint64_t steps = std::min(count, until - std::min(at, until));
    return {steps, at + steps};
  }
  const bool both = step.first && step.second;
  if (ports_ == 1 && step.first_times == 1 && step.second_times == 1 && !one->crosses &&
      (!both || (!step.second->crosses && step.second->bank != one->bank))) {
    return pass_once(at, one->bank, both ? std::optional(step.second->bank) : std::nullopt, count,
                     until);
  }
  Passed passed{0, at};
  const Demands demands(step);
  const std::uint32_t cycles = (demands.most + ports_ - 1) / ports_;  // without a conflict
  while (passed.steps != count) {
    if (passed.end + cycles > until) return passed;
    const std::uint64_t disturbed = std::min(until, disturbed_from(passed.end, demands));
    const std::uint64_t quiet = std::min(count - passed.steps, (disturbed - passed.end) / cycles);
    if (quiet != 0) {
      passed.end += quiet * cycles;
      passed.steps += quiet;
      continue;
    }
    Taken taken;
    const std::uint64_t end = find(passed.end, step, taken).end;
    if (end > until) return passed;
    passed.end = end;
    ++passed.steps;
  }
  return passed;
}

std::uint64_t BankService::next_use(std::size_t first_bank, std::size_t last_bank,
                                    std::uint64_t at) const {
  std::uint64_t next = kNever;
  for (std::size_t bank = first_bank; bank <= last_bank; ++bank) {
    next = std::min(next, banks_.at(bank).next(at, 1));
  }
  return next;
}

std::uint64_t BankService::used(std::size_t bank, std::uint64_t from, std::uint64_t to) const {
  return banks_.at(bank).used(from, to);
}

void BankService::prune_before(std::uint64_t cycle) {
  for (Bank& bank : banks_) bank.prune_before(cycle);
}

}  // namespace systole::hw

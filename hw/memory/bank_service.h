#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/round.h"

/// The cycle contract of a memory with banks that serve an access of each port in a cycle, for
/// clients of different priority: in which cycle each access is served.
/// rtl/core/systole_scratchpad.sv meets it with one port.
namespace systole::hw {

/// Where an access goes. One that ends in the next bank takes both in the same cycle.
struct BankAccess {
  std::uint32_t bank = 0;
  bool crosses = false;
};
/// The access of `bytes` bytes from `address` on, in banks that are not shorter.
[[nodiscard]] inline BankAccess bank_access(std::uint64_t address, std::uint64_t bytes,
                                            const BlockSize& banks) {
  const std::uint64_t bank = banks.index(address);
  return {static_cast<std::uint32_t>(bank), bank != banks.index(address + bytes - 1)};
}

/// A step of a client: up to two accesses, or twice each. It is over when all have been served,
/// those of the first before those of the second where they want the same port. One without
/// accesses takes a cycle.
struct BankStep {
  std::optional<BankAccess> first, second;
  std::uint8_t first_times = 1, second_times = 1;
};

/// Serves clients one after the other, those of the highest priority first: a client never
/// waits for one after it.
class BankService {
 public:
  explicit BankService(std::size_t banks, std::uint32_t ports = 1)
      : ports_(ports), banks_(banks, Bank(ports)) {}

  struct Served {
    std::uint64_t first = 0, second = 0;  ///< cycles; that of the step's begin without an access
    std::uint64_t end = 0;                ///< first cycle of the next step
  };
  /// A step that begins in cycle `at`. Its client's earlier steps must be over.
  Served serve(std::uint64_t at, const BankStep& step);
  /// The same for a client that comes after all others, so nothing is kept of what it is served.
  [[nodiscard]] Served look(std::uint64_t at, const BankStep& step) const;
  /// `count` equal steps, each from the end of the one before on. Returns the end of the last.
  /// Costs a visit of each interval in which others use the banks, not of each step.
  std::uint64_t serve(std::uint64_t at, const BankStep& step, std::uint64_t count);
  /// The same of steps with one access, which stays in a bank.
  [[gnu::always_inline]] std::uint64_t serve(std::uint64_t at, std::uint32_t bank,
                                             std::uint64_t count) {
    if (ports_ == 1) return banks_.at(bank).serve(at, count);
    return serve(at, BankStep{BankAccess{bank, false}, std::nullopt}, count);
  }

  struct Passed {
    std::uint64_t steps = 0;
    std::uint64_t end = 0;  ///< first cycle of the next step
  };
  /// The same for a client that comes after all others, as look().
  /// Stops before the first step that is not over with cycle `until`: what others use before that
  /// has to be known.
  [[nodiscard]] Passed pass(std::uint64_t at, const BankStep& step, std::uint64_t count,
                            std::uint64_t until) const;
  /// The first cycle from `at` on in which others use a port of one of the banks, the highest
  /// number if none.
  [[nodiscard]] std::uint64_t next_use(std::size_t first_bank, std::size_t last_bank,
                                       std::uint64_t at) const;

  [[nodiscard]] std::uint32_t ports() const noexcept { return ports_; }
  /// Accesses that a bank serves in the cycles [from, to), of which none has been pruned.
  [[nodiscard]] std::uint64_t used(std::size_t bank, std::uint64_t from, std::uint64_t to) const;

  /// Whether the banks of an access are free in cycle `at`.
  [[nodiscard]] bool is_free(std::uint64_t at, const BankAccess& access) const;
  /// The same; the access is served then.
  bool serves(std::uint64_t at, const BankAccess& access);

  /// No client will ask for cycles before `cycle` any more.
  void prune_before(std::uint64_t cycle);

 private:
  /// Cycles in which something is in use: intervals in order, not overlapping, not touching.
  class Busy {
   public:
    /// The first cycle from `at` on in which it is free.
    [[nodiscard]] std::uint64_t free_from(std::uint64_t at) const;
    /// The first cycle from `at` on in which it is in use, the highest number if none.
    [[nodiscard]] std::uint64_t next(std::uint64_t at) const;
    /// The same for cycles of which each is asked for after the ones before it.
    class Cursor;
    [[nodiscard]] Cursor cursor(std::uint64_t at) const;
    /// How many of the cycles [from, to) it is in use.
    [[nodiscard]] std::uint64_t used(std::uint64_t from, std::uint64_t to) const;
    /// In use from `begin` to before `end`, where it was free.
    void add(std::uint64_t begin, std::uint64_t end);
    /// Whether it is free from `at` on.
    [[nodiscard]] bool is_free_from(std::uint64_t at) const {
      return first_ == intervals_.size() || intervals_.back().end <= at;
    }
    /// add() after all others.
    void add_last(std::uint64_t begin, std::uint64_t end) {
      if (first_ == intervals_.size() || intervals_.back().end != begin)
        return begin_last(begin, end);
      intervals_.back().end = end;
    }
    void prune_before(std::uint64_t cycle);

   private:
    struct Interval {
      std::uint64_t begin, end;
    };
    /// Not inline, so that add_last() can be.
    void begin_last(std::uint64_t begin, std::uint64_t end);
    /// The first interval that ends after `at`.
    [[nodiscard]] std::size_t after(std::uint64_t at) const;

    std::vector<Interval> intervals_;
    std::size_t first_ = 0;  ///< those before it are pruned
  };

  /// The ports of a bank are used from the first one on.
  class Bank {
   public:
    explicit Bank(std::uint32_t ports) : ports_(ports) {}
    /// The first cycle from `at` on in which a port is free.
    [[nodiscard]] std::uint64_t free_from(std::uint64_t at) const {
      return ports_.back().free_from(at);
    }
    /// The first cycle from `at` on in which `count` ports or more are in use.
    [[nodiscard]] std::uint64_t next(std::uint64_t at, std::uint32_t count) const {
      return ports_[count - 1].next(at);
    }
    [[nodiscard]] std::uint32_t used(std::uint64_t at) const;
    [[nodiscard]] std::uint64_t used(std::uint64_t from, std::uint64_t to) const;
    /// Of the cycles in which no port is free.
    [[nodiscard]] Busy::Cursor cursor(std::uint64_t at) const;
    /// A port more from `begin` to before `end`, where one is free.
    void add(std::uint64_t begin, std::uint64_t end) { add(begin, end, 0); }
    /// Of one port: `count` accesses, each in the next cycle that is free. Returns the end of the
    /// last.
    std::uint64_t serve(std::uint64_t at, std::uint64_t count) {
      Busy& port = ports_.front();
      if (!port.is_free_from(at)) return serve_between(at, count);
      port.add_last(at, at + count);
      return at + count;
    }
    void prune_before(std::uint64_t cycle);

   private:
    /// The same where it may not be free.
    std::uint64_t serve_between(std::uint64_t at, std::uint64_t count);
    void add(std::uint64_t begin, std::uint64_t end, std::size_t port);

    std::vector<Busy> ports_;
  };

  /// What a step wants of a bank.
  struct Demand {
    std::uint32_t bank = 0, accesses = 0;
  };
  struct Demands;
  class Taken;

  [[nodiscard]] std::uint64_t disturbed_from(std::uint64_t at, const Demands& demands) const;
  [[nodiscard]] std::uint64_t find(std::uint64_t at, const BankAccess& access,
                                   const Taken& taken) const;
  [[nodiscard]] Served find(std::uint64_t at, const BankStep& step, Taken& taken) const;
  /// pass() for steps that read a bank once, or two banks once each, with one port.
  [[nodiscard]] Passed pass_once(std::uint64_t at, std::uint32_t first,
                                 std::optional<std::uint32_t> second, std::uint64_t count,
                                 std::uint64_t until) const;

  std::uint32_t ports_;
  std::vector<Bank> banks_;
};

}  // namespace systole::hw

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/memory/bank_service.h"

/// Words that the array has read from each bank of the scratchpad, over its last runs of equal
/// reads.
namespace systole::hw {

/// So long before the start of a matmul it is known what the banks of the scratchpad have served,
/// and the array has read.
inline constexpr std::uint64_t kKeptBankCycles = 1024;

class ArrayUse {
 public:
  /// Words of banks that share them evenly.
  struct Words {
    std::uint64_t first_bank = 0, last_bank = 0;
    std::uint64_t count = 0;

    [[nodiscard]] bool meets(const Words& other) const {
      return first_bank <= other.last_bank && other.first_bank <= last_bank;
    }
  };
  /// In the cycles [begin, end), later than all so far, of both operands in each `period` cycles,
  /// from its first cycle on.
  void add(std::uint64_t begin, std::uint64_t end, std::uint64_t period, const Words& a,
           const Words& b) {
    if (begin >= end || (a.count == 0 && b.count == 0)) return;
    uses_.push_back({begin, end, period, a, b, {}, 0});
  }
  /// Equal steps from `begin` on, that passed so.
  void add(std::uint64_t begin, const BankService::Passed& passed, const BankStep& step) {
    if (passed.steps == 0 || (!step.first && !step.second)) return;
    const auto words = [&](const std::optional<BankAccess>& access, std::uint8_t times) {
      if (!access) return Words{};
      return Words{access->bank, access->bank + (access->crosses ? 1U : 0U),
                   passed.steps * times * (access->crosses ? 2 : 1)};
    };
    const std::uint64_t cycles = passed.end - begin;
    Use use{begin,
            passed.end,
            cycles,
            words(step.first, step.first_times),
            words(step.second, step.second_times),
            {},
            0};
    if (cycles > passed.steps) {
      use.step = step;
      use.waiting_steps = passed.steps;
    }
    uses_.push_back(use);
  }

  /// Words that were read of a bank in the cycles [from, to), of which none has been pruned.
  /// `banks`: what others were served.
  [[nodiscard]] std::uint64_t words(std::uint64_t bank, std::uint64_t from, std::uint64_t to,
                                    const BankService& banks) const {
    std::uint64_t sum = 0;
    const auto ends = [](const Use& use, std::uint64_t cycle) { return use.end <= cycle; };
    const auto first = uses_.begin() + static_cast<std::ptrdiff_t>(first_);
    for (auto at = std::lower_bound(first, uses_.end(), from, ends);
         at != uses_.end() && at->begin < to; ++at) {
      const Use& use = *at;
      const std::uint64_t begin = std::max(from, use.begin), end = std::min(to, use.end);
      if (use.waiting_steps != 0) {
        sum += words_of(use, bank, from, to, banks);
        continue;
      }
      for (const Words& words : {use.a, use.b}) {
        if (bank < words.first_bank || bank > words.last_bank) continue;
        const std::uint64_t shared_by = words.last_bank - words.first_bank + 1;
        sum += (use.before(end, words.count) - use.before(begin, words.count)) / shared_by;
      }
    }
    return sum;
  }
  /// Nobody will ask for cycles before `cycle` any more.
  void prune_before(std::uint64_t cycle) {
    while (first_ != uses_.size() && uses_[first_].end <= cycle) ++first_;
    if (first_ <= 64 || first_ <= uses_.size() / 2) return;
    uses_.erase(uses_.begin(), uses_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  /// Of one step that begins in cycle `at`.
  [[nodiscard]] static std::uint64_t words_of(std::uint64_t bank, const BankStep& step,
                                              const BankService::Served& served, std::uint64_t from,
                                              std::uint64_t to) {
    const auto of = [&](const std::optional<BankAccess>& access, std::uint64_t cycle,
                        std::uint8_t times) -> std::uint64_t {
      if (!access || cycle < from || cycle >= to) return 0;
      return access->bank == bank || (access->crosses && access->bank + 1 == bank) ? times : 0;
    };
    return of(step.first, served.first, step.first_times) +
           of(step.second, served.second, step.second_times);
  }

 private:
  struct Use {
    std::uint64_t begin = 0, end = 0, period = 1;
    Words a, b;
    BankStep step;                    ///< of which some waited
    std::uint64_t waiting_steps = 0;  ///< how many steps there are then

    [[nodiscard]] bool reads(std::uint64_t bank) const {
      const auto has = [bank](const Words& words) {
        return words.count != 0 && bank >= words.first_bank && bank <= words.last_bank;
      };
      return has(a) || has(b);
    }
    /// Words before a cycle, of `count` in each period.
    [[nodiscard]] std::uint64_t before(std::uint64_t cycle, std::uint64_t count) const {
      const std::uint64_t since = cycle - begin;
      return since / period * count + std::min(since % period, count);
    }
  };

  // Step by step.
  [[nodiscard]] static std::uint64_t words_of(const Use& use, std::uint64_t bank,
                                              std::uint64_t from, std::uint64_t to,
                                              const BankService& banks) {
    if (!use.reads(bank)) return 0;
    std::uint64_t sum = 0, at = use.begin;
    for (std::uint64_t step = 0; step < use.waiting_steps && at < to; ++step) {
      const BankService::Served served = banks.look(at, use.step);
      sum += words_of(bank, use.step, served, from, to);
      at = served.end;
    }
    return sum;
  }

  std::vector<Use> uses_;
  std::size_t first_ = 0;  ///< those before it are gone
};

}  // namespace systole::hw

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "hw/memory/bank_service.h"

/// Words that the array has read from each bank of the scratchpad, over its last runs of equal
/// reads.
namespace systole::hw {

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
  /// `late`: the reads waited for others.
  void add(std::uint64_t begin, std::uint64_t end, std::uint64_t period, const Words& a,
           const Words& b, bool late = false) {
    if (begin >= end || (a.count == 0 && b.count == 0)) return;
    uses_[count_++ % kKept] = {begin, end, period, late, a, b};
  }
  /// Equal steps from `begin` on, that passed so. `one_port`: of each bank.
  void add(std::uint64_t begin, const BankService::Passed& passed, const BankStep& step,
           bool one_port) {
    const auto words = [&](const std::optional<BankAccess>& access, std::uint8_t times) {
      if (!access) return Words{};
      return Words{access->bank, access->bank + (access->crosses ? 1U : 0U),
                   passed.steps * times * (access->crosses ? 2 : 1)};
    };
    const std::uint64_t cycles = passed.end - begin;
    add(begin, passed.end, cycles, words(step.first, step.first_times),
        words(step.second, step.second_times), one_port && cycles > passed.steps);
  }

  /// Words that were read of a bank in the cycles [from, to). `others(begin, end)`: those that
  /// others used of its only port in the cycles [begin, end). Where reads wait for them, the bank
  /// is in use in every cycle; one that no others use has all its words first.
  template <typename Others>
  [[nodiscard]] std::uint64_t words(std::uint64_t bank, std::uint64_t from, std::uint64_t to,
                                    Others others) const {
    std::uint64_t sum = 0;
    for (std::size_t i = count_; i + kKept > count_ && i != 0; --i) {
      const Use& use = uses_[(i - 1) % kKept];
      if (use.end <= from) break;
      const std::uint64_t begin = std::max(from, use.begin), end = std::min(to, use.end);
      if (begin >= end) continue;
      if (use.late && use.reads(bank) && others(use.begin, use.end) != 0) {
        sum += end - begin - others(begin, end);
        continue;
      }
      for (const Words& words : {use.a, use.b}) {
        if (bank < words.first_bank || bank > words.last_bank) continue;
        const std::uint64_t banks = words.last_bank - words.first_bank + 1;
        sum += (use.before(end, words.count) - use.before(begin, words.count)) / banks;
      }
    }
    return sum;
  }

 private:
  static constexpr std::size_t kKept = 64;
  struct Use {
    std::uint64_t begin = 0, end = 0, period = 1;
    bool late = false;
    Words a, b;

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

  std::array<Use, kKept> uses_;
  std::size_t count_ = 0;
};

}  // namespace systole::hw

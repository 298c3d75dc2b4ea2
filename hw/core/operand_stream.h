#pragma once

#include <cstdint>
#include <optional>

#include "hw/core/operand_reads.h"

/// Matmuls that follow each other in one array, as it and the banks of its operands take their
/// time: hw::OperandReads of one after the other, and how long the array has stood still.
namespace systole::hw {

/// So long it is known what the banks of the scratchpad have served.
inline constexpr std::uint64_t kKeptBankCycles = 1024;

class OperandStream {
 public:
  /// The array takes a matmul in cycle `at`, of which no hazard was in the way from `ready` on. The
  /// one before has ended by then. Others' uses of the banks before `at` are known.
  void begin(const Machine& machine, const cmd::Matmul& matmul, std::uint64_t at,
             std::uint64_t ready, const BankService& banks);
  /// Whether the matmul follows the one before without a gap, so that its first weights could come
  /// in beside that one's last fold; `exposed()` cycles of them did not.
  [[nodiscard]] bool continues() const noexcept { return continues_; }
  [[nodiscard]] std::uint64_t exposed() const noexcept { return reads_.exposed(); }

  /// Whether the next matmul's weights can come in beside what is left of this one, from advance()
  /// on.
  [[nodiscard]] bool takes_next() const noexcept {
    return runs_ && overlaps_ && !has_next_ && reads_.is_in_last_fold();
  }
  /// Those of this one do from cycle `ready` on. Others' uses of the banks before it are known.
  void take_next(const cmd::Matmul& next, std::uint64_t ready, const BankService& banks);

  /// Goes on as far as others' uses of the banks are known, those before cycle `until`. Returns the
  /// cycle in which the array will have taken all of the matmul if nobody uses them after it.
  std::uint64_t advance(const BankService& banks, std::uint64_t until) {
    return has_next_ ? reads_.advance_before(banks, until, &use_)
                     : reads_.advance(banks, until, &use_);
  }
  /// A matmul of which no hazard is in the way from cycle `ready` on.
  struct Next {
    const cmd::Matmul* matmul;
    std::uint64_t ready;
  };
  /// The same, with the next one if its weights can come in: `find_next()` says which one that is,
  /// nothing if none is ready by cycle `until`.
  template <typename FindNext>
  std::uint64_t advance(const BankService& banks, std::uint64_t until, FindNext find_next) {
    const std::uint64_t end = advance(banks, until);
    if (!takes_next()) return end;
    const std::optional<Next> next = find_next();
    if (!next) return end;
    take_next(*next->matmul, next->ready, banks);
    return advance(banks, until);
  }
  /// Words that a bank had left in the cycles [from, to), by the matmuls and by what others used of
  /// the banks, if the stream has advanced so far. Of the last kKeptBankCycles.
  [[nodiscard]] std::uint64_t words_left(const BankService& banks, std::size_t bank,
                                         std::uint64_t from, std::uint64_t to) const;
  /// A bank that the next step reads; nothing if it reads none or all is read.
  [[nodiscard]] std::optional<std::size_t> bank() const { return reads_.bank(); }

  /// The matmul has left the array's inputs in cycle `at`. Its last sums leave the array `moves`
  /// cycles later, not counting those in which it stands still: see leaves().
  [[nodiscard]] std::uint64_t end(std::uint64_t at, std::uint64_t moves);
  /// The cycle in which they do, for what end() returned, if the array does not stand still from
  /// cycle `now` on, to which the stream has advanced.
  [[nodiscard]] std::uint64_t leaves(std::uint64_t ended, std::uint64_t now) const {
    return ended + held(now);
  }

 private:
  /// Cycles before `now` in which the array has stood still.
  [[nodiscard]] std::uint64_t held(std::uint64_t now) const;

  ArrayUse use_;
  OperandReads reads_;  ///< of the matmul, or of the one before and the next one
  bool overlaps_ = false, continues_ = false;
  bool has_next_ = false;
  bool runs_ = false;
  std::uint64_t begun_ = 0, steps_ = 0;     ///< cycle, and its steps
  std::uint64_t held_ = 0;                  ///< by matmuls that have ended
  std::uint64_t free_ = ~std::uint64_t{0};  ///< cycle in which the last one ended, if any
};

}  // namespace systole::hw

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "hw/core/fold_steps.h"
#include "hw/core/operand_reads.h"
#include "hw/postop/parameter_words.h"

/// Matmuls that follow each other in one array, as it and the banks of its operands take their
/// time: hw::FoldSteps of all of them or, output-stationary, hw::OperandReads of one after the
/// other, and how long the array has stood still.
namespace systole::hw {

class OperandStream {
 public:
  explicit OperandStream(const Machine& machine);

  /// The array takes a matmul in cycle `at`, of which no hazard was in the way from `ready` on. The
  /// one before has ended by then, and others' uses of the banks before `at` are known.
  void begin(const cmd::Matmul& matmul, std::uint64_t at, std::uint64_t ready);
  /// Whether the matmul follows the one before without a gap, so that its first weights could come
  /// in beside that one's last fold.
  [[nodiscard]] bool continues() const noexcept { return continues_; }
  /// Cycles before its first row of A, if nobody is in the way, beyond those that ArrayCycles
  /// counts: of weights that did not come in so and, where its rows wait for the sums before them
  /// to leave, of those.
  [[nodiscard]] std::uint64_t exposed() const noexcept { return exposed_; }
  /// Of these, the ones that wait for sums.
  [[nodiscard]] std::uint64_t drained() const noexcept { return drained_; }

  /// A matmul of which no hazard is in the way from cycle `ready` on.
  struct Next {
    const cmd::Matmul* matmul;
    std::uint64_t ready;
  };
  /// Cycles before the next row of A, if nobody is in the way.
  [[nodiscard]] std::uint64_t before_rows() const {
    return stationary_weights_ ? steps_.before_rows() : 0;
  }
  /// Goes on as far as others' uses of the banks are known, those before cycle `until`. Returns the
  /// cycle in which the array will have taken all of the matmul if nobody uses them after it, or a
  /// cycle before.
  /// `find_next(i)`: the matmul that comes `i` after the one that began last, nothing if it is not
  /// ready by `until`. Its weights come in beside rows of those before it.
  template <typename FindNext>
  std::uint64_t advance(const BankService& banks, std::uint64_t until, FindNext find_next) {
    if (!runs_) return at();
    if (!stationary_weights_) return reads_.advance(banks, until, &use_);
    for (;;) {
      steps_.advance(banks, until, true, use_);
      if (!steps_.takes_next() || steps_.over() || steps_.at() >= until) break;
      const std::optional<Next> next = find_next(steps_.matmuls());
      if (!next) {
        steps_.advance(banks, until, false, use_);
        break;
      }
      steps_.add(*next->matmul, next->ready);
    }
    return steps_.over() ? at() : steps_.end(until);
  }
  std::uint64_t advance(const BankService& banks, std::uint64_t until) {
    return advance(banks, until, [](std::size_t) { return std::optional<Next>(); });
  }
  /// Cycles that the matmul has taken until now, but for those in which nothing moved.
  [[nodiscard]] std::uint64_t moved() const { return at() - begun_ - (held(at()) - held_before_); }
  /// The first word of a block of parameters that the banks do not serve before cycle `to`, with
  /// what the matmuls and the other users of the banks leave, if they are asked for one after the
  /// other, `word` from cycle `from` on. The stream has advanced to `to`; none of the cycles has
  /// been pruned.
  [[nodiscard]] std::uint64_t read_words(const BankService& banks, const ParameterWords& parameters,
                                         std::uint64_t word, std::uint64_t from,
                                         std::uint64_t to) const;
  /// Nobody will ask for cycles before `cycle` any more.
  void prune_before(std::uint64_t cycle) {
    use_.prune_before(cycle);
    steps_.prune_before(cycle);
  }
  /// When it hands sums to the accumulator, of stationary weights: as far as is known if the stream
  /// has advanced to a cycle.
  [[nodiscard]] FoldSteps& steps() noexcept { return steps_; }
  /// Of the cycles from this one on it matters to them what the banks have served.
  [[nodiscard]] std::uint64_t oldest_sums() const noexcept { return steps_.oldest_sums(); }
  /// A bank that the array waits for; nothing if it does not.
  [[nodiscard]] std::optional<std::size_t> bank() const {
    return stationary_weights_ ? steps_.bank() : reads_.bank();
  }

  /// The matmul has left the array's inputs in cycle `at`. Returns what leaves() wants.
  [[nodiscard]] std::uint64_t end(std::uint64_t at);
  /// The cycle in which the last sums of a matmul leave the array, for what end() returned, if it
  /// does not stand still from cycle `now` on, to which the stream has advanced.
  [[nodiscard]] std::uint64_t leaves(std::uint64_t ended, std::uint64_t now) const {
    return ended + held(now);
  }

 private:
  [[nodiscard]] std::uint64_t at() const { return stationary_weights_ ? steps_.at() : reads_.at(); }
  /// Cycles before `now` in which the array has stood still.
  [[nodiscard]] std::uint64_t held(std::uint64_t now) const;
  /// Words that a bank had left in the cycles [from, to), by the matmuls and by the other users of
  /// the banks, if the stream has advanced to `to`. None of the cycles has been pruned. `passed`:
  /// passed_over() of these cycles or more.
  [[nodiscard]] std::uint64_t left(const BankService& banks, const ArrayUse& passed,
                                   std::size_t bank, std::uint64_t from, std::uint64_t to) const;
  /// read_words() in one look.
  [[nodiscard]] std::uint64_t read_known_words(const BankService& banks,
                                               const ParameterWords& parameters, std::uint64_t word,
                                               std::uint64_t from, std::uint64_t to) const;
  /// What was read in the cycle before each of [from, to) in folds that were passed over.
  [[nodiscard]] ArrayUse passed_over(std::uint64_t from, std::uint64_t to) const {
    return stationary_weights_ ? steps_.passed_over(from - 1, to - 1) : ArrayUse();
  }

  Machine::Array array_;
  Machine::Sram scratchpad_;
  bool stationary_weights_ = true, overlaps_ = true;
  ArrayUse use_;
  FoldSteps steps_;
  OperandReads reads_;
  bool continues_ = false;
  std::uint64_t exposed_ = 0, drained_ = 0;
  bool runs_ = false;
  std::uint64_t begun_ = 0;
  std::uint64_t all_ = 0;                   ///< output-stationary: its steps
  std::uint64_t moves_ = 0;                 ///< of its last sums, after its last operands
  std::uint64_t held_before_ = 0;           ///< by matmuls that have ended
  std::uint64_t free_ = ~std::uint64_t{0};  ///< cycle in which the last one ended, if any
};

}  // namespace systole::hw

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>

#include "hw/array/sum_reads.h"
#include "hw/core/array_use.h"
#include "hw/core/bank_words.h"
#include "hw/core/sum_runs.h"
#include "hw/machine/machine.h"
#include "hw/memory/bank_service.h"
#include "hw/program/program.h"

/// The cycle contract of hw/array/fold_stream.h in runs of equal steps instead of step by step, and
/// as far as others' uses of the banks are known: when a weight-stationary array reads what.
namespace systole::hw {

/// Steps of matmuls that follow each other. In a step the array reads a row of A, a row of B as
/// weights or for the transposer, both, or nothing while rows of sums leave it. It goes on when all
/// that it reads has been served, and nothing in it moves before (one enable).
///
/// Cycles are those from which the banks are asked, one before the gates' (hw/array/fold_stream.h).
/// Int4 operands take two words a step where hw/array/array.h says so.
class FoldSteps {
 public:
  explicit FoldSteps(const Machine& machine);

  /// A matmul after those that were added, which nothing hinders from cycle `ready` on. There is
  /// room if all weights of those have been read: takes_next().
  void add(const cmd::Matmul& matmul, std::uint64_t ready);
  [[nodiscard]] bool takes_next() const noexcept { return weights_.matmul == added_; }
  /// Matmuls that were added and have not ended.
  [[nodiscard]] std::size_t matmuls() const noexcept { return added_ - first_; }
  /// The oldest has ended, whose operands have been read.
  void finish() { ++first_; }
  /// Whether they have been read.
  [[nodiscard]] bool over() const noexcept { return rows_.matmul != first_; }
  /// Nothing is read before cycle `at`, but sums leave.
  void idle_until(std::uint64_t at);

  /// Goes on until the operands of the oldest matmul have been read, or as far as is known if
  /// others' uses of the banks before cycle `until` are. Stops earlier if `stops` and
  /// takes_next(). `use`: to which what was read is added.
  void advance(const BankService& banks, std::uint64_t until, bool stops, ArrayUse& use);
  /// The cycle in which they will have been, if others do not use the banks from cycle `until` on;
  /// perhaps one before it where both operands are in a bank, or B is transposed.
  [[nodiscard]] std::uint64_t end(std::uint64_t until) const {
    return std::max((open_ ? until : at_) + left(), until + 1);
  }
  /// Steps before the next row of A, and of those the ones in which sums have to leave
  /// the array.
  [[nodiscard]] std::uint64_t before_rows() const;
  [[nodiscard]] std::uint64_t before_drained() const;

  /// Cycle in which the next step begins, or the last one has ended.
  [[nodiscard]] std::uint64_t at() const noexcept { return at_; }
  /// Cycles before `now`, to which it has advanced, in which nothing moved.
  [[nodiscard]] std::uint64_t held(std::uint64_t now) const {
    return held_ + (open_ ? now - std::min(now, at_) : 0);
  }
  /// How far it has advanced if others' uses of the banks before cycle `now` are known.
  [[nodiscard]] SumRuns::Known known(std::uint64_t now) const {
    return {now, held(now), open_ ? at_ : SumRuns::kNever};
  }
  /// What it hands to the accumulator: of rows that it reads after keep_sums().
  void keep_sums() noexcept { keeps_sums_ = true; }
  [[nodiscard]] SumRuns& sums() noexcept { return sums_; }
  [[nodiscard]] std::uint64_t oldest_sums() const noexcept { return sums_.oldest(); }
  /// The first cycle from `from` on in which it may write sums that `meets` is true for, the first
  /// and the last of a matmul, and whether that is of one that is known.
  template <typename Meets>
  [[nodiscard]] SumReads::Free next_sums(std::uint64_t from, std::uint64_t now, Meets meets) const {
    const std::uint64_t next = sums_.next(from, known(now), meets);
    if (next != SumRuns::kNever) return {next, true};
    std::uint64_t row = at_;  // the first of a matmul is taken in this cycle at the earliest
    for (std::size_t number = rows_.matmul; number != added_; ++number) {
      const Matmul& of = matmul(number);
      if (meets(of.first_sum, of.last_sum)) return {std::max(from, sums_.written(row)), true};
      row += number == first_ ? left() : of.command.m;
    }
    return {std::max(from, sums_.written(std::max(row, now))), false};
  }
  /// Words of a bank that the step that waits has been served in the cycles [from, to).
  [[nodiscard]] std::uint64_t open_words(std::uint64_t bank, std::uint64_t from, std::uint64_t to,
                                         const BankService& banks) const {
    return open_ ? ArrayUse::words_of(bank, run_.step, banks.look(at_, run_.step), from, to) : 0;
  }
  /// What was read in the cycles [from, to), of which none has been pruned, in folds that advance()
  /// passed over, which it does not add to `use`.
  [[nodiscard]] ArrayUse passed_over(std::uint64_t from, std::uint64_t to) const;
  /// Nobody will ask for cycles before `cycle` any more.
  void prune_before(std::uint64_t cycle) {
    while (!passed_.empty() && passed_.front().end <= cycle) passed_.pop_front();
  }
  /// A bank that the step reads that waits.
  [[nodiscard]] std::optional<std::size_t> bank() const;

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  /// Rows of one are read, weights of another one, and columns of the next.
  static constexpr std::size_t kMostMatmuls = 4;

  struct Matmul {
    cmd::Matmul command;
    std::uint64_t start = 0;  ///< its first step is in this cycle at the earliest
    StepWords words;
    std::uint64_t depths = 1, columns = 1;  ///< tiles of k, of columns
    std::uint64_t first_sum = 0, last_sum = 0;
    ArrayUse::Words a_banks, b_banks;
    bool is_plain = false;  ///< its operands are never in each other's way
  };
  /// Where one of the streams of operands is: a matmul, a fold of it, a row of that fold.
  struct Place {
    std::size_t matmul = 0;
    std::uint64_t column = 0, depth = 0, row = 0;
    std::uint64_t fold = 0;  ///< of all matmuls
  };
  /// What is read in a step, and how often before that changes.
  struct Run {
    bool row = false, weights = false, column = false;
    std::uint64_t count = kNever;
    std::uint64_t until = kNever;  ///< a cycle in which something may join it
    BankStep step;

    [[nodiscard]] bool moves() const { return row || weights || column; }
  };
  /// The state at the begin of a fold, but for what grows from fold to fold.
  struct Phase {
    std::uint64_t weights_ahead = 0, weights_row = 0, columns_ahead = 0, columns_row = 0;
    std::array<std::uint64_t, 2> filled{};
    std::size_t count = 0;
    friend bool operator==(const Phase& a, const Phase& b) {
      return a.weights_ahead == b.weights_ahead && a.weights_row == b.weights_row &&
             a.columns_ahead == b.columns_ahead && a.columns_row == b.columns_row &&
             a.filled == b.filled && a.count == b.count;
    }
  };

  /// Folds of a matmul that were passed over, and where its operands were before them.
  struct Passed {
    std::uint64_t begin = 0, end = 0, interval = 1;
    Matmul matmul;
    Place rows, weights, columns;
    std::array<std::uint64_t, 2> filled{};
    std::size_t filled_count = 0;
    std::uint64_t since_row = 0;
  };

  /// Of an array alone with its banks, which has come to what another one has passed over.
  FoldSteps(const FoldSteps& of, const Passed& passed);
  [[nodiscard]] const Matmul& matmul(std::size_t number) const {
    return matmuls_[number % kMostMatmuls];
  }
  [[nodiscard]] bool is_known(const Place& place) const { return place.matmul < added_; }
  [[nodiscard]] bool is_transposed(const Place& place) const {
    return matmul(place.matmul).command.b_transposed;
  }
  [[nodiscard]] bool is_drained() const { return since_row_ >= skew_; }
  [[nodiscard]] std::uint64_t left() const;
  [[nodiscard]] Run next_run() const;
  void find_reads(Run& run) const;
  void limit(Run& run, std::uint64_t steps, std::optional<BankAccess>& access, std::uint8_t& times,
             std::uint64_t address, std::uint64_t pitch, bool down, std::uint8_t words) const;
  void take(const Run& run, std::uint64_t steps);
  /// Steps of a run pass, from `at_` on: rows of A, and waits, are kept.
  void keep(const Run& run, const BankService::Passed& passed);
  /// The same of folds that are passed over, of which so many steps take a cycle more.
  void keep_folds(std::uint64_t count, std::uint64_t interval, std::uint64_t waits);
  [[nodiscard]] SumRuns::Run run_from_here(bool takes_rows) const;
  /// Moves on by rows of a fold that has `count`. Returns whether the matmul is over.
  bool move(Place& place, std::uint64_t steps, std::uint64_t count) const;
  /// Columns of C in the tile of a place.
  [[nodiscard]] std::uint64_t width(const Place& place) const;
  [[nodiscard]] Phase phase() const;
  /// Passes over folds that take as long as the one before, and that nobody hinders.
  bool skip(const BankService& banks, std::uint64_t until);
  /// The same of folds that read B, and A beside it, from one bank each, of one port: if that is
  /// the same bank, a step that reads both takes two cycles.
  bool skip_in_one_bank(const BankService& banks, std::uint64_t until);
  /// Folds, from the one whose weights are read next, whose weights are in a bank, as its first
  /// row is.
  [[nodiscard]] std::uint64_t folds_in_bank(std::uint64_t bank) const;
  bool skip_folds(std::uint64_t count, std::uint64_t interval, std::uint64_t waits);
  void pass_folds(std::uint64_t count, std::uint64_t interval);

  Machine::Array array_;
  Machine::Sram scratchpad_;
  std::uint64_t bank_bytes_ = 1, word_bytes_ = 1;
  std::uint64_t skew_ = 0;
  std::array<Matmul, kMostMatmuls> matmuls_;
  std::size_t first_ = 0, added_ = 0;
  SumRuns sums_;
  bool keeps_sums_ = false, skips_ = true;
  std::deque<Passed> passed_;
  Place rows_, weights_, columns_;
  std::array<std::uint64_t, 2>
      filled_{};  ///< cycles from which the weights in the transposer can leave
  std::size_t filled_count_ = 0;
  std::uint64_t since_row_ = kNever / 2;  ///< moves since the last row of A
  std::uint64_t at_ = 0, held_ = 0;
  bool open_ = false;  ///< a step has begun and is not over
  Run run_;            ///< of it
  // At the begin of the fold before, if that is of the same matmul.
  std::uint64_t fold_ = kNever, fold_at_ = 0, fold_held_ = 0;
  Phase fold_phase_;
};

}  // namespace systole::hw

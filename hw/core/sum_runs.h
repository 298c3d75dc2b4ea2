#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "hw/array/fold_stream.h"
#include "hw/memory/bank_service.h"

namespace systole::hw {

/// When a weight-stationary array that reads its operands as hw::FoldSteps says hands rows of sums
/// to the accumulator: the contract of hw/array/fold_stream.h, kept in runs of equal steps. Single
/// cycles are looked at only when asked for.
///
/// Cycles of steps are those from which the banks are asked, as there; cycles of sums are those of
/// the gates.
class SumRuns {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  /// From the cycle in which a row of sums makes its last move in the array to the one in which it
  /// is written: registers after the reads, at the array's edge, and before the accumulator.
  static constexpr std::uint64_t kLater = 3;

  explicit SumRuns(const Machine::Array& array)
      : cols_(array.cols), skew_(std::uint64_t{array.rows} + array.cols - 2) {}

  /// Steps that take rows of A, and those between the folds, if there are several. Or steps that
  /// take none, of which some waited.
  struct Run {
    std::uint64_t begin = 0, end = 0;  ///< cycles
    std::uint64_t steps = 0;           ///< in the last cycle of each the array moves
    std::uint64_t before = 0;          ///< cycles before `begin` in which it has moved
    BankStep reads;                    ///< of each, if some took more than a cycle
    std::uint64_t rows = 0;            ///< of a fold that are taken, 0: none
    std::uint64_t interval = 1;        ///< steps from a fold's begin to that of the next
    std::uint64_t waits = 0;           ///< of a fold, the first so many take two cycles
    std::uint64_t row = 0, column = 0, depth = 0;  ///< the first
    std::uint64_t depths = 1;                      ///< tiles of k
    std::uint64_t c = 0, pitch = 0;
    bool accumulate = false;                    ///< in the first tile of k, too
    std::uint64_t first_sum = 0, last_sum = 0;  ///< of the matmul
  };
  /// After all so far.
  void add(const Run& run);

  /// How far the array is known: the cycles before `now`, of which it has stood still in `held`,
  /// and in all from `held_from` on.
  struct Known {
    std::uint64_t now = 0, held = 0, held_from = kNever;
  };
  /// Sums of cycles before this one are known.
  [[nodiscard]] static std::uint64_t known_before(const Known& known) { return known.now + kLater; }

  struct Sums {
    std::uint64_t at = 0;  ///< the first
    bool are_there = false, accumulate = false;
  };
  /// What the array writes in a cycle of which that is known. `banks`: of its operands.
  [[nodiscard]] const Sums& in(std::uint64_t cycle, const Known& known, const BankService& banks);
  /// The first cycle from `from` on in which rows that have been taken may be written, of matmuls
  /// whose sums `meets` is true for; kNever if none.
  template <typename Meets>
  [[nodiscard]] std::uint64_t next(std::uint64_t from, const Known& known, Meets meets) const {
    // Moves before the one with which a row has to leave the array, at least.
    const std::uint64_t cycle = std::min(from - std::min(from, kLater), known.now);
    const std::uint64_t moves = cycle - std::min(cycle, known.held);
    std::uint64_t next = kNever;
    for (std::size_t i = runs_.size(); i != first_; --i) {
      const Run& run = runs_[i - 1];
      if (run.before + run.steps + skew_ <= moves) break;
      if (run.rows == 0 || !meets(run.first_sum, run.last_sum)) continue;
      next = std::max(from, written(run.begin));
    }
    return next;
  }
  /// The first cycle in which the sums of a row are written that is taken in a cycle.
  [[nodiscard]] std::uint64_t written(std::uint64_t taken) const { return taken + skew_ + kLater; }

  /// Nobody asks for sums of cycles before this one, if not of those to come.
  void keep_from(std::uint64_t cycle) noexcept { kept_from_ = cycle; }
  /// The first cycle of those in which it has to be known what the banks serve; kNever if none.
  [[nodiscard]] std::uint64_t oldest() const {
    return first_ == runs_.size() ? kNever : runs_[first_].begin;
  }

 private:
  static constexpr std::uint64_t kWindow = 1024;

  void find(std::uint64_t from, std::uint64_t to, const Known& known, const BankService& banks);
  [[nodiscard]] Sums sums_of(const Run& run, std::uint64_t step) const;
  void find_moves(const Run& run, const BankService& banks);
  /// The step whose last cycle is so long after the begin of folds; nothing if none's is.
  [[nodiscard]] static std::optional<std::uint64_t> step_of(const Run& run, std::uint64_t cycles);
  /// Runs whose sums nobody asks for, before `next` is added.
  void forget_before(const Run& next);

  std::uint64_t cols_, skew_;
  std::vector<Run> runs_;
  std::size_t first_ = 0;  ///< those before it are gone
  std::uint64_t kept_from_ = kNever;
  std::vector<Sums> sums_;  ///< by cycle, of the last kWindow before `to_`, from `from_` on
  std::uint64_t from_ = 0, to_ = 0;
  std::vector<std::uint64_t> moves_;  ///< of a run of which some steps waited: cycles
  std::uint64_t moves_of_ = kNever;   ///< its begin
};

}  // namespace systole::hw

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/core/array_use.h"
#include "hw/machine/machine.h"
#include "hw/memory/bank_service.h"
#include "hw/program/program.h"

/// The cycle contract of an array and the banks of its operands: how long a matmul takes if loads
/// and moves use the banks, too, and where both of its operands are in the same bank.
namespace systole::hw {

/// The reads of one matmul, cycle by cycle in the array's own time: of a row of A, of one of B, of
/// both, or none. The array goes on when all that it reads in a cycle has been served, and nothing
/// in it moves before (one enable). Which cycle reads what is in hw/array/array_schedule.h:
///
/// - Weight-stationary: a row of A in each cycle of a fold's stream. Rows of B, the bottom one
///   first, from the cycle on in which the fold before begins; rows below the last of B are zeros,
///   which nothing reads. Of B stored transposed a fold reads a row for each of its columns, which
///   leave the transposer as weights from two cycles after the last on. As it holds two folds, the
///   columns of one come from the step on in which the last weights leave of the one two before it;
///   on an array of more columns than rows with the begin of a fold, which is later than in gates.
/// - Output-stationary: a column of A and a row of B in each cycle. Those of A go through the rows
///   of their tile evenly.
/// - Int4 operands take two words a cycle where hw/array/array.h says so.
///
/// The first weights of a matmul that is ready early come in beside the last fold of the one
/// before, and hold that up where they have to wait for a bank.
class OperandReads {
 public:
  OperandReads() = default;
  /// A matmul that begins in cycle `at`, all of it. Without conflicts it takes
  /// `matmul_cycles(..., false).interval` cycles.
  OperandReads(const Machine& machine, const cmd::Matmul& matmul, std::uint64_t at);
  /// A weight-stationary one whose first weights come in from cycle `ready` on, with what is left
  /// of the last fold of `before` then: that one is in it, and is not advanced any more. Others'
  /// uses of the banks before `ready` are known. Without conflicts it takes
  /// `matmul_cycles(..., true).interval + exposed()` cycles from the end of the one before on.
  OperandReads(const OperandReads& before, const cmd::Matmul& matmul, std::uint64_t ready,
               const BankService& banks);

  /// Whether its last fold has begun, so that the next matmul's weights can come in.
  [[nodiscard]] bool is_in_last_fold() const noexcept { return folds_ != 0 && fold_ == folds_; }
  /// Cycles of the first weights that the one before does not hide.
  [[nodiscard]] std::uint64_t exposed() const noexcept { return exposed_; }

  /// Goes on until all is read, or as far as is known if others' uses of the banks before cycle
  /// `until` are. Returns the cycle in which all will have been read if nobody uses them after it.
  /// `use`, if not null: to which what was read is added.
  std::uint64_t advance(const BankService& banks, std::uint64_t until, ArrayUse* use = nullptr) {
    return advance(banks, until, 0, use);
  }
  /// The same for what the matmul before reads, and no further.
  std::uint64_t advance_before(const BankService& banks, std::uint64_t until,
                               ArrayUse* use = nullptr) {
    return advance(banks, until, left_ - beside_, use);
  }
  /// Cycles that are left of its reads if nobody else uses the banks; of these, those of the one
  /// before.
  [[nodiscard]] std::uint64_t left() const noexcept { return left_; }
  [[nodiscard]] std::uint64_t left_before() const noexcept { return beside_; }
  /// Cycle in which the next step begins, or the last one has ended.
  [[nodiscard]] std::uint64_t at() const noexcept { return at_; }
  /// A bank that the next step reads; nothing if it reads none or all is read.
  [[nodiscard]] std::optional<std::size_t> bank() const;

 private:
  /// Equal cycles of one operand that follow each other.
  struct Reads {
    std::uint64_t count = 0;
    std::optional<BankAccess> access;
    std::uint8_t times = 1;
  };
  /// Of both.
  struct Run {
    std::uint64_t count = 0;
    BankStep step;
  };
  class Tiles;

  static void merge(const std::vector<Reads>& a, const std::vector<Reads>& b,
                    std::vector<Run>& runs);
  OperandReads(const Machine::Array& array, std::uint64_t banks, std::uint64_t bank_bytes,
               std::uint32_t ports, const cmd::Matmul& matmul, bool preloaded, std::uint64_t at);
  /// The runs of the next fold.
  void find_runs();
  void add_use(const BankStep& step, const BankService::Passed& passed, ArrayUse& use) const;
  /// Goes on until `after` steps are left.
  std::uint64_t advance(const BankService& banks, std::uint64_t until, std::uint64_t after,
                        ArrayUse* use);
  /// Passes over what others leave alone.
  void skip(const BankService& banks, std::uint64_t until, ArrayUse* use);

  Machine::Array array_;
  std::uint64_t banks_ = 1, bank_bytes_ = 1;
  std::uint32_t ports_ = 1;
  cmd::Matmul matmul_;
  std::uint64_t exposed_ = 0;
  ArrayUse::Words a_of_fold_, b_of_fold_;  ///< of a fold that is passed over
  bool is_plain_ = false;                  ///< without others a step takes a cycle
  std::uint64_t folds_ = 0, interval_ = 0;
  std::uint64_t last_interval_ = 0;  ///< of the last fold, for which no weights follow
  std::uint64_t fold_ = 0;           ///< the next one
  std::uint64_t last_fold_ = 0;      ///< cycle in which the last one began
  std::uint64_t at_ = 0;             ///< cycle in which the next step begins
  std::uint64_t left_ = 0;           ///< steps
  std::uint64_t beside_ = 0;         ///< of these, the ones of the matmul before
  std::vector<Reads> a_, b_;
  std::vector<Run> runs_;  ///< of the fold in progress, or of what is before the first
  std::size_t run_ = 0;    ///< the next one
};

}  // namespace systole::hw

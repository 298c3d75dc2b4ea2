#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/core/array_use.h"
#include "hw/machine/machine.h"
#include "hw/memory/bank_service.h"
#include "hw/program/program.h"

/// The cycle contract of an output-stationary array and the banks of its operands: how long a
/// matmul takes if loads and moves use the banks, too, and where both of its operands are in the
/// same bank.
namespace systole::hw {

/// The reads of one matmul, cycle by cycle in the array's own time: of a column of A and a row of B
/// in each cycle of a fold's stream, or none. Columns of A go through the rows of their tile
/// evenly. The array goes on when all that it reads in a cycle has been served, and nothing in it
/// moves before (one enable). Which cycle reads what is in hw/array/array_schedule.h. Int4 operands
/// take two words a cycle where hw/array/array.h says so.
class OperandReads {
 public:
  OperandReads() = default;
  /// A matmul that begins in cycle `at`, all of it. Without conflicts it takes
  /// `matmul_cycles(..., false).interval` cycles.
  OperandReads(const Machine::Array& array, const Machine::Sram& scratchpad,
               const cmd::Matmul& matmul, std::uint64_t at);

  /// Goes on until all is read, or as far as is known if others' uses of the banks before cycle
  /// `until` are. Returns the cycle in which all will have been read if nobody uses them after it.
  /// `use`, if not null: to which what was read is added.
  std::uint64_t advance(const BankService& banks, std::uint64_t until, ArrayUse* use = nullptr);
  /// Cycles that are left of its reads if nobody else uses the banks.
  [[nodiscard]] std::uint64_t left() const noexcept { return left_; }
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
  /// The runs of the next fold.
  void find_runs();
  /// Passes over what others leave alone.
  void skip(const BankService& banks, std::uint64_t until, ArrayUse* use);

  Machine::Array array_;
  std::uint64_t bank_bytes_ = 1;
  std::uint32_t ports_ = 1;
  cmd::Matmul matmul_;
  ArrayUse::Words a_of_fold_, b_of_fold_;  ///< of a fold that is passed over
  bool is_plain_ = false;                  ///< without others a step takes a cycle
  std::uint64_t folds_ = 0, interval_ = 0;
  std::uint64_t fold_ = 0;  ///< the next one
  std::uint64_t at_ = 0;    ///< cycle in which the next step begins
  std::uint64_t left_ = 0;  ///< steps
  std::vector<Reads> a_, b_;
  std::vector<Run> runs_;  ///< of the fold in progress
  std::size_t run_ = 0;    ///< the next one
};

}  // namespace systole::hw

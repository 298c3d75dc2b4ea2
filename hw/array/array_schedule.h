#pragma once

#include <cstdint>

#include "hw/machine/machine.h"

/// When a matmul command uses which element of its operands and sums: the cycle contract of
/// hw/array/array.h, fold by fold.
///
/// Weight-stationary: column tiles outside, tiles of k inside, as the driver of the RTL orders them
/// (testbench/rtl/array/array_folds.h). Output-stationary: column tiles outside, row tiles inside.
/// Cycles that banks cost the command come after those of the contract.
namespace systole::hw {

/// What repeats along a dimension, a use of the element each.
enum class ArrayTiles : std::uint8_t { kNone, kRows, kColumns, kDepth };

class ArraySchedule {
 public:
  /// Cycle 0 is that in which the command begins. `preloaded`: the first fold's weights came in
  /// after the command before. `exposed`: cycles that its first row waits beyond that, for the last
  /// of these weights or for sums of the command before.
  ArraySchedule(const Machine::Array& array, std::uint64_t m, std::uint64_t n, std::uint64_t k,
                bool preloaded, std::uint64_t exposed);

  [[nodiscard]] bool weight_stationary() const noexcept { return weight_stationary_; }
  [[nodiscard]] std::uint64_t folds() const noexcept { return outer_ * inner_; }
  /// Column tiles.
  [[nodiscard]] std::uint64_t outer() const noexcept { return outer_; }
  /// Tiles of k, or of rows if outputs are stationary.
  [[nodiscard]] std::uint64_t inner() const noexcept { return inner_; }
  /// Cycles between the first rows of folds that follow each other.
  [[nodiscard]] std::uint64_t interval() const noexcept { return interval_; }
  /// Cycle in which the first row of a fold enters; one more enters in each cycle after it.
  [[nodiscard]] std::int64_t begin(std::uint64_t fold) const noexcept {
    return first_ + static_cast<std::int64_t>(fold * interval_);
  }
  /// Weight-stationary: cycle from which the first element multiplies by a fold's weights: when the
  /// fold before has left it and they have come in.
  [[nodiscard]] std::int64_t weights_in_use(std::uint64_t fold) const noexcept;
  /// Weight-stationary: cycle in which the bottom row of a fold's weights enters, the others after
  /// it: with the first row of the fold before. Negative for those that came in after the
  /// command before.
  [[nodiscard]] std::int64_t weights(std::uint64_t fold) const noexcept;
  /// Cycles from the one in which a row enters to the one in which its sums are handed over.
  /// Output-stationary: from the first row's to the first of the array's rows of sums.
  [[nodiscard]] std::int64_t result_delay() const noexcept { return result_delay_; }

 private:
  std::int64_t rows_, streamed_;
  bool weight_stationary_;
  bool alone_;  ///< weights enter after the fold before has left
  std::uint64_t outer_, inner_, interval_;
  std::int64_t first_, result_delay_;
};

}  // namespace systole::hw

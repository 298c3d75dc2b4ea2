#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "hw/machine/machine.h"

/// The cycle contract of a weight-stationary array whose operands are read from a memory, for
/// matmuls that follow each other: which row of A and of B is read when, when a row of sums goes to
/// the accumulator. rtl/core/systole_matmul_unit.sv meets it. Where every read is served at once, a
/// matmul takes the cycles of hw/array/array.h: its first read is in the cycle after its start, and
/// the array has what was read a cycle later, so its results come two cycles later than
/// array_cycles() says.
namespace systole::hw {

/// A matmul that the unit takes in cycle `started`. Addresses are bytes of the scratchpad for A
/// and B, sums of the accumulator for C.
struct FoldCommand {
  std::uint64_t started = 0;
  std::uint64_t m = 1, n = 1, k = 1;
  std::uint64_t a = 0, a_pitch = 0, b = 0, b_pitch = 0, c = 0, c_pitch = 0;
  bool accumulate = false;
  bool b_transposed = false;  ///< B is stored n x k
};

struct FoldTimes {
  std::uint64_t free = 0;       ///< from this cycle on the unit can take the next command
  std::uint64_t released = 0;   ///< all operands have been read
  std::uint64_t completed = 0;  ///< all sums are in the accumulator, for whoever reads them then
};

/// A vector of sums that the accumulator takes in a cycle.
struct SumWrite {
  std::uint64_t cycle = 0;
  std::uint64_t at = 0;  ///< its first sum
  bool accumulate = false;
};

struct FoldSchedule {
  std::vector<FoldTimes> times;  ///< by command
  std::vector<SumWrite> sums;    ///< in order
};

/// Serves the reads of a step, of a word from an address on each, A before B, from a cycle on.
/// Returns the first cycle after it. A step without reads takes a cycle.
using FoldReads = std::function<std::uint64_t(std::uint64_t cycle, std::optional<std::uint64_t> a,
                                              std::optional<std::uint64_t> b)>;

/// Runs matmuls whose starts are known: each later than the one before, and no earlier than that
/// one's `free`.
///
/// Column tiles outside, tiles of k inside. In a step the array takes a row of A, a row of weights,
/// or both; it goes on when all of it has been served, and nothing of it moves before.
///
/// - A fold's weights, bottom row first, begin beside the first row of A of the fold before or
///   after it; with overlap "none" when the rows of that fold have left the array. Rows below the
///   last of B are zeros, which nothing reads.
/// - Weights of B stored transposed go through a transposer that holds two folds. A fold's columns
///   of C are read into it a row a step, beside whatever else the step takes, those of the
///   command's next fold from the cycle after on: at the earliest in the step of the last weights
///   of the fold whose place they take. Two cycles after its last column a fold's weights can
///   begin, which read nothing then.
/// - Its rows of A begin in the step after its last weights and after the last row of the fold
///   before; unless overlap is "full", when the rows of that fold have left the array.
/// - What a step takes is fixed when it begins.
/// - A row of sums goes to the accumulator rows + cols steps or cycles without a step after its row
///   of A was read.
[[nodiscard]] FoldSchedule fold_times(const Machine::Array& array,
                                      const std::vector<FoldCommand>& commands,
                                      const FoldReads& serve);

}  // namespace systole::hw

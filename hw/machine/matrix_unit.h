#pragma once

#include <algorithm>
#include <cstdint>

#include "hw/number/integer.h"

/// Cycle contract of a matrix unit: `lanes` columns at a time, each with a tree over `depth` inputs
/// and an adder that keeps partial sums.
namespace systole::hw {

/// DFX (MICRO 2022): 16 lanes of 64 inputs; half precision multipliers of 6 cycles, adders of 11.
struct MatrixUnit {
  std::uint32_t depth = 64;  ///< inputs of a lane's tree, a power of two
  std::uint32_t lanes = 16;
  std::uint32_t multiply = 6;  ///< cycles of a multiplier, each unit takes new operands every cycle
  std::uint32_t add = 11;      ///< cycles of an adder, at least 1
  std::uint32_t partial_sums = 16;  ///< slices of columns that are under way together, at least 1
};

/// Cycles from a slice's operands to its sum: multipliers, tree, and the adder of partial sums.
constexpr std::uint64_t fill_cycles(const MatrixUnit& unit) {
  const std::uint64_t levels = bit_length(unit.depth) - 1;
  return unit.multiply + levels * unit.add + unit.add;
}

/// Cycles in which a block of `slices` (at most partial_sums) takes the slices of `k_tiles` tiles,
/// one a cycle. A sum's next addend may enter only `add` cycles after the one before, so a round
/// of few slices waits.
constexpr std::uint64_t block_issue_cycles(const MatrixUnit& unit, std::uint64_t k_tiles,
                                           std::uint64_t slices) {
  if (k_tiles == 0 || slices == 0) return 0;
  return (k_tiles - 1) * std::max<std::uint64_t>(slices, unit.add) + slices;
}

/// The same for all `slices` of a product, block after block without a gap: a new block begins with
/// its biases, not with sums in flight. It is k_tiles * slices (nothing waits) exactly
/// if k_tiles <= 1, or if no block has fewer than `add` slices: partial_sums >= add, and the rest
/// of slices / partial_sums is 0 or at least `add`.
constexpr std::uint64_t matrix_issue_cycles(const MatrixUnit& unit, std::uint64_t k_tiles,
                                            std::uint64_t slices) {
  const std::uint64_t blocks = slices / unit.partial_sums;
  const std::uint64_t rest = slices % unit.partial_sums;
  return blocks * block_issue_cycles(unit, k_tiles, unit.partial_sums) +
         block_issue_cycles(unit, k_tiles, rest);
}

/// From the first slice that enters to the last sum that leaves, for a product of [k] x [k][n];
/// 0 if there is none.
constexpr std::uint64_t matrix_cycles(const MatrixUnit& unit, std::uint64_t k, std::uint64_t n) {
  const std::uint64_t issue = matrix_issue_cycles(unit, (k + unit.depth - 1) / unit.depth,
                                                  (n + unit.lanes - 1) / unit.lanes);
  return issue == 0 ? 0 : issue + fill_cycles(unit);
}

}  // namespace systole::hw

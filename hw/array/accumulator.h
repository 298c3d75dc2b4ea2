#pragma once

#include <cstddef>
#include <cstdint>

#include "hw/machine/machine.h"

/// The accumulator memory between the array and the post-op pipeline: values and cycle contract.
///
/// Rows of array.cols 32-bit sums reside in `banks` banks; a bank is a contiguous piece of the rows
/// and serves `ports` accesses a cycle. Two streams, each at most a row a cycle, use it: the array
/// writes, the post-op pipeline reads.
///
/// | stream       | in the cycle of acceptance | in the next cycle                   | accesses |
/// |--------------|----------------------------|-------------------------------------|----------|
/// | overwrite    | -                          | write                               | 1        |
/// | accumulate   | read                       | add (wrapping around) and write     | 2        |
/// | read         | read                       | data are valid, until they are taken | 1       |
///
/// The writer has priority. It never waits, except that with one port a row that accumulates is
/// not accepted in the cycle in which its own bank writes the previous row. The reader is accepted
/// if the writer's accesses leave its bank a port, and its last data have been or are being taken.
///
/// A row counts as written once it is accepted: whatever is accepted in a later cycle, to read or
/// to accumulate, sees the new sums. Where the row is still being written in that cycle, they are
/// forwarded from the adder, so that rows may accumulate back to back into the same sums.
namespace systole::hw {

/// Port accesses of a row that the array writes.
constexpr std::uint64_t accumulator_accesses(bool accumulate) { return accumulate ? 2 : 1; }

/// A row that the array hands over in one cycle can be read in the next, and the post-op pipeline
/// has its data one cycle after that.
inline constexpr std::uint64_t kAccumulatorWriteCycles = 1;
inline constexpr std::uint64_t kAccumulatorReadCycles = 1;
/// By so much the sums of a matmul are later: registers after its start and after the reads of its
/// operands (rtl/core/systole_matmul_unit.sv). The next one overlaps with them.
inline constexpr std::uint64_t kMatmulRegisterCycles = 2;
/// From the cycle in which the unit can take the next matmul, in which the last operands are read,
/// to the first in which another command may write there.
inline constexpr std::uint64_t kMatmulReleaseCycles = 1;

/// Part of the accumulator: `rows` x `cols` sums, rows `pitch` sums apart, from sum `first` on.
struct AccumulatorTile {
  std::uint64_t first = 0, rows = 0, cols = 0, pitch = 0;
};

/// Writes a row of sums, or adds to it modulo 2^32.
void write_accumulator_row(std::int32_t* sums, const std::int32_t* values, std::size_t cols,
                           bool accumulate);

struct AccumulatorBanks {
  std::uint32_t banks = 1;
  std::uint32_t ports = 1;
  std::uint64_t rows_per_bank = 0;
};
[[nodiscard]] AccumulatorBanks accumulator_banks(const Machine& machine);

/// Rows `first`, `first + stride` and so on, in this order. A fold of a tile that is several rows
/// wide has its width as stride.
struct AccumulatorRows {
  std::uint64_t first = 0, rows = 0, stride = 1;
};

struct AccumulatorCycles {
  std::uint64_t write = 0;   ///< up to and including the cycle that writes the last row
  std::uint64_t read = 0;    ///< up to and including the cycle in which the last data are taken
  std::uint64_t waited = 0;  ///< of `read`: the writer left the reader no port
};

/// Cycles of both streams if they begin together, offer a row whenever one is accepted, and take
/// data at once; 0 for a stream without rows.
///
/// A stream that is held up from outside (a row is withheld that would be accepted, or data are
/// refused) takes a cycle more for every such cycle. For the writer that is all. The reader takes
/// its rows, plus 1, plus the cycles it is held up, plus those in which the rule above leaves it no
/// port; how many those are depends on where the writer is by then, so a hold-up may change them.
///
/// Throws std::out_of_range if a row lies outside the banks.
[[nodiscard]] AccumulatorCycles accumulator_cycles(const AccumulatorBanks& banks,
                                                   const AccumulatorRows& writes, bool accumulate,
                                                   const AccumulatorRows& reads);

}  // namespace systole::hw

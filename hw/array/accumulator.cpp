#include "hw/array/accumulator.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace systole::hw {
namespace {

/// Calls visit(bank, rows of the stream in it) for every bank that the stream comes through. It
/// goes up, so it comes to a bank once.
template <typename Visit>
void for_each_bank(const AccumulatorBanks& banks, const AccumulatorRows& stream, Visit visit) {
  std::uint64_t row = stream.first;
  for (std::uint64_t left = stream.rows; left > 0;) {
    const std::uint64_t bank = row / banks.rows_per_bank;
    if (bank >= banks.banks) throw std::out_of_range("accumulator_cycles: no such row");
    const std::uint64_t room = (bank + 1) * banks.rows_per_bank - row;
    const std::uint64_t rows =
        stream.stride == 0 ? left : std::min(left, (room + stream.stride - 1) / stream.stride);
    visit(static_cast<std::size_t>(bank), rows);
    row += rows * stream.stride;
    left -= rows;
  }
}

}  // namespace

void write_accumulator_row(std::int32_t* sums, const std::int32_t* values, std::size_t cols,
                           bool accumulate) {
  if (!accumulate) {
    std::copy_n(values, cols, sums);
    return;
  }
  for (std::size_t i = 0; i < cols; ++i) {
    sums[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[i]) +
                                        static_cast<std::uint32_t>(values[i]));
  }
}

AccumulatorBanks accumulator_banks(const Machine& machine) {
  const std::uint64_t row_bytes = std::uint64_t{machine.array.cols} * sizeof(std::int32_t);
  return {machine.accumulator.banks, machine.accumulator.ports,
          machine.accumulator.bank_bytes() / row_bytes};
}

AccumulatorCycles accumulator_cycles(const AccumulatorBanks& banks, const AccumulatorRows& writes,
                                     bool accumulate, const AccumulatorRows& reads) {
  /// Cycles [from, to) in which the writer leaves a bank no port.
  struct Taken {
    std::uint64_t from = 0, to = 0;
  };
  std::vector<Taken> taken(banks.banks);
  AccumulatorCycles cycles;

  // With one port, a row that accumulates has its bank to itself for two cycles. The next bank can
  // start in the second of them.
  const std::uint64_t interval = banks.ports == 1 && accumulate ? 2 : 1;
  std::uint64_t cycle = 0;  // in which the next row is accepted
  for_each_bank(banks, writes, [&](std::size_t bank, std::uint64_t rows) {
    const std::uint64_t first = cycle;
    const std::uint64_t last = first + (rows - 1) * interval;
    if (banks.ports == 1) {
      taken[bank] = {accumulate ? first : first + 1, last + 2};
    } else if (banks.ports == 2 && accumulate) {
      taken[bank] = {first + 1, last + 1};  // a row is read while the one before it is written
    }
    cycle = last + 1;
  });
  if (writes.rows > 0) cycles.write = cycle + 1;

  cycle = 0;
  for_each_bank(banks, reads, [&](std::size_t bank, std::uint64_t rows) {
    const Taken& gap = taken[bank];
    if (cycle < gap.to && cycle + rows > gap.from) {
      cycles.waited += gap.to - std::max(cycle, gap.from);
      cycle += gap.to - std::max(cycle, gap.from);
    }
    cycle += rows;
  });
  if (reads.rows > 0) cycles.read = cycle + 1;
  return cycles;
}

}  // namespace systole::hw

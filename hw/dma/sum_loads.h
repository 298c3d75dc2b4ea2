#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "hw/array/fold_stream.h"

/// The cycle contract of loads to the accumulator in gates: rtl/core/systole_sum_loader.sv meets
/// it. All bytes of a tile are kept until the last one is there; then its rows go to the
/// accumulator, a vector a cycle, after those of the array.
namespace systole::hw {

class SumLoads {
 public:
  /// `array`: rows of sums that the array writes; `lanes`: sums in a row of the accumulator.
  SumLoads(const std::vector<SumWrite>& array, std::uint64_t lanes);

  /// A tile of `m` rows of `n` sums, from sum `c` of the accumulator on and `c_pitch` sums apart,
  /// whose last byte is there with cycle `there`. Returns the cycle with which its sums are there:
  /// the load unit can take another load then.
  std::uint64_t run(std::uint64_t there, std::uint64_t m, std::uint64_t n, std::uint64_t c,
                    std::uint64_t c_pitch);

  /// Rows that were written.
  [[nodiscard]] const std::vector<SumWrite>& writes() const { return writes_; }

 private:
  std::set<std::uint64_t> busy_;  ///< cycles in which the array writes
  const std::uint64_t lanes_;
  std::vector<SumWrite> writes_;
};

}  // namespace systole::hw

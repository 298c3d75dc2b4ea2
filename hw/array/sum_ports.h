#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hw/array/fold_stream.h"

/// The cycle contract of the accumulator in gates: rtl/core/systole_sum_memory.sv meets it.
namespace systole::hw {

/// Each bank keeps its even and its odd rows in two memories of two ports. A vector takes one
/// cycle; one that does not begin at a row uses the memories of two rows. Writers never wait. A
/// reader waits in a cycle in which one of its memories writes the vector of the cycle before and
/// reads the sums to which another one is added.
class SumPorts {
 public:
  struct Size {
    std::uint64_t cols, banks, rows_per_bank;  ///< sums of a row and of a vector; powers of 2
  };

  /// `sums`: all vectors that are written, in the order of their cycles.
  SumPorts(const Size& size, const std::vector<SumWrite>& sums) : size_(size) {
    for (std::size_t i = 1; i < sums.size(); ++i) {
      const SumWrite &before = sums[i - 1], &sum = sums[i];
      if (!sum.accumulate || before.cycle + 1 != sum.cycle) continue;
      for (const std::uint64_t memory : memories(sum.at)) {
        if (uses(before.at, memory)) taken_.emplace_back(sum.cycle, memory);
      }
    }
    std::sort(taken_.begin(), taken_.end());
  }

  /// Whether a reader of the vector from sum `at` on has to wait in a cycle.
  [[nodiscard]] bool none(std::uint64_t cycle, std::uint64_t at) const {
    const std::vector<std::uint64_t> all = memories(at);
    return std::any_of(all.begin(), all.end(), [&](std::uint64_t memory) {
      return std::binary_search(taken_.begin(), taken_.end(), std::make_pair(cycle, memory));
    });
  }

 private:
  [[nodiscard]] std::vector<std::uint64_t> memories(std::uint64_t at) const {
    const std::uint64_t rows = size_.banks * size_.rows_per_bank, row = at / size_.cols;
    std::vector<std::uint64_t> memories;
    for (std::uint64_t i = 0; i < (at % size_.cols == 0 ? 1U : 2U); ++i) {
      const std::uint64_t here = (row + i) % rows;
      memories.push_back(2 * (here / size_.rows_per_bank) + here % 2);
    }
    return memories;
  }
  [[nodiscard]] bool uses(std::uint64_t at, std::uint64_t memory) const {
    const std::vector<std::uint64_t> all = memories(at);
    return std::find(all.begin(), all.end(), memory) != all.end();
  }

  Size size_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken_;  ///< cycle, memory
};

}  // namespace systole::hw

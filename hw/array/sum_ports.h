#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "hw/array/fold_stream.h"

/// The cycle contract of the accumulator in gates: rtl/core/systole_sum_memory.sv meets it.
namespace systole::hw {

/// The memories of an accumulator: each bank keeps its rows in four. A row is in the one whose
/// number is the exclusive or of codes of the bits that are set in its own: 1, 2, and then 2, 3, 1
/// again and again. So rows that follow each other are never in the same one, and of two that are 3
/// or 4 times a power of two apart one pair in seven; of no distance up to 128 more than about half
/// of the pairs.
struct SumMemories {
  static constexpr std::uint64_t kPerBank = 4;
  std::uint64_t cols, banks, rows_per_bank;  ///< sums of a row and of a vector; powers of 2

  /// One or two of them, which are the same then.
  using Pair = std::array<std::uint64_t, 2>;

  /// Those of the vector from sum `at` on: of two rows, unless it begins at a row.
  [[nodiscard]] Pair of_vector(std::uint64_t at) const {
    return of_rows(at / cols, (at + cols - 1) / cols);
  }
  /// Those of some sums, which are in one row or two.
  [[nodiscard]] Pair of_sums(std::uint64_t first, std::uint64_t last) const {
    return of_rows(first / cols, last / cols);
  }

  [[nodiscard]] static bool uses(const Pair& of, std::uint64_t memory) {
    return of[0] == memory || of[1] == memory;
  }

  /// Of its bank.
  [[nodiscard]] static constexpr std::uint64_t of_row(std::uint64_t row) {
    constexpr std::array<std::uint64_t, 3> kCodes = {3, 1, 2};  // of bits 3, 4, 5
    std::uint64_t memory = row % kPerBank;
    for (std::uint64_t bit = 2; row >> bit != 0; ++bit) {
      if ((row >> bit & 1) != 0) memory ^= kCodes[bit % 3];
    }
    return memory;
  }

 private:
  [[nodiscard]] Pair of_rows(std::uint64_t first, std::uint64_t last) const {
    const auto memory = [this](std::uint64_t row) {
      row %= banks * rows_per_bank;
      return kPerBank * (row / rows_per_bank) + of_row(row);
    };
    return {memory(first), memory(last)};
  }
};

/// Sums that a load writes in a cycle: some of a row, or of two.
struct LoadedSums {
  std::uint64_t cycle = 0;
  std::uint64_t first = 0, last = 0;
};

/// Each memory has two ports. Writers never wait. A reader of a vector waits in a cycle in which
/// one of its memories writes what it was given in the cycle before, and reads sums of the array to
/// which others are added.
class SumPorts {
 public:
  /// `array`: all vectors that the array writes, `loads`: what loads write, in the order of their
  /// cycles.
  SumPorts(const SumMemories& size, const std::vector<SumWrite>& array,
           const std::vector<LoadedSums>& loads)
      : size_(size) {
    auto loaded = loads.begin();
    for (std::size_t i = 0; i < array.size(); ++i) {
      const SumWrite& sum = array[i];
      if (!sum.accumulate) continue;
      while (loaded != loads.end() && loaded->cycle + 1 < sum.cycle) ++loaded;
      for (const std::uint64_t memory : size.of_vector(sum.at)) {
        const bool of_array = i != 0 && array[i - 1].cycle + 1 == sum.cycle &&
                              SumMemories::uses(size.of_vector(array[i - 1].at), memory);
        const bool of_load = loaded != loads.end() && loaded->cycle + 1 == sum.cycle &&
                             SumMemories::uses(size.of_sums(loaded->first, loaded->last), memory);
        if (of_array || of_load) taken_.emplace_back(sum.cycle, memory);
      }
    }
    std::sort(taken_.begin(), taken_.end());
  }

  /// Whether a reader of the vector from sum `at` on has to wait in a cycle.
  [[nodiscard]] bool none(std::uint64_t cycle, std::uint64_t at) const {
    const SumMemories::Pair all = size_.of_vector(at);
    return std::any_of(all.begin(), all.end(), [&](std::uint64_t memory) {
      return std::binary_search(taken_.begin(), taken_.end(), std::make_pair(cycle, memory));
    });
  }

 private:
  SumMemories size_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken_;  ///< cycle, memory
};

}  // namespace systole::hw

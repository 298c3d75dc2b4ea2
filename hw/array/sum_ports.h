#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "hw/array/fold_stream.h"

/// The cycle contract of the accumulator in gates: rtl/core/systole_sum_memory.sv meets it.
namespace systole::hw {

/// Sums that follow each other in the accumulator.
struct SumRange {
  std::uint64_t first = 0, last = 0;
};

/// The memories of an accumulator: each bank keeps its rows in one, two or four. A row is in the
/// one whose number, modulo how many they are, is the exclusive or of codes of the bits that are
/// set in its own: 1, 2, and then 2, 3, 1 again and again. Of four, rows that follow each other are
/// never in the same one, and of two that are 3 or 4 times a power of two apart one pair in seven;
/// of no distance up to 128 more than about half of the pairs.
struct SumMemories {
  /// Of a bank of the gates.
  static constexpr std::uint64_t kInGates = 4;
  std::uint64_t cols, banks, rows_per_bank;  ///< sums of a row and of a vector; powers of 2
  std::uint64_t memories = kInGates;         ///< of a bank

  /// The vector of the array from a sum on.
  [[nodiscard]] SumRange vector(std::uint64_t at) const { return {at, at + cols - 1}; }
  /// Of all banks, the one that has a row. What does not fit goes on at the beginning.
  [[nodiscard]] std::uint64_t of(std::uint64_t row) const {
    row %= banks * rows_per_bank;
    return memories * (row / rows_per_bank) + of_row(row) % memories;
  }
  /// Whether some of these sums are in a memory.
  [[nodiscard]] bool uses(std::uint64_t memory, const SumRange& sums) const {
    for (std::uint64_t row = sums.first / cols; row <= sums.last / cols; ++row) {
      if (of(row) == memory) return true;
    }
    return false;
  }
  /// Whether both have rows in the same memory.
  [[nodiscard]] bool meet(const SumRange& a, const SumRange& b) const {
    for (std::uint64_t row = a.first / cols; row <= a.last / cols; ++row) {
      if (uses(of(row), b)) return true;
    }
    return false;
  }
  /// Of four.
  [[nodiscard]] static constexpr std::uint64_t of_row(std::uint64_t row) {
    constexpr std::array<std::uint64_t, 3> kCodes = {3, 1, 2};  // of bits 3, 4, 5
    std::uint64_t memory = row % kInGates;
    for (std::uint64_t bit = 2; row >> bit != 0; ++bit) {
      if ((row >> bit & 1) != 0) memory ^= kCodes[bit % 3];
    }
    return memory;
  }
};

/// Sums that a load writes in a cycle.
struct LoadedSums {
  std::uint64_t cycle = 0;
  std::uint64_t first = 0, last = 0;

  [[nodiscard]] SumRange sums() const { return {first, last}; }
};

/// When a reader finds a memory with two ports taken: the array reads there sums to which it adds,
/// and what was given in the cycle before is written. Writers never wait.
class SumPorts {
 public:
  /// `array`: all vectors that the array writes, `loads`: what loads write, both in the order of
  /// their cycles.
  SumPorts(const SumMemories& size, const std::vector<SumWrite>& array,
           const std::vector<LoadedSums>& loads)
      : size_(size) {
    auto loaded = loads.begin();
    for (std::size_t i = 0; i < array.size(); ++i) {
      const SumWrite& sum = array[i];
      if (!sum.accumulate) continue;
      while (loaded != loads.end() && loaded->cycle + 1 < sum.cycle) ++loaded;
      const SumRange adds = size.vector(sum.at);
      for (std::uint64_t row = adds.first / size.cols; row <= adds.last / size.cols; ++row) {
        const std::uint64_t memory = size.of(row);
        bool is_written = i != 0 && array[i - 1].cycle + 1 == sum.cycle &&
                          size.uses(memory, size.vector(array[i - 1].at));
        for (auto load = loaded; load != loads.end() && load->cycle + 1 == sum.cycle; ++load) {
          is_written = is_written || size.uses(memory, load->sums());
        }
        if (is_written) taken_.emplace_back(sum.cycle, memory);
      }
    }
    std::sort(taken_.begin(), taken_.end());
  }

  /// Whether a reader of these sums has to wait in a cycle.
  [[nodiscard]] bool none(std::uint64_t cycle, const SumRange& sums) const {
    for (std::uint64_t row = sums.first / size_.cols; row <= sums.last / size_.cols; ++row) {
      if (std::binary_search(taken_.begin(), taken_.end(), std::make_pair(cycle, size_.of(row)))) {
        return true;
      }
    }
    return false;
  }

 private:
  SumMemories size_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken_;  ///< cycle, memory
};

}  // namespace systole::hw

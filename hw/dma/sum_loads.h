#pragma once

#include <cstdint>
#include <vector>

#include "hw/array/fold_stream.h"
#include "hw/array/sum_ports.h"

/// The cycle contract of loads to the accumulator in gates: rtl/core/systole_sum_loader.sv meets
/// it. Beats are written in their order, each in the first cycle after its own in which the array
/// writes into none of its memories.
namespace systole::hw {

/// From the cycle with which a beat has come to the one with which its sums are in the accumulator,
/// where the array is not in the way.
inline constexpr std::uint64_t kSumLoadCycles = 2;

class SumLoads {
 public:
  /// `array`: vectors of sums that the array writes; `beats`: what the port has read, a beat a
  /// cycle, with the cycles in which they are in its register. Both in the order of their cycles.
  SumLoads(const SumMemories& size, const std::vector<SumWrite>& array,
           const std::vector<LoadedSums>& beats);

  /// The cycle with which a beat would be in the accumulator, after those of `beats` that were in
  /// the port's register before it.
  [[nodiscard]] std::uint64_t placed(const LoadedSums& beat) const;

  /// What is written.
  [[nodiscard]] const std::vector<LoadedSums>& writes() const { return writes_; }

 private:
  [[nodiscard]] std::uint64_t written(const LoadedSums& beat, std::uint64_t free) const;

  const SumMemories size_;
  const std::vector<SumWrite>& array_;
  std::vector<std::uint64_t> beats_;  ///< their cycles
  std::vector<LoadedSums> writes_;
};

}  // namespace systole::hw

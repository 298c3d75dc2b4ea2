#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/dataflow.h"
#include "hw/machine/machine.h"

/// How much the mappings of one product differ: random ones, by energy times delay.
///
/// A mapping cuts m, n and k without rest into loops over tiles from DRAM and loops over the folds
/// of a tile on chip; a fold of n and k is as many PEs side by side as divide the tile. The three
/// loops of either level are in any order. The array is weight-stationary. A mapping is valid if
/// its tiles of A and B fit the scratchpad and its C tile the accumulator, whole: without double
/// buffers.
///
/// Energy: events of the nest by the machine's table. Delay: the slowest of the PEs, of the
/// buffers' words of A, B or C (as many elements as the array has rows or columns) at one a cycle
/// each, and of the bytes of DRAM at the rate of memory: all of them overlap. An element in DRAM is
/// a byte, a partial sum too: as in Timeloop, where a memory has words of one width.
namespace systole::analysis {

struct MapspaceStatistics {
  std::uint64_t mappings = 0;   ///< valid ones
  std::uint64_t drawn = 0;      ///< with those that did not fit
  double best = 0;              ///< least energy times delay, J s
  double tenth_percentile = 0;  ///< of it, relative to the least; at least 1
  double below_three = 0;       ///< share of mappings below three times the least, 0 to 1
  double decades = 0;           ///< decimal logarithm of the most relative to the least
};

/// Draws until `mappings` (at least 1) valid ones are found. Each way to cut a dimension is equally
/// likely, as is each order. Same seed, same figures, on any host.
/// Throws InputError if hardly any mapping is valid.
[[nodiscard]] MapspaceStatistics sample_mapspace(const ProductShape& shape,
                                                 const hw::Machine& machine, std::uint64_t mappings,
                                                 std::uint64_t seed);

/// The operators whose mappings the survey samples (section 5), convolutions as products of their
/// im2col matrices.
struct MapspaceOperator {
  std::string name;
  ProductShape shape;
};
[[nodiscard]] const std::vector<MapspaceOperator>& survey_mapspace_operators();

}  // namespace systole::analysis

#pragma once

#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/tile/tiling.h"

/// One function per value of mapper.strategy. Each offers tilings of a group, the best one first,
/// with what the cost model expects of them; none if not even single folds fit.
namespace systole::mapper {

/// The cheapest by TilingCost of all tilings into balanced pieces whose double buffers fit: a few
/// of each order of loops and set of operands that stay, as the model knows their ranks only
/// roughly. After them what is best if half of the reads in flight do their work.
[[nodiscard]] std::vector<Tiling> cost_tilings(const hw::Machine& machine,
                                               const TilingProblem& problem, Wanted wanted = {});

/// The heuristic of Gemmini's library, for its loop unroller. In blocks of the array's size: square
/// C tiles that fit half the accumulator, as deep as a quarter of the scratchpad allows; then one
/// block more of n, m and k, in turn, as long as A and B fit half the scratchpad and C half the
/// accumulator. Where not even the first tile fits it is made smaller, which the library does not
/// do. The parameters of a C tile, which Gemmini does not have, fit half the scratchpad too.
/// C tiles of whole rows begin with one block of rows and of depth. A pass without a
/// matmul has no loop: cost_tilings().
[[nodiscard]] std::vector<Tiling> gemmini_tilings(const hw::Machine& machine,
                                                  const TilingProblem& problem);

/// All tilings, double buffered or not, with or without operands that stay, by the machine's
/// mapper.objective: every one if they are few, else those of cost_tilings(), random ones, and from
/// the best of both a local search. Never worse than cost_tilings(), which are offered, too. The
/// same for the same machine and problem.
[[nodiscard]] std::vector<Tiling> search_tilings(const hw::Machine& machine,
                                                 const TilingProblem& problem);

/// Bytes that the tiles of a group take at least, of each memory by itself.
struct SmallestTiles {
  std::uint64_t scratchpad = 0;   ///< slots of all operands, without what resides there
  std::uint64_t accumulator = 0;  ///< of a group that runs alone
  std::uint64_t operands = 0;     ///< buffer of tensor operands
};
/// Of cost_tilings() and search_tilings().
[[nodiscard]] SmallestTiles smallest_tiles(const hw::Machine& machine,
                                           const TilingProblem& problem);
/// Of gemmini_tilings().
[[nodiscard]] SmallestTiles smallest_gemmini_tiles(const hw::Machine& machine,
                                                   const TilingProblem& problem);

}  // namespace systole::mapper

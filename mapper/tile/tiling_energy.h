#pragma once

#include "hw/machine/machine.h"
#include "mapper/tile/tiling.h"

namespace systole::mapper {

/// Joules that an operator is expected to cost, by the machine's table and the events that a
/// simulation counts: MACs, stages, words that array and post-op unit move in scratchpad and
/// accumulator, and all bytes from and to memory, commands included. `tiling.load_bytes` are those
/// of the cost model. Not counted: leakage, encoders, an L2 cache.
[[nodiscard]] double tiling_energy(const hw::Machine& machine, const TilingProblem& problem,
                                   const Tiling& tiling);

}  // namespace systole::mapper

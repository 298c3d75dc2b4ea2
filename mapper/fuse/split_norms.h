#pragma once

#include "hw/machine/machine.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// The graph with LayerNorms parted where the machine can use it: the operator that gives a
/// LayerNorm's input leaves the sum of squares of its rows (hw::Reduction::kSumSquares), and the
/// LayerNorm becomes a stage without passes of its own: it reads a row once, works on any part of
/// it, and can go before a matmul. Values stay the same, bit for bit
/// (hw::layernorm_statistics_from_sums()). Nodes keep their order and names; tensors are added at
/// the end.
[[nodiscard]] model::Graph split_norms(model::Graph graph, const hw::Machine& machine);

}  // namespace systole::mapper

#pragma once

#include "model/graph/graph.h"

namespace systole::testbench {

/// A post-norm encoder with the operators behind its branches in the order and the widths of
/// Gemmini's benchmark of BERT: the LayerNorm takes the branch alone, int32 to bytes, and the
/// residual is added to that, bytes to bytes. Another network than BERT, for timing alone: neither
/// scales nor immediates are made to fit.
[[nodiscard]] model::Graph in_library_order(model::Graph graph);

}  // namespace systole::testbench

#pragma once

#include "analysis/bound/memory_floor.h"
#include "hw/machine/machine.h"
#include "model/graph/graph.h"

namespace systole::analysis {

/// Least cycles along what depends on each other, from start to completion, in whatever order the
/// rest runs. 0 for machines whose host computes operators, and for those with attention engines.
///
/// Let every element of product c need all of product b, both with weights. Whatever else runs,
/// from the last sum of b to the last of c it takes at least each of:
/// - array: products of which every MAC needs all of b and that c needs; of those that need rows of
///   b, the row that came last. From the first of them on, and until sums leave the array.
/// - memory: their weights, but for what scratchpad and accumulator hold when b is complete;
/// - post-op: a pass over the sums of these products, a softmax's passes over its rows, what a
///   LayerNorm takes beyond a pass;
/// - latency: array, accumulator and chains for a single element, a residual's way from memory.
/// Where c needs the rows of an operator w that needs all of b, a product with weights or a
/// LayerNorm: from b to all of w, and then for w's last row to c; or from b to the first row of w,
/// and then all that needs rows of w. Rows of a norm count from the begin of their last pass on:
/// an element of it exists once its row is known. Other operators run meanwhile and count nothing.
/// Times of b, c, ... add up along the longest chain. Before its first product the array has
/// multiplied, and the post-op unit passed, all that this product needs.
[[nodiscard]] double least_path(const model::Graph& graph, const hw::Machine& machine,
                                const MemoryFloor& memory);

}  // namespace systole::analysis

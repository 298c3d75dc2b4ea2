#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "model/graph/graph.h"
#include "testbench/cores/core_plan.h"

namespace systole::testbench {

/// A stretch of a graph's nodes as a separate graph.
struct SubGraph {
  std::shared_ptr<const model::Graph> graph;
  std::vector<TensorOrigin> origins;  ///< in the whole graph, by tensor of this one
};

/// Positions of nodes before which a graph can be cut: one tensor alone crosses there, written
/// before and read after it. In order; neither begin nor end.
[[nodiscard]] std::vector<std::size_t> cuts_of(const model::Graph& graph);

/// Nodes `begin` to `end` of a graph, two of its cuts, its begin or its end. What crosses the cuts
/// is input and output.
[[nodiscard]] SubGraph sub_graph(const model::Graph& graph, std::size_t begin, std::size_t end);

/// Pipeline: each core has consecutive layers of the network, and inferences follow one another.
/// What crosses from core to core has two buffers in memory, so that one is written while the other
/// is read. The cuts are those for which the mapper expects the longest stage to be shortest, near
/// the cuts that balance the work. Throws InputError if the graph has too few cuts, or memory does
/// not hold everything.
[[nodiscard]] CorePlan plan_layers(const hw::CoreSystem& system,
                                   std::shared_ptr<const model::Graph> graph,
                                   std::size_t inferences);

}  // namespace systole::testbench

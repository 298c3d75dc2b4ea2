#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "base/units.h"
#include "hw/machine/machine.h"
#include "mapper/tile/tiling_strategies.h"
#include "model/graph/graph.h"

namespace systole::bench {

/// Whether scratchpad and accumulator hold the smallest tiles of each product twice, so that one
/// comes in or leaves while the other is multiplied: a tile of B and one of A as large as the
/// array, and sums of as many rows. Scores that a softmax follows are whole rows of sums.
/// A machine without that room has a bound that assumes more than any mapping can do.
inline bool holds_double_buffers(const model::Graph& graph, const hw::Machine& machine) {
  std::map<model::TensorId, std::size_t> product;  // that gives what the chains work on
  std::map<std::size_t, mapper::TilingProblem> problems;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const model::Node& node = graph.nodes[i];
    if (node.product() != nullptr) {
      mapper::TilingProblem& problem = problems[i];
      problem.m = node.in.rows;
      problem.n = node.out.cols;
      problem.k = node.in.cols;
      problem.b_transposed = node.product()->b_transposed;
      problem.row_tile = std::min(problem.m, machine.array.rows);
      product[node.out.tensor] = i;
    } else if (node.stage() != nullptr && product.count(node.in.tensor) != 0) {
      const std::size_t from = product.at(node.in.tensor);
      product[node.out.tensor] = from;
      if (node.stage()->stage.op == hw::StageOp::kSoftmax) problems.at(from).row_wise = true;
    }
  }
  constexpr std::uint64_t kTwice = 2;
  return std::all_of(problems.begin(), problems.end(), [&](const auto& of_node) {
    const mapper::SmallestTiles least = mapper::smallest_tiles(machine, of_node.second);
    return least.scratchpad <= machine.scratchpad.kib * hw::kKib &&
           kTwice * least.accumulator <= machine.accumulator.kib * hw::kKib;
  });
}

}  // namespace systole::bench

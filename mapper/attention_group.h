#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "hw/machine.h"
#include "hw/postop.h"
#include "hw/sparse_head.h"
#include "model/graph.h"

namespace systole::mapper {

/// The attention of one layer, all heads, as the machine's attention engines run it in one command.
struct AttentionGroup {
  model::View query, key, value, out;  ///< all heads side by side
  std::size_t dim = 0, value_dim = 0;  ///< features of a head in Q and K, and in V
  hw::Chain softmax, chain;
  std::vector<hw::SparseHead> heads;  ///< split for the two engines; without a mask all is kept
  std::size_t nodes = 0;              ///< of the graph, one after the other
};

/// The layer that begins with the graph's node number `first`: for each head scores, mask (added
/// tables of 0 and model::kPrunedCode) or none, deferred softmax, context, division,
/// requantisation. Nothing if the nodes there are something else, or more than the engines can do.
[[nodiscard]] std::optional<AttentionGroup> match_attention(const model::Graph& graph,
                                                            std::size_t first,
                                                            const hw::Machine& machine);

}  // namespace systole::mapper

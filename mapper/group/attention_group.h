#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/machine/machine.h"
#include "hw/postop/postop.h"
#include "mapper/group/head_mix_layer.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// The attention of one layer, all heads, as the machine's attention engines run it in one command.
struct AttentionGroup {
  model::View query, key, value, out;       ///< all heads side by side; latent heads with decoders
  std::size_t dim = 0, value_dim = 0;       ///< features of a head in Q and K, and in V
  hw::Chain softmax;                        ///< before it stages of the scores
  hw::Chain chain;                          ///< of the outputs
  std::array<hw::Chain, 3> operand_chains;  ///< of Q, K and V as they are loaded
  std::vector<hw::SparseHead> heads;   ///< split for the two engines; without a mask all is kept
  std::size_t nodes = 0;               ///< of the heads, one after the other
  std::vector<HeadMixLayer> decoders;  ///< of Q and K, before the heads' nodes; or none

  [[nodiscard]] bool stages_operands() const {
    return std::any_of(operand_chains.begin(), operand_chains.end(),
                       [](const hw::Chain& stages) { return !stages.stages.empty(); });
  }
};

/// The layer that begins with the graph's node number `first`: for each head scores, stages of
/// them, mask (mapper/group/mask_table.h) or none, deferred softmax, context, stages up to the last
/// that gives s8. The same stages in all heads, and only such as the engines can run
/// (hw::runs_on_engines()). Nothing if the nodes there are something else, or more than the engines
/// can do. `readers`: how many nodes read each tensor.
[[nodiscard]] std::optional<AttentionGroup> match_attention(const model::Graph& graph,
                                                            std::size_t first,
                                                            const hw::Machine& machine,
                                                            const std::vector<unsigned>& readers);

/// The same with the layers that decode Q and K for these heads alone as part of it. `group`: as
/// match_attention() gives it for `first`. Nothing if there are none, or the machine's buffers do
/// not hold a decoded token.
[[nodiscard]] std::optional<AttentionGroup> with_decoders(const model::Graph& graph,
                                                          const AttentionGroup& group,
                                                          std::size_t first,
                                                          const hw::Machine& machine,
                                                          const std::vector<unsigned>& readers);

}  // namespace systole::mapper

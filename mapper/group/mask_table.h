#pragma once

#include <optional>

#include "hw/postop/postop.h"
#include "model/graph/graph.h"
#include "model/mask/attention_mask.h"

namespace systole::mapper {

/// Where a head's scores are masked.
struct MaskedScores {
  const model::Node* mask;   ///< null: all cells are kept
  const hw::Chain& softmax;  ///< stages of the scores before the mask, then the softmax
  const model::View& query;  ///< Q and K of the head
  const model::View& key;
};

/// The cells that the mask keeps, as those of one head. The mask is a constant table: of 0 and
/// model::kPrunedCode, which is added to the scores, or one that selects them (StageOp::kMask).
/// Nothing if it is something else, if a row keeps no cell, or if a pruned score may be so close to
/// a kept one that it does not vanish in the softmax: then the table is more than a mask.
[[nodiscard]] std::optional<model::AttentionMask> kept_cells(const model::Graph& graph,
                                                             const MaskedScores& scores);

}  // namespace systole::mapper

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/attention/attention_tiles.h"
#include "hw/attention/sparse_head.h"
#include "hw/machine/machine.h"

namespace systole::hw {

/// Queries of one head, and what the accumulator holds of them.
struct HeadTile {
  std::size_t head = 0;
  QueryTile tile;
  std::uint64_t score_bytes = 0;  ///< 32 bits for every cell that is computed
  std::uint64_t sum_bytes = 0;    ///< 32 bits for every output
};

/// Heads in the order in which the engines take them, those with the most computed cells first: so
/// it does not matter in which order a network has them.
[[nodiscard]] std::vector<std::size_t> head_order(const std::vector<SparseHead>& heads);

/// What a layer's engines work on: batch after batch, in each the SDDMM of all tiles, then the SpMM
/// of all of them. Heads in head_order(); one that exceeds the accumulator goes in query_tiles().
///
/// AttentionOrder::kPhase: a batch is as long as its scores, with the largest of its tiles' sums,
/// fit the accumulator, and the masks of its heads the index buffer unless they stream
/// (hw/attention/timing/mask_stream.h); kHead: one tile. Throws InputError as query_tiles().
[[nodiscard]] std::vector<std::vector<HeadTile>> plan_batches(const std::vector<SparseHead>& heads,
                                                              std::size_t value_dim,
                                                              const Machine& machine);

}  // namespace systole::hw

#pragma once

#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/group/group.h"
#include "mapper/place/pipeline.h"
#include "mapper/place/placement.h"

namespace systole::mapper {

/// Room for the tiles of a pipeline's groups, by group: parts of both halves of the accumulator and
/// of what is `free` of the scratchpad, one for each level. `tensors`: by TensorId.
[[nodiscard]] std::vector<Share> share_memories(const std::vector<Group>& groups,
                                                const Pipeline& pipeline,
                                                const hw::Machine& machine,
                                                const std::vector<Location>& tensors, Span free);

/// Columns of sums that a row of a group's smallest tile has: all that it needs where there is no
/// product, or where the chain or the valid columns are of whole rows; else as wide as the array.
[[nodiscard]] std::uint64_t least_sum_cols(const Group& group, const hw::Machine& machine);

/// Sums of each half of the accumulator for a product before heads (Pipeline::section): a tile of
/// all rows of a section, if that is no large part of it.
[[nodiscard]] std::uint64_t section_sums(const Group& product, std::uint32_t section,
                                         const hw::Machine& machine);

/// Every slot begins at a word of the scratchpad, and parameters where they may.
[[nodiscard]] std::uint64_t slot_alignment(const hw::Machine& machine);

/// All of both memories, for a group that runs alone.
[[nodiscard]] Share whole_share(const hw::Machine& machine);

}  // namespace systole::mapper

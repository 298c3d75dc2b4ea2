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

/// Every slot begins at a word of the scratchpad, and parameters where they may.
[[nodiscard]] std::uint64_t slot_alignment(const hw::Machine& machine);

/// All of both memories, for a group that runs alone.
[[nodiscard]] Share whole_share(const hw::Machine& machine);

}  // namespace systole::mapper

#pragma once

#include <cstdint>

#include "mapper/emit/emitter.h"

namespace systole::mapper {

/// Cycles by which the most wanted bank of the scratchpad exceeds the array's: what a group's
/// products read there and what its loads and results write, shared by the slots of each operand.
/// The group is one that runs alone.
[[nodiscard]] std::uint64_t bank_excess(const TiledGroup& group, const EmitTarget& to);

}  // namespace systole::mapper

#pragma once

#include <cstdint>

#include "hw/machine/machine.h"
#include "mapper/group/attention_group.h"

namespace systole::mapper {

/// Cycles that the attention engines are expected to take for a layer, from its first request to
/// the last outputs of its SpMM: the plan of its rows (hw/attention/timing/attention_plan.h) walked
/// as tlm/attention does, with the memory of ReplayMemory, decoders included. Left out: stages of
/// operands, requests of masks that stream, and what the writes of the outputs take from the
/// memory. Throws InputError as hw::plan_attention().
[[nodiscard]] std::uint64_t replay_attention(const AttentionGroup& group,
                                             const hw::Machine& machine);

}  // namespace systole::mapper

#pragma once

#include <cstdint>
#include <string>

#include "hw/machine/machine.h"
#include "mapper/group/attention_group.h"
#include "mapper/group/group.h"
#include "model/graph/graph.h"

/// Stages of Q, K and V upstream of the attention engines.
namespace systole::mapper {

/// How many matmuls of the heads read this view, which is that of an operand of all heads, or of
/// several operands. 0: it is none.
[[nodiscard]] unsigned operand_reads(const AttentionGroup& attention, const model::View& view);

/// Why the chain of a group that may go before an anchor cannot go before the
/// engines; empty if it can.
[[nodiscard]] std::string operand_obstacle(const AttentionGroup& attention, const Group& stages,
                                           const model::Graph& graph);

/// Puts the chain of `stages` before the operands that are its result.
void stage_operands(const Group& stages, AttentionGroup& attention);

/// Cycles in which the stages of the operands take rows, all that come in together.
[[nodiscard]] std::uint64_t operand_stage_cycles(const AttentionGroup& attention,
                                                 const hw::Machine& machine);

}  // namespace systole::mapper

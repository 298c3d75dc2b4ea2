#pragma once

#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/group/group.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// Why the machine's mapper.fusion does not fuse: its value.
[[nodiscard]] std::string level_obstacle(const hw::Machine& machine);

/// Operators that read each tensor.
[[nodiscard]] std::vector<unsigned> count_readers(const model::Graph& graph);

/// Rows of this many columns that half the accumulator holds.
[[nodiscard]] std::uint64_t rows_in_half(const hw::Machine& machine, std::uint32_t cols);

/// Adds the stage of a node at the end of the group's chain.
void append(Group& group, std::size_t index, const model::Graph& graph);

/// Why the stage of a node cannot be at the end of the group's chain on this machine, whatever
/// it costs; empty if it can. Who else reads the group's result is not asked.
[[nodiscard]] std::string obstacle(const Group& group, const model::Node& node,
                                   const model::Graph& graph, const hw::Machine& machine);

/// Why the group's chain cannot go before an anchor; empty if it can.
[[nodiscard]] std::string pre_obstacle(const Group& group, const hw::Machine& machine);

}  // namespace systole::mapper

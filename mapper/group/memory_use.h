#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "mapper/group/group.h"
#include "model/graph/graph.h"

/// What operators read and write in memory: what decides whether one may run at another place in
/// the order.
namespace systole::mapper {

/// Views of tensors, row statistics included. A written state counts as a whole: another step of a
/// decoder writes other rows of it.
struct MemoryUse {
  std::vector<model::View> reads, writes;
};

[[nodiscard]] MemoryUse memory_use(const model::Graph& graph, const model::Node& node);

/// Of a group with what it writes for its encoders, whose own groups use nothing.
[[nodiscard]] MemoryUse memory_use(const model::Graph& graph, const Group& group);

/// The first of `views` that shares an element with one of `others`, or null.
[[nodiscard]] const model::View* meeting(const std::vector<model::View>& views,
                                         const std::vector<model::View>& others);

/// Why group number `pass`, whose result only group number `reader` after it reads, cannot run
/// when that one does: some group up to `reader` writes what the pass reads, or its result. Empty
/// if it can.
[[nodiscard]] std::string order_obstacle(const model::Graph& graph,
                                         const std::vector<Group>& groups, std::size_t pass,
                                         std::size_t reader);

}  // namespace systole::mapper

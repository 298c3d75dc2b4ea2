#pragma once

#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/choose/plan_replay.h"
#include "mapper/group/group.h"
#include "mapper/mapping.h"
#include "mapper/place/pipeline.h"
#include "mapper/place/placement.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// The last part of map_graph(): commands of groups that have their tilings, and whose tensors have
/// their places. `with_constants` off leaves the contents of constants out of the image; addresses
/// are the same. Commands take the memory of those in `room`.
[[nodiscard]] Mapping emit_groups(const model::Graph& graph, const hw::Machine& machine,
                                  std::vector<Group> groups, const std::vector<Pipeline>& pipelines,
                                  Placement placement, PlanReplay expected, bool with_constants,
                                  std::vector<hw::Command> room = {});

/// Throws InputError that says how much DRAM a program with its data needs, if there is less.
void require_room(const Mapping& mapping, const hw::Machine& machine, const std::string& network);

}  // namespace systole::mapper

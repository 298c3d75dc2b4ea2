#pragma once

#include <vector>

#include "hw/machine.h"
#include "mapper/fusion.h"
#include "mapper/mapping.h"
#include "mapper/placement.h"
#include "mapper/tiling.h"
#include "model/graph.h"

namespace systole::mapper {

/// The last part of map_graph(): tiles and commands of groups whose tensors have their places.
/// `with_constants` off leaves the contents of constants out of the image; addresses are the same.
[[nodiscard]] Mapping emit_groups(const model::Graph& graph, const hw::Machine& machine,
                                  std::vector<Group> groups, Placement placement, Tiler& tiler,
                                  bool with_constants);

}  // namespace systole::mapper

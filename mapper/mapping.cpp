#include "mapper/mapping.h"

#include <utility>

#include "mapper/emit_groups.h"

namespace systole::mapper {

Mapping map_graph(const model::Graph& graph, const hw::Machine& machine) {
  std::vector<Group> groups = fuse(graph, machine);
  Placement placement = place_tensors(graph, groups, machine);
  Tiler tiler(machine);
  return emit_groups(graph, machine, std::move(groups), std::move(placement), tiler, true);
}

}  // namespace systole::mapper

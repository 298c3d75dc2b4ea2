#include "mapper/mapping.h"

#include <utility>

#include "mapper/emit_groups.h"
#include "mapper/split_norms.h"

namespace systole::mapper {

Mapping map_graph(const model::Graph& graph, const hw::Machine& machine) {
  const model::Graph parted = split_norms(graph, machine);
  Fusion fusion = fuse(parted, machine);
  Placement placement = place_tensors(parted, fusion.groups, machine);
  Tiler tiler(machine);
  Mapping mapping =
      emit_groups(parted, machine, std::move(fusion.groups), std::move(placement), tiler, true);
  mapping.decisions = std::move(fusion.decisions);
  return mapping;
}

}  // namespace systole::mapper

#include "mapper/step_mapper.h"

#include <stdexcept>

#include "mapper/emit_groups.h"

namespace systole::mapper {
namespace {

/// The views of a group as the nodes have them now.
Group looked_up(Group group, const model::Graph& graph) {
  if (group.attention || group.encoder || !group.sections.encoders.empty()) {
    throw std::invalid_argument("step mapper: " + group.name + " runs on attention engines");
  }
  const model::Node& first = graph.nodes[group.nodes.front()];
  group.a = first.in;
  if (group.has_matmul) group.b = first.b;
  group.out = graph.nodes[group.nodes.back()].out;
  return group;
}

}  // namespace

StepMapper::StepMapper(const model::Graph& graph, const hw::Machine& machine)
    : machine_(machine),
      groups_(fuse(graph, machine)),
      placement_(place_tensors(graph, groups_, machine)),
      tiler_(machine) {}

Mapping StepMapper::map(const model::Graph& graph, bool with_constants) {
  std::vector<Group> groups;
  groups.reserve(groups_.size());
  for (const Group& group : groups_) groups.push_back(looked_up(group, graph));
  Mapping mapping =
      emit_groups(graph, machine_, std::move(groups), placement_, tiler_, with_constants);
  // Steps read the weights where the first one has left them.
  if (program_address_.value_or(mapping.program_address) != mapping.program_address) {
    throw std::logic_error("step mapper: the constants of " + graph.name + " have moved");
  }
  program_address_ = mapping.program_address;
  return mapping;
}

}  // namespace systole::mapper

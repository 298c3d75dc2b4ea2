#include "mapper/step_mapper.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "mapper/emit_groups.h"
#include "mapper/fuse/split_norms.h"

namespace systole::mapper {
namespace {

/// Steps after which a shape does not come back: those of a decoder grow.
constexpr std::uint64_t kRemembered = 8;

/// The operands of a chain's stages, which are those of `nodes` in their order, and the columns
/// that a mask keeps.
void look_up_operands(BoundChain& chain, const std::vector<std::size_t>& nodes,
                      const model::Graph& graph) {
  for (const std::size_t node : nodes) {
    const std::uint32_t kept = graph.nodes[node].valid_cols();
    if (kept != 0) chain.valid_cols = kept;
  }
  std::size_t next = 0;
  for (model::View& view : chain.tensors) {
    while (graph.nodes[nodes.at(next)].second().tensor != view.tensor) ++next;
    view = graph.nodes[nodes[next++]].second();
  }
}

/// Whether weights or parameters of the group are stored tile by tile.
bool stores_tiles(const model::Graph& graph, const Group& group) {
  const MatmulAnchor* const product = group.matmul();
  return hw::parameter_words(group.chain) != 0 ||
         (group.pre && hw::parameter_words(group.pre->chain) != 0) ||
         (product != nullptr &&
          graph.tensors[product->b.tensor].kind == model::Tensor::Kind::kConstant);
}

/// The views of a group as the nodes have them now.
Group looked_up(Group group, const model::Graph& graph) {
  if (group.attention() || group.encoder() || !group.sections.encoders.empty()) {
    throw std::invalid_argument("step mapper: " + group.name + " runs on attention engines");
  }
  group.a = graph.nodes[group.nodes.front()].in;
  const std::size_t in_front = group.pre ? group.pre->chain.stages.size() : 0;
  if (auto* const matmul = std::get_if<MatmulAnchor>(&group.anchor)) {
    matmul->b = graph.nodes[group.nodes[in_front]].product()->b;
  }
  if (group.pre) look_up_operands(*group.pre, group.nodes, graph);
  look_up_operands(group,
                   {group.nodes.begin() + static_cast<std::ptrdiff_t>(in_front), group.nodes.end()},
                   graph);
  group.out = graph.nodes[group.nodes.back()].out;
  return group;
}

}  // namespace

StepMapper::StepMapper(const model::Graph& graph, const hw::Machine& machine, RowGaps gaps)
    : StepMapper(machine, split_norms(graph, machine), gaps, nullptr) {}

StepMapper::StepMapper(const model::Graph& graph, const hw::Machine& machine,
                       const StepMapper& other)
    : StepMapper(machine, split_norms(graph, machine), RowGaps::kWeighed, &other) {}

StepMapper::StepMapper(const hw::Machine& machine, const model::Graph& parted, RowGaps gaps,
                       const StepMapper* other)
    : machine_(machine),
      gaps_(row_gaps(machine, gaps)),
      groups_(fuse(parted, machine).groups),
      pipelines_(find_pipelines(parted, groups_, machine, {})),
      choice_(machine),
      choice_between_(machine) {
  if (other != nullptr) {
    begin_ = other->programs();
    // `other`'s graph had fewer tensors then.
    const std::size_t count = std::min(parted.tensors.size(), other->placement_.tensors.size());
    states_.resize(count);
    for (std::size_t id = 0; id < count; ++id) {
      const bool is_state = parted.tensors[id].kind == model::Tensor::Kind::kState;
      const Location& there = other->placement_.tensors[id];
      if (is_state && there.place == Location::Place::kDram) states_[id] = there;
    }
  }
  placement_ = place(parted, 0);
}

Placement StepMapper::place(const model::Graph& parted, std::uint32_t row_gap) const {
  Residence residence;
  residence.row_gap = row_gap;
  Placement placement = place_tensors(parted, groups_, pipelines_, machine_, residence);
  for (std::size_t id = 0; id < placement.tensors.size(); ++id) {
    Location& location = placement.tensors[id];
    if (location.place != Location::Place::kDram) continue;
    if (id < states_.size() && states_[id].place == Location::Place::kDram) {
      location = states_[id];
    } else {
      location.address += begin_;
    }
  }
  placement.dram_end += begin_;
  return placement;
}

Mapping StepMapper::map(const model::Graph& step, bool with_constants, Mapping last) {
  std::vector<hw::Command> room = std::move(last.program.commands);
  last = {};
  choice_.forget_unused(kRemembered);
  const model::Graph graph = split_norms(step, machine_);
  // Programs that came later may have added tensors, none of which is this one's.
  placement_.tensors.resize(std::max(placement_.tensors.size(), graph.tensors.size()));
  std::vector<Group> groups;
  groups.reserve(groups_.size());
  for (const Group& group : groups_) groups.push_back(looked_up(group, graph));
  const auto replay = [&](const Placement& placement, std::uint64_t limit) {
    return replay_plan(graph, machine_, groups, pipelines_, placement, choice_, Repeats::kTakenOver,
                       limit, weights_);
  };
  PlanReplay expected = replay(placement_, std::numeric_limits<std::uint64_t>::max());
  choice_.free_room();
  // Where tensors are is decided at the first step, for all.
  if (weights_.empty()) {
    for (const std::uint32_t gap : gaps_) {
      Placement placement = place(graph, gap);
      const auto worth = static_cast<double>(expected.cycles) / kWorthRowGap;
      PlanReplay apart = replay(placement, static_cast<std::uint64_t>(worth));
      if (apart.given_up || static_cast<double>(apart.cycles) >= worth) continue;
      placement_ = std::move(placement);
      expected = std::move(apart);
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const bool stored = stores_tiles(graph, groups[i]);
      weights_.push_back(stored ? std::optional(expected.tilings[i]) : std::nullopt);
    }
  }
  Mapping mapping = emit_groups(graph, machine_, std::move(groups), pipelines_, placement_,
                                std::move(expected), with_constants, std::move(room));
  // Steps read the weights where the first one has left them.
  if (program_address_.value_or(mapping.program_address) != mapping.program_address) {
    throw std::logic_error("step mapper: the constants of " + graph.name + " have moved");
  }
  program_address_ = mapping.program_address;
  if (programs_at_) {
    hw::MemoryPiece& code = mapping.image.back();
    code.address = mapping.program_address = *programs_at_;
    mapping.dram_bytes = code.address + code.bytes.size();
    require_room(mapping, machine_, graph.name);
  }
  return mapping;
}

Mapping StepMapper::map_between(const model::Graph& graph) {
  choice_between_.forget_unused(kRemembered);
  std::vector<Group> groups = fuse(graph, machine_).groups;
  const std::vector<Pipeline> pipelines = find_pipelines(graph, groups, machine_, {});
  Placement placement = place_tensors(graph, groups, pipelines, machine_);
  for (const model::Node& node : graph.nodes) {
    for (const model::TensorId tensor : {node.in.tensor, node.out.tensor}) {
      if (placement_.tensors[tensor].place == Location::Place::kDram) continue;
      throw std::invalid_argument("step mapper: " + node.name + " works on what is not in DRAM");
    }
  }
  placement.tensors = placement_.tensors;
  placement.dram_end = program_address_.value();  // where the programs of the steps are, too
  PlanReplay expected =
      replay_plan(graph, machine_, groups, pipelines, placement, choice_between_,
                  Repeats::kTakenOver, std::numeric_limits<std::uint64_t>::max(), {});
  return emit_groups(graph, machine_, std::move(groups), pipelines, std::move(placement),
                     std::move(expected), false);
}

}  // namespace systole::mapper

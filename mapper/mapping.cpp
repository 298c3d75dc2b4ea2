#include "mapper/mapping.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "hw/error.h"
#include "mapper/emit_groups.h"
#include "mapper/objective.h"
#include "mapper/pipeline.h"
#include "mapper/split_norms.h"

namespace systole::mapper {
namespace {

/// What may be pipelined, the simplest first: of equals the first one is taken.
constexpr std::array<Pipelining, 4> kPipelinings = {
    {{false, false}, {true, false}, {false, true}, {true, true}}};

/// A graph and what runs together in it.
struct Fused {
  model::Graph graph;
  Fusion fusion;
};

/// A way to run it.
struct Plan {
  const Fused* fused;
  std::vector<Pipeline> pipelines;
};

/// What the machine's mapper wants little of.
double value_of(const Mapping& mapping, const hw::Machine::Mapper& mapper) {
  double joules = 0;
  for (const Tiling& tiling : mapping.tilings) joules += tiling.energy;
  return objective_of(mapper, static_cast<double>(mapping.expected_cycles), joules);
}

/// The best of all plans by the machine's strategy.
Mapping best_plan(const model::Graph& graph, const hw::Machine& machine) {
  // Stages before an anchor have to pay: without them, parts of LayerNorms stay together.
  std::vector<hw::FusionLevel> levels{machine.mapper.fusion};
  if (machine.preop.lanes != 0 && machine.mapper.fusion == hw::FusionLevel::kAll) {
    levels.push_back(hw::FusionLevel::kPost);
  }
  std::vector<Fused> fused;
  for (const hw::FusionLevel level : levels) {
    hw::Machine fusing = machine;
    fusing.mapper.fusion = level;
    model::Graph parted = split_norms(graph, fusing);
    Fusion fusion = fuse(parted, fusing);
    fused.push_back({std::move(parted), std::move(fusion)});
  }
  std::vector<Plan> plans;
  for (const Fused& one : fused) {
    for (const Pipelining& allowed : kPipelinings) {
      Plan plan{&one, find_pipelines(one.graph, one.fusion.groups, machine, allowed)};
      const auto is_same = [&](const Plan& other) {
        return other.fused == plan.fused && other.pipelines == plan.pipelines;
      };
      if (std::none_of(plans.begin(), plans.end(), is_same)) plans.push_back(std::move(plan));
    }
  }
  TilingChoice choice(machine);
  const auto map = [&](const Plan& plan, bool with_constants) {
    const std::vector<Group>& groups = plan.fused->fusion.groups;
    return emit_groups(plan.fused->graph, machine, groups, plan.pipelines,
                       place_tensors(plan.fused->graph, groups, plan.pipelines, machine), choice,
                       with_constants);
  };
  const Plan* best = &plans.front();
  double least = std::numeric_limits<double>::max();
  for (const Plan& plan : plans) {
    if (plans.size() == 1) break;
    try {
      const double value = value_of(map(plan, false), machine.mapper);
      if (value >= least) continue;
      least = value;
      best = &plan;
    } catch (const hw::InputError&) {
      // Groups that run in turns have less room each.
      if (&plan == &plans.front()) throw;
    }
  }
  Mapping mapping = map(*best, true);
  mapping.decisions = best->fused->fusion.decisions;
  return mapping;
}

}  // namespace

Mapping map_graph(const model::Graph& graph, const hw::Machine& machine) {
  Mapping mapping = best_plan(graph, machine);
  if (machine.mapper.strategy != hw::MappingStrategy::kSearch) return mapping;
  // A search chooses operator by operator; what it gains there may be lost between them.
  hw::Machine by_cost = machine;
  by_cost.mapper.strategy = hw::MappingStrategy::kCost;
  Mapping other = best_plan(graph, by_cost);
  return value_of(other, machine.mapper) < value_of(mapping, machine.mapper) ? other : mapping;
}

}  // namespace systole::mapper

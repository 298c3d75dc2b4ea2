#include "mapper/mapping.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "mapper/choose/plan_search.h"
#include "mapper/emit_groups.h"

namespace systole::mapper {
namespace {

/// The best plan that the machine's DRAM has room for.
Mapping emit_best(const std::vector<Plan>& plans, const hw::Machine& machine) {
  for (const Plan& plan : plans) {
    const FusedGraph& fused = *plan.fused;
    try {
      Mapping mapping = emit_groups(*fused.graph, machine, fused.fusion.groups, plan.pipelines,
                                    plan.placement, plan.expected, true);
      mapping.decisions = fused.fusion.decisions;
      return mapping;
    } catch (const hw::InputError&) {
      // The next one may take less DRAM.
      if (&plan == &plans.back()) throw;
    }
  }
  throw std::logic_error("a search without a plan");
}

/// Where the plan at the bound takes more DRAM than there is, another may take less.
Mapping best_mapping(const model::Graph& graph, const hw::Machine& machine, RowGaps gaps) {
  PlanSearch search(graph, machine, gaps, true);
  try {
    return emit_best(search.run(), machine);
  } catch (const hw::InputError&) {
    if (!search.stopped()) throw;
    return emit_best(PlanSearch(graph, machine, gaps, false).run(), machine);
  }
}

}  // namespace

Mapping map_graph(const model::Graph& graph, const hw::Machine& machine, RowGaps gaps) {
  Mapping mapping = best_mapping(graph, machine, gaps);
  if (machine.mapper.strategy != hw::MappingStrategy::kSearch) return mapping;
  // A search chooses operator by operator; what it gains there may be lost between them.
  hw::Machine by_cost = machine;
  by_cost.mapper.strategy = hw::MappingStrategy::kCost;
  Mapping other = best_mapping(graph, by_cost, gaps);
  const auto value = [&](const Mapping& of) {
    return value_of(of.tilings, of.expected_cycles, machine.mapper);
  };
  if (value(mapping) <= value(other)) return mapping;
  // The search was made all the same.
  for (std::size_t i = 0; i < std::min(other.tilings.size(), mapping.tilings.size()); ++i) {
    other.tilings[i].tried = mapping.tilings[i].tried;
  }
  return other;
}

}  // namespace systole::mapper

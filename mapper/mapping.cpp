#include "mapper/mapping.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/error.h"
#include "mapper/choose/plan_replay.h"
#include "mapper/emit_groups.h"
#include "mapper/fuse/split_norms.h"
#include "mapper/place/pipeline.h"
#include "mapper/tile/objective.h"

namespace systole::mapper {
namespace {

/// What may be pipelined, the simplest first: of equals the first one is taken.
constexpr std::array<Pipelining, 7> kPipelinings = {{{false, false, 0},
                                                     {true, false, 0},
                                                     {false, true, 0},
                                                     {true, true, 0},
                                                     {true, true, 2},
                                                     {true, true, 3},
                                                     {true, true, 4}}};
/// What tensors may have of the scratchpad, the usual first, and how many of the best plans with
/// that are tried with the others.
constexpr std::array<Residence, 11> kResidences = {{{4, false, false, false, false},
                                                    {4, false, false, true, false},
                                                    {6, false, false, true, false},
                                                    {7, false, false, true, false},
                                                    {2, false, false, true, false},
                                                    {4, false, true, true, false},
                                                    {2, false, true, true, false},
                                                    {4, true, false, true, false},
                                                    {6, true, false, true, false},
                                                    {4, false, false, true, true},
                                                    {6, false, false, true, true}}};
/// Of so many banks each side has one; of more, tensors and tiles have banks of their own.
constexpr std::uint32_t kBanksOfSides = 2;
/// Less that resides means more bytes, which have to save time that is worth their energy.
constexpr double kWorthLessResidence = 1.01;
constexpr std::size_t kRefined = 2;

/// A graph and what runs together in it.
struct Fused {
  const model::Graph* graph;
  Fusion fusion;
  CloseCalls calls;
};

/// A way to run it.
struct Plan {
  const Fused* fused;
  Pipelining allowed;
  std::vector<Pipeline> pipelines;
  Placement placement;  ///< of tensors in a part of the scratchpad
  PlanReplay expected;
  double value = 0;  ///< the less of it the better
};

/// What the machine's mapper wants little of.
double value_of(const std::vector<Tiling>& tilings, std::uint64_t cycles,
                const hw::Machine::Mapper& mapper) {
  double joules = 0;
  for (const Tiling& tiling : tilings) joules += tiling.energy;
  return objective_of(mapper, static_cast<double>(cycles), joules);
}

/// Where time is asked for and a replay can say which is faster, close calls are made both ways. It
/// knows little of what attention engines do to the memory.
std::vector<CloseCalls> close_calls(const hw::Machine& machine) {
  if (machine.mapper.strategy != hw::MappingStrategy::kCost || machine.mapper.on_chip == 0 ||
      machine.attention.lines != 0) {
    return {CloseCalls::kByCost};
  }
  return {CloseCalls::kByCost, CloseCalls::kTogether, CloseCalls::kApart};
}

/// Whether two fusions of a graph are the same.
bool same_groups(const Fusion& a, const Fusion& b) {
  const auto is_same = [](const FusionDecision& x, const FusionDecision& y) {
    return x.group == y.group && x.role == y.role;
  };
  return std::equal(a.decisions.begin(), a.decisions.end(), b.decisions.begin(), is_same);
}

/// The best of all plans by the machine's strategy.
Mapping best_plan(const model::Graph& graph, const hw::Machine& machine) {
  // Stages before an anchor have to pay: without them, parts of LayerNorms stay together. Where
  // every result goes to DRAM, passes and bytes are what is asked for, not time.
  std::vector<hw::FusionLevel> levels{machine.mapper.fusion};
  if (machine.preop.lanes != 0 && machine.mapper.fusion == hw::FusionLevel::kAll &&
      machine.mapper.on_chip != 0) {
    levels.push_back(hw::FusionLevel::kPost);
  }
  std::vector<model::Graph> graphs;
  graphs.reserve(levels.size());
  std::vector<Fused> fused;
  Tiler tiler(machine, kBestAlone);
  for (const hw::FusionLevel level : levels) {
    hw::Machine fusing = machine;
    fusing.mapper.fusion = level;
    graphs.push_back(split_norms(graph, fusing));
    for (const CloseCalls calls : close_calls(machine)) {
      Fusion fusion = fuse(graphs.back(), fusing, calls, tiler);
      const auto is_same = [&](const Fused& other) {
        return other.graph == &graphs.back() && same_groups(other.fusion, fusion);
      };
      if (std::any_of(fused.begin(), fused.end(), is_same)) continue;
      fused.push_back({&graphs.back(), std::move(fusion), calls});
    }
  }
  // A search is made for every way to run the graph, and compared with the best by cost anyway:
  // the simple ways are enough.
  const bool searches = machine.mapper.strategy == hw::MappingStrategy::kSearch;
  std::vector<Plan> plans;
  const auto plan_of = [&](const Fused& one, const Pipelining& allowed) {
    return Plan{
        &one, allowed, find_pipelines(*one.graph, one.fusion.groups, machine, allowed), {}, {}};
  };
  for (const Fused& one : fused) {
    if (one.calls != CloseCalls::kByCost) continue;
    for (const Pipelining& allowed : kPipelinings) {
      if (searches && allowed.joined != 0) continue;
      Plan plan = plan_of(one, allowed);
      const auto is_same = [&](const Plan& other) {
        return other.fused == plan.fused && other.pipelines == plan.pipelines;
      };
      if (std::none_of(plans.begin(), plans.end(), is_same)) plans.push_back(std::move(plan));
    }
  }
  TilingChoice choice(machine);
  std::vector<Plan> fitting;
  std::uint64_t limit = UINT64_MAX;  // of cycles: a plan that takes longer is worse
  const auto try_plan = [&](const Plan& like, Residence residence) {
    Plan plan{like.fused, like.allowed, like.pipelines, {}, {}};
    const std::vector<Group>& groups = plan.fused->fusion.groups;
    plan.placement = place_tensors(*plan.fused->graph, groups, plan.pipelines, machine, residence);
    const auto is_same = [&](const Plan& other) {
      return other.fused == plan.fused && other.pipelines == plan.pipelines &&
             other.placement.tensors == plan.placement.tensors;
    };
    if (std::any_of(fitting.begin(), fitting.end(), is_same)) return;
    plan.expected = replay_plan(*plan.fused->graph, machine, groups, plan.pipelines, plan.placement,
                                choice, Repeats::kTakenOver, limit);
    if (plan.expected.given_up) return;
    plan.value = value_of(plan.expected.tilings, plan.expected.cycles, machine.mapper);
    if (machine.mapper.objective == hw::MappingObjective::kCycles) {
      limit = std::min(limit, plan.expected.cycles);
    }
    if (residence.eighths < kResidences.front().eighths) plan.value *= kWorthLessResidence;
    fitting.push_back(std::move(plan));
  };
  // Groups that run in turns have less room each: the first plan fits if any does.
  for (const Plan& plan : plans) {
    try {
      try_plan(plan, kResidences.front());
    } catch (const hw::InputError&) {
      if (&plan == &plans.front()) throw;
    }
  }
  const auto sort = [&] {
    std::stable_sort(fitting.begin(), fitting.end(),
                     [](const Plan& a, const Plan& b) { return a.value < b.value; });
  };
  const auto best = [&] {
    sort();
    const std::size_t count = searches ? 0 : std::min(fitting.size(), kRefined);
    return std::vector<Plan>(fitting.begin(), fitting.begin() + static_cast<std::ptrdiff_t>(count));
  };
  // The best ways to run it, with close calls made otherwise.
  for (const Plan& plan : best()) {
    for (const Fused& one : fused) {
      if (one.calls == CloseCalls::kByCost || one.graph != plan.fused->graph) continue;
      try {
        try_plan(plan_of(one, plan.allowed), kResidences.front());
      } catch (const hw::InputError&) {
        // Rows of results may not fit.
      }
    }
  }
  for (const Plan& plan : best()) {
    const bool joined = std::any_of(plan.pipelines.begin(), plan.pipelines.end(),
                                    [](const Pipeline& pipeline) { return pipeline.by_rows; });
    for (std::size_t way = 1; way < kResidences.size(); ++way) {
      if (kResidences[way].rings_apart && !joined) continue;
      if (kResidences[way].two_sides && machine.scratchpad.banks != kBanksOfSides) continue;
      try {
        try_plan(plan, kResidences[way]);
      } catch (const hw::InputError&) {
        // What is left is not enough.
      }
    }
  }
  sort();
  for (const Plan& plan : fitting) {
    try {
      const Fused& fused_graph = *plan.fused;
      Mapping mapping = emit_groups(*fused_graph.graph, machine, fused_graph.fusion.groups,
                                    plan.pipelines, plan.placement, plan.expected, true);
      mapping.decisions = fused_graph.fusion.decisions;
      return mapping;
    } catch (const hw::InputError&) {
      // The next one may take less DRAM.
      if (&plan == &fitting.back()) throw;
    }
  }
  throw std::logic_error("no plan for " + graph.name);
}

}  // namespace

Mapping map_graph(const model::Graph& graph, const hw::Machine& machine) {
  Mapping mapping = best_plan(graph, machine);
  if (machine.mapper.strategy != hw::MappingStrategy::kSearch) return mapping;
  // A search chooses operator by operator; what it gains there may be lost between them.
  hw::Machine by_cost = machine;
  by_cost.mapper.strategy = hw::MappingStrategy::kCost;
  Mapping other = best_plan(graph, by_cost);
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

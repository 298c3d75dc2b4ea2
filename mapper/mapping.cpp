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
/// What tensors may have of the scratchpad, the usual first.
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
/// Eighths of the scratchpad that tensors and weights that come in ahead may have.
constexpr std::array<std::uint32_t, 3> kAhead = {5, 6, 7};
/// Of so many banks each side has one; of more, tensors and tiles have their own banks.
constexpr std::uint32_t kBanksOfSides = 2;
/// Less that resides means more bytes, which have to save time that is worth their energy.
constexpr double kWorthLessResidence = 1.01;
/// What weights that come in ahead take from the banks meanwhile is replayed too roughly for less.
constexpr double kWorthAhead = 1.02;
/// Every way to run a graph is drafted: expected with the tilings that the cost model alone finds
/// best. Better tilings are chosen for the best drafts, for none that takes so many times as long
/// as the best one: they gain 1 % to 12 %, much the same in all of them.
constexpr double kWorthChoosing = 1.05;
/// A plan that takes so many times as long as the best one is not searched again in full.
constexpr double kWorthAgain = 1.008;
/// So near to what the units take at least no other way to run the graph is tried.
constexpr double kAtBound = 1.015;
/// For so many of them, for more that leave other tensors on chip in the way that was best, and for
/// as many with close calls of the fusion made otherwise, and with weights that come in ahead.
constexpr std::size_t kChosen = 4, kSiblings = 2, kOthers = 1;
/// Of so many of the best ways to pipeline, drafted with the usual tensors on chip, drafts with
/// other tensors are made: 0.04 % more cycles of vit65 on 336 machines of mapping_bench than of
/// all. With four of them it was 0.2 %, and larger machines were slower more often.
constexpr std::size_t kWays = 5;
/// How many of the best plans are tried with close calls of the fusion made otherwise; without
/// drafts, and with other tensors on chip.
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
  Residence residence;
  Placement placement;  ///< of tensors in a part of the scratchpad
  PlanReplay expected;
  double value = 0;         ///< the less of it the better
  bool is_weighed = false;  ///< a draft for which tilings were chosen

  [[nodiscard]] bool is_at_bound() const {
    return !expected.given_up && expected.cycles != 0 &&
           static_cast<double>(expected.cycles) <= kAtBound * static_cast<double>(expected.least);
  }
};

/// What the machine's mapper wants little of.
double value_of(const std::vector<Tiling>& tilings, std::uint64_t cycles,
                const hw::Machine::Mapper& mapper) {
  double joules = 0;
  for (const Tiling& tiling : tilings) joules += tiling.energy;
  return objective_of(mapper, static_cast<double>(cycles), joules);
}

double value_of(const Plan& plan, const hw::Machine::Mapper& mapper) {
  double value = value_of(plan.expected.tilings, plan.expected.cycles, mapper);
  if (plan.residence.eighths < kResidences.front().eighths) value *= kWorthLessResidence;
  if (plan.residence.ahead != 0) value *= kWorthAhead;
  return value;
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

/// Copies of the drafts expected to be fastest, at most so many.
std::vector<Plan> best_drafts(std::vector<Plan> drafts, std::size_t most) {
  std::stable_sort(drafts.begin(), drafts.end(), [](const Plan& a, const Plan& b) {
    return std::make_pair(a.expected.given_up, a.expected.cycles) <
           std::make_pair(b.expected.given_up, b.expected.cycles);
  });
  const std::size_t count = std::min(most, drafts.size());
  return {drafts.begin(), drafts.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// The best of all plans by the machine's strategy. `stopped`: says afterwards whether plans were
/// not tried because one was at the bound; null: all are tried.
Mapping best_plan(const model::Graph& graph, const hw::Machine& machine, bool* stopped) {
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
    return Plan{&one, allowed, find_pipelines(*one.graph, one.fusion.groups, machine, allowed),
                {},   {},      {}};
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
  // What engines do to the memory is replayed too roughly to compare so many ways.
  const bool drafts_first = TilingChoice::may_replay(machine) && machine.attention.lines == 0;
  choice.search_all(!drafts_first);
  const bool wants_cycles = machine.mapper.objective == hw::MappingObjective::kCycles;
  std::vector<Plan> drafts;
  std::vector<Plan> fitting;
  const auto at_bound = [&](const std::vector<Plan>& all) {
    const bool stops =
        stopped != nullptr && drafts_first && wants_cycles &&
        std::any_of(all.begin(), all.end(), [](const Plan& plan) { return plan.is_at_bound(); });
    if (stops) *stopped = true;
    return stops;
  };
  // Of cycles: a plan that takes longer is worse, and a draft not worth choosing tilings for.
  std::uint64_t limit = UINT64_MAX, draft_limit = UINT64_MAX;
  const auto replay = [&](const Plan& plan, Repeats repeats, std::uint64_t until) {
    return replay_plan(*plan.fused->graph, machine, plan.fused->fusion.groups, plan.pipelines,
                       plan.placement, choice, repeats, until);
  };
  const auto draft = [&](const Plan& like, const Residence& residence) {
    if (at_bound(drafts) || at_bound(fitting)) return;
    Plan plan{like.fused, like.allowed, like.pipelines, residence, {}, {}};
    plan.placement = place_tensors(*plan.fused->graph, plan.fused->fusion.groups, plan.pipelines,
                                   machine, residence);
    const auto is_same = [&](const Plan& other) {
      return other.fused == plan.fused && other.pipelines == plan.pipelines &&
             other.placement.tensors == plan.placement.tensors;
    };
    if (std::any_of(drafts.begin(), drafts.end(), is_same)) return;
    if (drafts_first) {
      plan.expected = replay(plan, Repeats::kDraft, draft_limit);
      if (!plan.expected.given_up) {
        const double worth = kWorthChoosing * static_cast<double>(plan.expected.cycles);
        draft_limit = std::min(draft_limit, static_cast<std::uint64_t>(worth));
      }
    }
    drafts.push_back(std::move(plan));
  };
  // With what may stay on chip, the usual first, which fits if anything does.
  const auto draft_all = [&](const Plan& plan) {
    draft(plan, kResidences.front());
    const bool joined = std::any_of(plan.pipelines.begin(), plan.pipelines.end(),
                                    [](const Pipeline& pipeline) { return pipeline.by_rows; });
    for (std::size_t way = 1; way < kResidences.size() && !searches; ++way) {
      if (kResidences[way].rings_apart && !joined) continue;
      if (kResidences[way].two_sides && machine.scratchpad.banks != kBanksOfSides) continue;
      try {
        draft(plan, kResidences[way]);
      } catch (const hw::InputError&) {
        // What is left is not enough.
      }
    }
  };
  const auto sort = [&] {
    std::stable_sort(fitting.begin(), fitting.end(),
                     [](const Plan& a, const Plan& b) { return a.value < b.value; });
  };
  // Chooses tilings for the best drafts that `wanted` returns true for, at most so many.
  const auto weigh = [&](std::size_t most, const auto& wanted) {
    std::stable_sort(drafts.begin(), drafts.end(), [](const Plan& a, const Plan& b) {
      return a.expected.cycles < b.expected.cycles;
    });
    std::size_t chosen = 0;
    for (Plan& one : drafts) {
      if (drafts_first && (one.expected.given_up || one.expected.cycles > draft_limit)) continue;
      if (one.is_weighed || !wanted(one) || at_bound(fitting)) continue;
      if (drafts_first && chosen++ >= most) continue;
      one.is_weighed = true;
      Plan plan = one;
      try {
        plan.expected = replay(plan, Repeats::kTakenOver, limit);
      } catch (const hw::InputError&) {
        // One that was not drafted may not fit; the first one fits if any does.
        if (&one == &drafts.front()) throw;
        continue;
      }
      if (plan.expected.given_up) continue;
      if (wants_cycles) {
        limit = std::min(limit, plan.expected.cycles);
      }
      plan.value = value_of(plan, machine.mapper);
      fitting.push_back(std::move(plan));
    }
    sort();
  };
  // Groups that run in turns have less room each: the first plan fits if any does.
  for (const Plan& plan : plans) {
    try {
      draft(plan, kResidences.front());
    } catch (const hw::InputError&) {
      if (&plan == &plans.front()) throw;
    }
  }
  if (drafts_first) {
    for (const Plan& plan : best_drafts(drafts, kWays)) draft_all(plan);
  }
  weigh(kChosen, [](const Plan& /*any*/) { return true; });
  // Copies: more plans will come, and be sorted.
  const auto best_ways = [&] {
    const std::size_t count = std::min(kRefined, fitting.size());
    return std::vector<Plan>(fitting.begin(), fitting.begin() + static_cast<std::ptrdiff_t>(count));
  };
  const std::vector<Plan> best = best_ways();
  if (drafts_first) {
    weigh(kSiblings, [&](const Plan& one) {
      return one.fused == best[0].fused && one.pipelines == best[0].pipelines;
    });
  } else {
    for (const Plan& plan : best) draft_all(plan);
    weigh(kChosen, [](const Plan& /*any*/) { return true; });
  }
  // The best ways to run it, with close calls made otherwise.
  for (std::size_t i = 0; i < std::min(searches ? 0 : kRefined, fitting.size()); ++i) {
    for (const Fused& one : fused) {
      if (one.calls == CloseCalls::kByCost || one.graph != fitting[i].fused->graph) continue;
      try {
        draft_all(plan_of(one, fitting[i].allowed));
      } catch (const hw::InputError&) {
        // Rows of results may not fit.
      }
    }
  }
  weigh(kOthers, [](const Plan& one) { return one.fused->calls != CloseCalls::kByCost; });
  // The best ways to run it, with weights that come in while attention runs.
  for (const Plan& way : drafts_first ? best_ways() : std::vector<Plan>()) {
    if (std::none_of(way.pipelines.begin(), way.pipelines.end(),
                     [](const Pipeline& pipeline) { return pipeline.is_heads_alone(); })) {
      continue;
    }
    for (const std::uint32_t eighths : kAhead) {
      if (eighths <= way.residence.eighths) continue;
      Residence residence = way.residence;
      residence.ahead = eighths;
      try {
        draft(way, residence);
      } catch (const hw::InputError&) {
        // What is left is not enough.
      }
    }
  }
  weigh(kOthers, [](const Plan& one) { return one.residence.ahead != 0; });
  choice.search_all(true);
  const double worth_again = kWorthAgain * (fitting.empty() ? 0 : fitting.front().value);
  for (std::size_t i = 0; i < std::min(drafts_first ? kRefined : 0, fitting.size()); ++i) {
    Plan& plan = fitting[i];
    if (plan.value > worth_again) continue;
    PlanReplay again = replay(plan, Repeats::kTakenOver, limit);
    if (again.given_up || again.cycles >= plan.expected.cycles) continue;
    if (wants_cycles) limit = std::min(limit, again.cycles);
    plan.expected = std::move(again);
    plan.value = value_of(plan, machine.mapper);
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

/// The same, but where the plan at the bound takes more DRAM than there is, another may take less.
Mapping best_plan(const model::Graph& graph, const hw::Machine& machine) {
  bool stopped = false;
  try {
    return best_plan(graph, machine, &stopped);
  } catch (const hw::InputError&) {
    if (!stopped) throw;
    return best_plan(graph, machine, nullptr);
  }
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

#include "mapper/choose/plan_search.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "mapper/fuse/split_norms.h"
#include "mapper/replay/replay.h"
#include "mapper/tile/objective.h"

namespace systole::mapper {
namespace {

/// What may be pipelined, the simplest first: of equals the first one is taken.
constexpr std::array<Pipelining, 12> kPipelinings = {{{false, false, 0, false},
                                                      {true, false, 0, false},
                                                      {false, true, 0, false},
                                                      {true, true, 0, false},
                                                      {true, false, 0, true},
                                                      {true, true, 0, true},
                                                      {true, true, 2, false},
                                                      {true, true, 3, false},
                                                      {true, true, 4, false},
                                                      {true, false, 0, false, true},
                                                      {true, true, 0, false, true},
                                                      {true, true, 0, true, true}}};
/// What tensors may have of the scratchpad, the usual first.
constexpr std::array<Residence, 10> kResidences = {{{4, false, false, false},
                                                    {6, false, false, false},
                                                    {7, false, false, false},
                                                    {2, false, false, false},
                                                    {4, false, true, false},
                                                    {2, false, true, false},
                                                    {4, true, false, false},
                                                    {6, true, false, false},
                                                    {4, false, false, true},
                                                    {6, false, false, true}}};
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
/// So near to what the units take at least no other way to run the graph is tried.
constexpr double kAtBound = 1.015;
constexpr SearchEffort kUsual{4, 2, 1, 2, 1.008, 1, 6};
/// Of small networks more plans are weighed: drafts are off by up to 12 % where rows are pipelined.
/// Over the grid of mapping_bench vit65 takes 0.4 % fewer cycles, and 6 of 312 doublings cost more
/// than 1 % where 17 did, in twice the time.
constexpr SearchEffort kOfSmall{12, 4, 4, 6, 1.03, 6, 16};
/// Networks that load so little are small.
constexpr std::uint64_t kFewRequests = 25'000;
/// Plans that take so many times as long as the best one are judged request by request, if they
/// load so little: of vit65 a replay by request takes 2 % of the time of its mapping.
constexpr double kWorthJudging = 1.05;
constexpr std::uint64_t kMostRequests = 250'000;

bool is_plan_at_bound(const Plan& plan) {
  const PlanReplay& expected = plan.expected;
  return !expected.given_up && expected.cycles != 0 &&
         static_cast<double>(expected.cycles) <= kAtBound * static_cast<double>(expected.least);
}

double value_of(const Plan& plan, const hw::Machine::Mapper& mapper) {
  double value = value_of(plan.expected.tilings, plan.expected.cycles, mapper);
  if (plan.residence.eighths < kResidences.front().eighths) value *= kWorthLessResidence;
  if (plan.residence.ahead != 0) value *= kWorthAhead;
  if (plan.residence.row_gap != 0) value *= kWorthRowGap;
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

/// Copies of the drafts, those expected to be fastest first.
std::vector<Plan> fastest_first(std::vector<Plan> drafts) {
  std::stable_sort(drafts.begin(), drafts.end(), [](const Plan& a, const Plan& b) {
    return std::make_pair(a.expected.given_up, a.expected.cycles) <
           std::make_pair(b.expected.given_up, b.expected.cycles);
  });
  return drafts;
}

/// Stages before an anchor have to pay: without them, parts of LayerNorms stay together. Where
/// every result goes to DRAM, passes and bytes are what is asked for, not time.
std::vector<hw::FusionLevel> fusion_levels(const hw::Machine& machine) {
  std::vector<hw::FusionLevel> levels{machine.mapper.fusion};
  if (machine.preop.lanes != 0 && machine.mapper.fusion == hw::FusionLevel::kAll &&
      machine.mapper.on_chip != 0) {
    levels.push_back(hw::FusionLevel::kPost);
  }
  return levels;
}

bool any_of(const std::vector<Pipeline>& pipelines, bool (*holds)(const Pipeline&)) {
  return std::any_of(pipelines.begin(), pipelines.end(), holds);
}

bool any_choice(const Plan& /*plan*/) { return true; }

}  // namespace

double value_of(const std::vector<Tiling>& tilings, std::uint64_t cycles,
                const hw::Machine::Mapper& mapper) {
  double joules = 0;
  for (const Tiling& tiling : tilings) joules += tiling.energy;
  return objective_of(mapper, static_cast<double>(cycles), joules);
}

PlanSearch::PlanSearch(const model::Graph& graph, const hw::Machine& machine, RowGaps gaps,
                       bool stops_at_bound)
    : graph_(graph),
      machine_(machine),
      gaps_(row_gaps(machine, gaps)),
      stops_at_bound_(stops_at_bound),
      searches_(machine.mapper.strategy == hw::MappingStrategy::kSearch),
      drafts_first_(TilingChoice::may_replay(machine) && machine.attention.lines == 0),
      wants_cycles_(machine.mapper.objective == hw::MappingObjective::kCycles),
      effort_(kUsual),
      choice_(machine) {
  choice_.search_all(!drafts_first_);
}

void PlanSearch::fuse_graphs() {
  const std::vector<hw::FusionLevel> levels = fusion_levels(machine_);
  graphs_.reserve(levels.size());
  Tiler tiler(machine_, kBestAlone);
  for (const hw::FusionLevel level : levels) {
    hw::Machine fusing = machine_;
    fusing.mapper.fusion = level;
    const model::Graph& graph = graphs_.emplace_back(split_norms(graph_, fusing));
    for (const CloseCalls calls : close_calls(machine_)) {
      Fusion fusion = fuse(graph, fusing, calls, tiler);
      const auto is_same = [&](const FusedGraph& other) {
        return other.graph == &graph && same_groups(other.fusion, fusion);
      };
      if (std::any_of(fused_.begin(), fused_.end(), is_same)) continue;
      fused_.push_back({&graph, std::move(fusion), calls});
    }
  }
}

Plan PlanSearch::plan_of(const FusedGraph& fused, const Pipelining& allowed) const {
  return {&fused, allowed, find_pipelines(*fused.graph, fused.fusion.groups, machine_, allowed),
          {},     {},      {}};
}

std::vector<Plan> PlanSearch::ways_to_pipeline() const {
  std::vector<Plan> ways;
  for (const FusedGraph& fused : fused_) {
    if (fused.calls != CloseCalls::kByCost) continue;
    for (const Pipelining& allowed : kPipelinings) {
      if (searches_ && (allowed.joined != 0 || allowed.projected)) continue;
      Plan plan = plan_of(fused, allowed);
      const auto is_same = [&](const Plan& other) {
        return other.fused == plan.fused && other.pipelines == plan.pipelines;
      };
      if (std::none_of(ways.begin(), ways.end(), is_same)) ways.push_back(std::move(plan));
    }
  }
  return ways;
}

bool PlanSearch::is_at_bound(const std::vector<Plan>& plans) {
  const bool stops = stops_at_bound_ && drafts_first_ && wants_cycles_ &&
                     std::any_of(plans.begin(), plans.end(), is_plan_at_bound);
  stopped_ = stopped_ || stops;
  return stops;
}

PlanReplay PlanSearch::replay(const Plan& plan, Repeats repeats, std::uint64_t limit) {
  return replay_plan(*plan.fused->graph, machine_, plan.fused->fusion.groups, plan.pipelines,
                     plan.placement, choice_, repeats, limit);
}

void PlanSearch::draft(const Plan& like, const Residence& residence) {
  if (is_at_bound(drafts_) || is_at_bound(plans_)) return;
  Plan plan{like.fused, like.allowed, like.pipelines, residence, {}, {}};
  plan.placement = place_tensors(*plan.fused->graph, plan.fused->fusion.groups, plan.pipelines,
                                 machine_, residence);
  const auto is_same = [&](const Plan& other) {
    return other.fused == plan.fused && other.pipelines == plan.pipelines &&
           other.placement.tensors == plan.placement.tensors;
  };
  if (std::any_of(drafts_.begin(), drafts_.end(), is_same)) return;
  if (drafts_first_) {
    plan.expected = replay(plan, Repeats::kDraft, draft_limit_);
    if (!plan.expected.given_up) {
      const double worth = kWorthChoosing * static_cast<double>(plan.expected.cycles);
      draft_limit_ = std::min(draft_limit_, static_cast<std::uint64_t>(worth));
    }
  }
  drafts_.push_back(std::move(plan));
}

void PlanSearch::try_draft(const Plan& like, const Residence& residence) {
  try {
    draft(like, residence);
  } catch (const hw::InputError&) {
    // What is left is not enough.
  }
}

void PlanSearch::draft_all(const Plan& plan) {
  draft(plan, kResidences.front());
  const bool joined = any_of(plan.pipelines, [](const Pipeline& p) { return p.by_rows; });
  for (std::size_t way = 1; way < kResidences.size() && !searches_; ++way) {
    if (kResidences[way].rings_apart && !joined) continue;
    if (kResidences[way].two_sides && machine_.scratchpad.banks != kBanksOfSides) continue;
    try_draft(plan, kResidences[way]);
  }
}

void PlanSearch::sort_plans() {
  std::stable_sort(plans_.begin(), plans_.end(),
                   [](const Plan& a, const Plan& b) { return a.value < b.value; });
}

void PlanSearch::weigh(std::size_t most, const Wanted& is_wanted) {
  std::stable_sort(drafts_.begin(), drafts_.end(), [](const Plan& a, const Plan& b) {
    return a.expected.cycles < b.expected.cycles;
  });
  std::size_t chosen = 0;
  for (Plan& one : drafts_) {
    if (drafts_first_ && (one.expected.given_up || one.expected.cycles > draft_limit_)) continue;
    if (one.is_weighed || !is_wanted(one) || is_at_bound(plans_)) continue;
    if (drafts_first_ && chosen++ >= most) continue;
    one.is_weighed = true;
    Plan plan = one;
    try {
      plan.expected = replay(plan, Repeats::kTakenOver, limit_);
    } catch (const hw::InputError&) {
      // One that was not drafted may not fit; the first one fits if any does.
      if (&one == &drafts_.front()) throw;
      continue;
    }
    PlanReplay expected = std::move(plan.expected);
    if (!expected.given_up) keep(std::move(plan), std::move(expected));
  }
  sort_plans();
}

bool PlanSearch::judges_by_request(const PlanReplay& expected, std::uint64_t most_loads) const {
  if (!drafts_first_ || !wants_cycles_ || !Replay::knows_requests(machine_)) return false;
  std::uint64_t bytes = 0;
  for (const Tiling& tiling : expected.tilings) bytes += tiling.load_bytes;
  return bytes <= most_loads * machine_.dma.request_bytes;
}

/// One more plan. Those that will not be judged again are worse if they are later.
void PlanSearch::keep(Plan plan, PlanReplay expected) {
  if (wants_cycles_) {
    const double worth = judges_by_request(expected, kMostRequests) ? kWorthJudging : 1;
    const double late = worth * static_cast<double>(expected.cycles);
    limit_ = std::min(limit_, static_cast<std::uint64_t>(late));
  }
  plan.expected = std::move(expected);
  plan.value = value_of(plan, machine_.mapper);
  plans_.push_back(std::move(plan));
}

/// Copies: more plans will come, and be sorted.
std::vector<Plan> PlanSearch::best_ways(std::size_t most) const {
  const std::size_t count = std::min(most, plans_.size());
  return {plans_.begin(), plans_.begin() + static_cast<std::ptrdiff_t>(count)};
}

void PlanSearch::weigh_first_ways() {
  // Groups that run in turns have less room each: the first way fits if any does.
  bool is_first = true;
  for (const Plan& way : ways_to_pipeline()) {
    try {
      draft(way, kResidences.front());
    } catch (const hw::InputError&) {
      if (is_first) throw;
    }
    is_first = false;
  }
  // Of every way: one that is slow with the usual tensors on chip may be the fastest where banks
  // matter. Without the slower ones vit65 took up to 11 % longer on a machine with more hardware.
  if (drafts_first_) {
    const std::vector<Plan> ways = fastest_first(drafts_);
    const double worth = kWorthChoosing * static_cast<double>(ways.front().expected.cycles);
    for (const Plan& way : ways) {
      // Heads that wait for a product between them gain nothing by what resides.
      const bool waits = way.expected.given_up || static_cast<double>(way.expected.cycles) > worth;
      if (!way.allowed.projected || !waits) draft_all(way);
    }
  }
  weigh(effort_.chosen, any_choice);
  if (judges_by_request(plans_.front().expected, kFewRequests)) {
    weigh(kOfSmall.chosen - effort_.chosen, any_choice);
    effort_ = kOfSmall;
  }
  const std::vector<Plan> best = best_ways(effort_.refined);
  if (drafts_first_) {
    weigh(effort_.siblings, [&](const Plan& one) {
      return one.fused == best[0].fused && one.pipelines == best[0].pipelines;
    });
  } else {
    for (const Plan& way : best) draft_all(way);
    weigh(effort_.chosen, any_choice);
  }
}

/// The best ways to run it, with close calls of the fusion made otherwise.
void PlanSearch::weigh_close_calls() {
  for (std::size_t i = 0; i < std::min(searches_ ? 0 : effort_.refined, plans_.size()); ++i) {
    for (const FusedGraph& one : fused_) {
      if (one.calls == CloseCalls::kByCost || one.graph != plans_[i].fused->graph) continue;
      try {
        draft_all(plan_of(one, plans_[i].allowed));
      } catch (const hw::InputError&) {
        // Rows of results may not fit.
      }
    }
  }
  weigh(effort_.others, [](const Plan& one) { return one.fused->calls != CloseCalls::kByCost; });
}

/// The best ways to run it, with weights that come in while attention runs.
void PlanSearch::weigh_ahead() {
  for (const Plan& way : drafts_first_ ? best_ways(effort_.refined) : std::vector<Plan>()) {
    if (!any_of(way.pipelines, [](const Pipeline& p) { return p.is_heads_alone(); })) continue;
    for (const std::uint32_t eighths : kAhead) {
      if (eighths <= way.residence.eighths) continue;
      Residence residence = way.residence;
      residence.ahead = eighths;
      try_draft(way, residence);
    }
  }
  weigh(effort_.others, [](const Plan& one) { return one.residence.ahead != 0; });
}

/// The best plans, every pipeline of which is searched between its neighbours.
void PlanSearch::search_again() {
  choice_.search_all(true);
  const double worth = plans_.empty() ? 0 : effort_.worth_searching * plans_.front().value;
  for (const Plan& plan : drafts_first_ ? best_ways(effort_.refined) : std::vector<Plan>()) {
    if (plan.value > worth || is_plan_at_bound(plan)) continue;
    PlanReplay again = replay(plan, Repeats::kTakenOver, limit_);
    const bool is_same = std::equal(again.tilings.begin(), again.tilings.end(),
                                    plan.expected.tilings.begin(), same_tiles);
    if (!again.given_up && !is_same) keep(plan, std::move(again));
  }
  sort_plans();
}

/// The best plans with rows in DRAM further apart, and the tilings that they have.
void PlanSearch::weigh_row_gaps() {
  if (!drafts_first_ || !wants_cycles_) return;
  for (const Plan& best : best_ways(effort_.with_row_gaps)) {
    for (const std::uint32_t gap : gaps_) {
      Plan plan = best;
      plan.residence.row_gap = gap;
      plan.placement = place_tensors(*plan.fused->graph, plan.fused->fusion.groups, plan.pipelines,
                                     machine_, plan.residence);
      if (plan.placement.tensors == best.placement.tensors) continue;
      PlanReplay expected = replay(plan, Repeats::kTakenOver, limit_);
      if (!expected.given_up) keep(std::move(plan), std::move(expected));
    }
  }
  sort_plans();
}

/// The plans that may be the best, as a whole and request by request.
void PlanSearch::judge_by_requests() {
  if (!judges_by_request(plans_.front().expected, kMostRequests)) return;
  const double worth = kWorthJudging * plans_.front().value;
  std::vector<Plan> judged;
  std::uint64_t limit = UINT64_MAX;
  for (std::size_t i = 0; i < std::min(effort_.finalists, plans_.size()); ++i) {
    Plan& plan = plans_[i];
    if (plan.value > worth) break;
    PlanReplay expected =
        replay_requests(*plan.fused->graph, machine_, plan.fused->fusion.groups, plan.pipelines,
                        plan.placement, choice_, plan.expected, limit);
    if (expected.given_up) continue;
    limit = std::min(limit, expected.cycles);
    plan.expected = std::move(expected);
    plan.value = value_of(plan, machine_.mapper);
    judged.push_back(plan);
  }
  // The others stay behind them: they may take less DRAM.
  std::stable_sort(judged.begin(), judged.end(),
                   [](const Plan& a, const Plan& b) { return a.value < b.value; });
  plans_.insert(plans_.begin(), judged.begin(), judged.end());
}

const std::vector<Plan>& PlanSearch::run() {
  fuse_graphs();
  weigh_first_ways();
  weigh_close_calls();
  weigh_ahead();
  search_again();
  weigh_row_gaps();
  judge_by_requests();
  return plans_;
}

}  // namespace systole::mapper

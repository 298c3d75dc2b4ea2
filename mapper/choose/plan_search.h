#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/choose/plan_replay.h"
#include "mapper/choose/tiling_choice.h"
#include "mapper/fuse/fusion.h"
#include "mapper/place/pipeline.h"
#include "mapper/place/placement.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// A graph and what runs together in it.
struct FusedGraph {
  const model::Graph* graph;
  Fusion fusion;
  CloseCalls calls;
};

/// A way to run it.
struct Plan {
  const FusedGraph* fused;
  Pipelining allowed;
  std::vector<Pipeline> pipelines;
  Residence residence;
  Placement placement;  ///< of tensors in a part of the scratchpad
  PlanReplay expected;
  double value = 0;         ///< the less of it the better
  bool is_weighed = false;  ///< a draft for which tilings were chosen
};

/// How many ways to run a graph are looked at closely.
struct SearchEffort {
  /// Drafts for which tilings are chosen: of all, more that leave other tensors on chip in the way
  /// that was best, and as many with close calls of the fusion made otherwise, and with weights
  /// that come in ahead.
  std::size_t chosen, siblings, others;
  /// Of the best plans: tried with close calls made otherwise and with weights that come in ahead;
  /// without drafts, and with other tensors on chip.
  std::size_t refined;
  /// A plan that takes so many times as long as the best one is not searched again in full.
  double worth_searching;
  std::size_t with_row_gaps;  ///< of the best plans, tried with rows in DRAM further apart
  std::size_t finalists;      ///< of the best plans, judged request by request
};

/// What the mapper wants little of, by `mapper.objective`.
[[nodiscard]] double value_of(const std::vector<Tiling>& tilings, std::uint64_t cycles,
                              const hw::Machine::Mapper& mapper);

/// Looks for the best way to run a graph on a machine: what is fused, what is pipelined, which
/// tensors reside in the scratchpad. Every way is drafted, expected with the tilings that the cost
/// model alone finds best; better tilings are chosen for the best drafts.
class PlanSearch {
 public:
  /// `stops_at_bound`: no other way is tried once one takes hardly more than its units take at
  /// least.
  PlanSearch(const model::Graph& graph, const hw::Machine& machine, RowGaps gaps,
             bool stops_at_bound);
  PlanSearch(const PlanSearch&) = delete;  // plans point into it
  PlanSearch& operator=(const PlanSearch&) = delete;

  /// Plans that fit, the best first; one at least. They point into this search. Throws InputError
  /// if none does.
  [[nodiscard]] const std::vector<Plan>& run();
  /// Whether ways were not tried because a plan was at the bound.
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

 private:
  using Wanted = std::function<bool(const Plan&)>;

  void fuse_graphs();
  [[nodiscard]] std::vector<Plan> ways_to_pipeline() const;
  [[nodiscard]] Plan plan_of(const FusedGraph& fused, const Pipelining& allowed) const;
  /// Expects a plan with its tensors in these places. Throws InputError if they do not fit.
  void draft(const Plan& like, const Residence& residence);
  /// The same, but a residence that does not fit is left out.
  void try_draft(const Plan& like, const Residence& residence);
  /// With every residence, the usual first, which fits if any does.
  void draft_all(const Plan& plan);
  /// Chooses tilings for the best drafts that are wanted, at most so many.
  void weigh(std::size_t most, const Wanted& is_wanted);
  void weigh_first_ways();
  void weigh_close_calls();
  void weigh_ahead();
  void search_again();
  void weigh_row_gaps();
  /// Whether the best plans are judged by request, as they take no more than `most_loads` requests
  /// to load what they expect: plans hardly behind the best matter, too, then.
  [[nodiscard]] bool judges_by_request(const PlanReplay& expected, std::uint64_t most_loads) const;
  void keep(Plan plan, PlanReplay expected);
  void judge_by_requests();
  [[nodiscard]] PlanReplay replay(const Plan& plan, Repeats repeats, std::uint64_t limit);
  [[nodiscard]] bool is_at_bound(const std::vector<Plan>& plans);
  [[nodiscard]] std::vector<Plan> best_ways(std::size_t most) const;
  void sort_plans();

  const model::Graph& graph_;
  const hw::Machine& machine_;
  const std::vector<std::uint32_t> gaps_;  ///< between rows, to try
  const bool stops_at_bound_;
  /// A search is made for every way to run the graph, and compared with the best by cost anyway:
  /// the simple ways are enough.
  const bool searches_;
  /// What engines do to the memory is replayed too roughly to compare so many ways.
  const bool drafts_first_;
  const bool wants_cycles_;
  bool stopped_ = false;
  SearchEffort effort_;
  std::vector<model::Graph> graphs_;  ///< by level of fusion
  std::vector<FusedGraph> fused_;
  TilingChoice choice_;
  std::vector<Plan> drafts_;
  std::vector<Plan> plans_;  ///< those with chosen tilings, the best first
  /// Of cycles: a plan that takes longer is no candidate, and a draft not worth choosing tilings
  /// for.
  std::uint64_t limit_ = UINT64_MAX, draft_limit_ = UINT64_MAX;
};

}  // namespace systole::mapper

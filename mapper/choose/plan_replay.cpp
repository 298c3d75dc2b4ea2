#include "mapper/choose/plan_replay.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/round.h"
#include "hw/attention/timing/attention_plan.h"
#include "mapper/choose/command_repeats.h"
#include "mapper/choose/repeats.h"
#include "mapper/emit/emitter.h"
#include "mapper/place/constant_image.h"
#include "mapper/replay/replay.h"
#include "mapper/tile/host_cost.h"

namespace systole::mapper {
namespace {

/// What the engines are expected to do, as if memory never held them up.
Tiling attention_tiling(const AttentionGroup& group, const hw::Machine& machine) {
  const hw::AttentionPlan plan =
      hw::plan_attention(group.heads, group.dim, group.value_dim, machine,
                         group.decoders.empty() ? hw::BufferedRow::kHead : hw::BufferedRow::kToken);
  Tiling tiling;
  tiling.m = group.query.rows;
  tiling.n = tiling.c_cols = static_cast<std::uint32_t>(group.value_dim);
  tiling.k = static_cast<std::uint32_t>(group.dim);
  for (const hw::AttentionStep& step : plan.steps) tiling.cycles += step.phase.cycles;
  tiling.compute_cycles = tiling.cycles;
  const auto row_bytes = [&](hw::AttentionOperand operand) -> std::size_t {
    if (operand == hw::AttentionOperand::kValue) return group.value_dim;
    if (group.decoders.empty()) return group.dim;
    return operand == hw::AttentionOperand::kQuery ? group.query.cols : group.key.cols;
  };
  for (const hw::AttentionFetch& fetch : plan.fetches) {
    tiling.load_bytes += row_bytes(fetch.operand);
  }
  return tiling;
}

/// What a group without tiles is expected to take; an encoder works with the stores before it.
Tiling whole_tiling(const Group& group, const hw::Machine& machine) {
  if (group.attention()) return attention_tiling(*group.attention(), machine);
  Tiling tiling;
  tiling.m = group.m();
  tiling.n = tiling.c_cols = group.n();
  if (group.encoder()) return tiling;
  const HostCost cost = host_cost(*group.host(), group.m(), group.n(), machine);
  tiling.compute_cycles = static_cast<std::uint64_t>(cost.compute);
  tiling.cycles = static_cast<std::uint64_t>(cost.total());
  return tiling;
}

/// Cycles that units take at least for groups, one after another.
struct LeastTime {
  double array = 0, postop = 0, loads = 0;

  void add(const TilingProblem& problem, const hw::Machine& machine) {
    const auto m = static_cast<double>(problem.m);
    const double b = static_cast<double>(problem.k) * problem.n;
    array += m * b / (static_cast<double>(machine.array.rows) * machine.array.cols);
    // The vectors of a row take as long in several tiles.
    const std::uint64_t row = ceil_div(problem.n, machine.result_lanes());
    const std::uint64_t interval = problem.row_wise ? problem.postop_interval : 0;
    postop += m * static_cast<double>(std::max(row, interval));
    if (!problem.b_is_activation) {
      loads += b / dma_rate(machine, machine.dma.outstanding_reads).bytes_per_cycle;
    }
  }
  [[nodiscard]] std::uint64_t cycles() const {
    return static_cast<std::uint64_t>(std::max({array, postop, loads}));
  }
};

/// The part of an equal pipeline's time that one of a draft takes at least: those between other
/// pipelines differ by what they wait for.
constexpr double kAlike = 0.8;
/// The same of the rest of a pipeline that goes on at its pace so far.
constexpr double kPace = 0.9;
/// A draft looks after so many commands of a pipeline whether it will be late.
constexpr std::size_t kBetweenLooks = 512;

/// Numbers for things: equal ones for equal things.
template <typename Thing>
class Numbers {
 public:
  std::size_t of(Thing thing) {
    return known_.emplace(std::move(thing), known_.size()).first->second;
  }

 private:
  std::map<Thing, std::size_t> known_;
};

/// Replays pipeline after pipeline.
class PlanReplayer {
 public:
  PlanReplayer(const model::Graph& graph, const hw::Machine& machine,
               const std::vector<Group>& groups, const std::vector<Pipeline>& pipelines,
               const Placement& placement, TilingChoice& choice, const FixedTilings& fixed,
               Replay::Service service)
      : machine_(machine),
        groups_(groups),
        pipelines_(pipelines),
        placement_(placement),
        choice_(choice),
        fixed_(fixed),
        constants_(placement.dram_end, false),
        emitter_({graph, machine, placement, constants_, program_}),
        replay_(machine, service),
        ends_(groups.size()) {
    for (const Pipeline& pipeline : pipelines) {
      const Group& group = groups[pipeline.first];
      tiled_.push_back({&pipeline, {}});
      if (group.is_tiled())
        tiled_.back().groups = groups_of(pipeline, graph, machine, groups, placement);
    }
    least_left_.resize(pipelines.size() + 1);
    products_.resize(pipelines.size());
    LeastTime least;
    for (std::size_t i = pipelines.size(); i-- > 0;) {
      const double after = least.array;
      for (const TiledGroup& next : tiled_[i].groups) least.add(next.problem, machine);
      least_left_[i] = least.cycles();
      products_[i] = least.array - after;
    }
    result_.least = least.cycles();
  }

  PlanReplay run(Repeats repeats, std::uint64_t limit) {
    repeats_ = repeats;
    choice_.begin(repeats == Repeats::kDraft ? Judge::kCost : Judge::kReplay);
    RepeatFinder finder = find_repeats();
    for (std::size_t i = 0; i < pipelines_.size();) {
      const bool drafts = repeats == Repeats::kDraft;
      // What is left is dispatched later.
      const std::uint64_t left = drafts ? left_from(i) : least_left_[i];
      if (at() + left > limit) {
        result_.given_up = true;
        return std::move(result_);
      }
      if (drafts && all_taken(i)) {
        result_.cycles = replay_.finish() + skipped_ + alike_left(i);
        return std::move(result_);
      }
      const auto repeat = repeats != Repeats::kReplayed ? finder.next() : std::nullopt;
      if (!repeat) {
        const std::uint64_t before = at();
        if (!replay(i, drafts ? limit : kNoLimit)) {
          result_.given_up = true;
          return std::move(result_);
        }
        taken_[shapes_[i]] = at() - before;
        finder.add(choice_.last(), at());
        ++i;
        continue;
      }
      finder.take_over(*repeat);
      skipped_ += repeat->count / repeat->period * repeat->cycles;
      for (const std::size_t end = i + repeat->count; i != end; ++i) {
        take_over(i, i - repeat->period, repeat->cycles);
      }
    }
    finish();
    return std::move(result_);
  }

  PlanReplay run_as_chosen(const PlanReplay& chosen, std::uint64_t limit) {
    for (std::size_t i = 0; i < pipelines_.size(); ++i) {
      const Pipeline& pipeline = pipelines_[i];
      for (std::size_t g = pipeline.first; g < pipeline.end(); ++g) ends_[g].op = g;
      if (!groups_[pipeline.first].is_tiled()) {
        emit_whole(emitter_.target(), groups_[pipeline.first]);
        continue;
      }
      for (std::size_t g = 0; g < tiled_[i].groups.size(); ++g) {
        tiled_[i].groups[g].tiling = chosen.tilings[pipeline.first + g];
      }
      emitter_.emit(pipeline, tiled_[i].groups);
    }
    program_.commands.emplace_back();  // kEnd
    replay_.place_program(constants_.program_address());
    const model::Graph& graph = emitter_.target().graph;
    for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
      const model::Tensor& tensor = graph.tensors[id];
      if (tensor.kind != model::Tensor::Kind::kInput) continue;
      const Location& at = placement_.tensors[id];
      replay_.write_input({at.address, at.pitch, tensor.bytes() / tensor.rows, 0, tensor.rows});
      break;
    }
    const std::size_t count = program_.commands.size();
    for (std::size_t first = 0; first < count; first += kAtOnce) {
      replay_.run(program_, first, std::min(first + kAtOnce, count));
      if (replay_.dispatch() - replay_.begin() < limit) continue;
      result_.given_up = true;
      return std::move(result_);
    }
    result_.tilings = chosen.tilings;
    result_.replayed = pipelines_.size();
    finish();
    return std::move(result_);
  }

 private:
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::size_t kAtOnce = 64;  ///< commands, between looks at the limit

  /// An operator's end: that of an operator of the replay, or of a group before, and so many cycles
  /// later.
  struct End {
    std::size_t op = 0, group = SIZE_MAX;
    std::uint64_t later = 0;
  };

  /// Cycle in which the last command so far was dispatched.
  [[nodiscard]] std::uint64_t at() const { return replay_.dispatch() + skipped_; }

  RepeatFinder find_repeats() {
    using Key = decltype(TilingProblem().key());
    Numbers<std::tuple<std::vector<Key>, std::vector<std::size_t>>> shapes;
    Numbers<std::vector<std::uint64_t>> places;
    std::vector<std::size_t> shape_numbers, place_numbers;
    for (std::size_t i = 0; i < pipelines_.size(); ++i) {
      const Pipeline& pipeline = pipelines_[i];
      const Group& group = groups_[pipeline.first];
      std::vector<Key> keys;
      std::vector<std::size_t> others(pipeline.levels.begin(), pipeline.levels.end());
      for (const TiledGroup& next : tiled_[i].groups) keys.push_back(next.problem.key());
      // Any two attentions or functions of the host are different, unless they are that obviously.
      if (group.attention()) {
        const AttentionGroup& attention = *group.attention();
        others.insert(others.end(), {1, attention.query.rows, attention.dim, attention.value_dim,
                                     attention.heads.size()});
        for (const hw::AttentionStep& step :
             hw::plan_attention(
                 attention.heads, attention.dim, attention.value_dim, machine_,
                 attention.decoders.empty() ? hw::BufferedRow::kHead : hw::BufferedRow::kToken)
                 .steps) {
          others.push_back(step.phase.cycles);
        }
      } else if (group.host()) {
        others.insert(others.end(),
                      {2, group.m(), group.n(),
                       static_cast<std::size_t>(
                           host_cost(*group.host(), group.m(), group.n(), machine_).total())});
      } else if (group.encoder()) {
        others.insert(others.end(), {3, group.m(), group.n()});
      }
      shape_numbers.push_back(shapes.of({std::move(keys), std::move(others)}));
      std::vector<std::uint64_t> written;
      for (std::size_t g = pipeline.first; g < pipeline.end(); ++g) {
        const model::View& view = groups_[g].written();
        written.insert(written.end(),
                       {placement_.tensors[view.tensor].address, view.row, view.col});
      }
      if (const auto ahead = placement_.ahead.find(pipeline.first);
          ahead != placement_.ahead.end()) {
        for (const AheadWeights& weights : ahead->second.weights)
          written.push_back(placement_.tensors[weights.tensor].address);
      }
      place_numbers.push_back(places.of(std::move(written)));
    }
    shapes_ = shape_numbers;
    taken_.assign(shapes_.size(), 0);
    return {std::move(shape_numbers), std::move(place_numbers)};
  }

  /// Cycles that pipelines from `first` on take, if equal ones take equally long; without those
  /// whose like has not been replayed.
  [[nodiscard]] std::uint64_t alike_left(std::size_t first) const {
    std::uint64_t sum = 0;
    for (std::size_t i = first; i < shapes_.size(); ++i) sum += taken_[shapes_[i]];
    return sum;
  }
  /// Cycles that pipelines from `first` on take at least: equal ones nearly as long as each other,
  /// all of them what their products do. `more`, if not 0: of those like the one before.
  [[nodiscard]] std::uint64_t left_from(std::size_t first, double more = 0) const {
    double sum = 0;
    for (std::size_t i = first; i < shapes_.size(); ++i) {
      auto taken = static_cast<double>(taken_[shapes_[i]]);
      if (more != 0 && shapes_[i] == shapes_[first - 1]) taken = more;
      sum += std::max(products_[i], kAlike * taken);
    }
    return std::max(least_left_[first], static_cast<std::uint64_t>(sum));
  }
  [[nodiscard]] bool all_taken(std::size_t first) const {
    return std::all_of(shapes_.begin() + static_cast<std::ptrdiff_t>(first), shapes_.end(),
                       [&](std::size_t shape) { return taken_[shape] != 0; });
  }

  /// Returns whether it may all be dispatched before `limit`.
  bool replay(std::size_t index, std::uint64_t limit) {
    const Pipeline& pipeline = pipelines_[index];
    const Group& group = groups_[pipeline.first];
    program_.commands.clear();
    const std::size_t first_op = program_.operators.size();
    if (!group.is_tiled()) {
      result_.tilings.push_back(whole_tiling(group, machine_));
      emit_whole(emitter_.target(), group);
      if (group.attention()) replay_.expect_attention(result_.tilings.back().cycles);
    } else {
      TiledPipeline& tiled = tiled_[index];
      const TiledPipeline* const next = index + 1 < tiled_.size() ? &tiled_[index + 1] : nullptr;
      // A step that is mapped again is decided again in the same way.
      choice_.choose(tiled, next, emitter_, replay_);
      if (is_fixed(pipeline.first)) tiled.groups.front().tiling = *fixed_[pipeline.first];
      for (const TiledGroup& one : tiled.groups) result_.tilings.push_back(one.tiling);
      emitter_.emit(pipeline, tiled.groups);
    }
    for (std::size_t g = pipeline.first; g < pipeline.end(); ++g) {
      ends_[g] = {first_op + g - pipeline.first, SIZE_MAX, skipped_};
    }
    if (!replay_commands(index, first_op, limit)) return false;
    ++result_.replayed;
    return true;
  }

  /// The commands of pipeline `index`, whose first operator is that one.
  bool replay_commands(std::size_t index, std::size_t first_op, std::uint64_t limit) {
    const std::uint64_t begun = at();
    std::optional<std::pair<std::size_t, std::uint64_t>> look;  // the first: commands, cycle
    for (const Stretch& stretch : stretches()) {
      for (std::size_t first = stretch.first; first < stretch.measured();) {
        const std::size_t end = std::min(first + kBetweenLooks, stretch.measured());
        replay_.run(program_, first, end);
        first = end;
        if (!look) {
          look = {end, at()};
        } else if (limit != kNoLimit && is_late(index, begun, *look, end, limit)) {
          return false;
        }
      }
      const std::uint64_t before = replay_.dispatch();
      replay_.run(program_, stretch.measured(), stretch.last);
      const std::uint64_t period = replay_.dispatch() - before;
      keep_ends(index, first_op, stretch, period);
      skipped_ += stretch.repeats * period;
    }
    return true;
  }

  [[nodiscard]] std::vector<Stretch> stretches() const {
    if (repeats_ == Repeats::kReplayed) return {{0, program_.commands.size(), 0, 0}};
    return find_stretches(program_, machine_,
                          repeats_ == Repeats::kDraft ? Alike::kInShape : Alike::kInBanks);
  }

  /// Whether a draft will not be dispatched before `limit`: of pipeline `index`, begun in that
  /// cycle, `done` commands have been. The first ones wait for what comes in at first.
  [[nodiscard]] bool is_late(std::size_t index, std::uint64_t begun,
                             const std::pair<std::size_t, std::uint64_t>& look, std::size_t done,
                             std::uint64_t limit) const {
    const std::size_t count = program_.commands.size();
    if (done == count) return false;
    const double pace =
        static_cast<double>(at() - look.second) / static_cast<double>(done - look.first);
    const double rest = kPace * pace * static_cast<double>(count - done);
    const auto taken = static_cast<double>(at() - begun) + rest;
    return at() + left_from(index + 1, taken) + static_cast<std::uint64_t>(rest) > limit;
  }

  /// Where the operators of pipeline `index` end, as far as a stretch of its commands goes.
  void keep_ends(std::size_t index, std::size_t first_op, const Stretch& stretch,
                 std::uint64_t period) {
    const Pipeline& pipeline = pipelines_[index];
    for (std::size_t i = stretch.first; i < stretch.end(); ++i) {
      const std::size_t op = program_.commands[i].op - first_op;
      if (op >= pipeline.levels.size()) continue;  // a row mix that stores are encoded by
      End& end = ends_[pipeline.first + op];
      end = {first_op + op, SIZE_MAX, skipped_};
      if (i < stretch.last) continue;
      end.op = program_.commands[stretch.like(i)].op;
      end.later += stretch.periods_after(i) * period;
    }
  }

  [[nodiscard]] bool is_fixed(std::size_t group) const {
    return !fixed_.empty() && fixed_[group].has_value();
  }

  /// Pipeline `index` is as pipeline `before`.
  void take_over(std::size_t index, std::size_t before, std::uint64_t later) {
    const Pipeline& pipeline = pipelines_[index];
    for (std::size_t i = 0; i < pipeline.levels.size(); ++i) {
      const std::size_t from = pipelines_[before].first + i;
      const Tiling tiling =
          is_fixed(pipeline.first + i) ? *fixed_[pipeline.first + i] : result_.tilings[from];
      result_.tilings.push_back(tiling);
      ends_[pipeline.first + i] = {0, from, later};
    }
  }

  /// Cycles from the end of an operator to the end of the next.
  void finish() {
    replay_.finish();
    std::vector<std::uint64_t> ends(groups_.size(), 0);
    std::uint64_t before = replay_.begin();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const End& end = ends_[g];
      const std::vector<std::uint64_t>& replayed = replay_.operator_ends();
      if (end.group != SIZE_MAX) {
        ends[g] = ends[end.group] == 0 ? 0 : ends[end.group] + end.later;
      } else if (end.op < replayed.size() && replayed[end.op] != 0) {
        ends[g] = replayed[end.op] + end.later;
      }
      const std::uint64_t now = std::max(ends[g], before);
      result_.tilings[g].cycles = now - before;
      before = now;
    }
    result_.cycles = before - replay_.begin();
  }

  const hw::Machine& machine_;
  const std::vector<Group>& groups_;
  const std::vector<Pipeline>& pipelines_;
  const Placement& placement_;
  TilingChoice& choice_;
  const FixedTilings& fixed_;
  hw::Program program_;
  ConstantImage constants_;
  Emitter emitter_;
  Replay replay_;
  std::vector<TiledPipeline> tiled_;       ///< by pipeline
  std::vector<std::uint64_t> least_left_;  ///< by pipeline: cycles of it and those after it
  std::vector<double> products_;           ///< by pipeline: cycles of its products alone
  std::vector<std::size_t> shapes_;        ///< by pipeline: a number, equal for equal shapes
  std::vector<std::uint64_t> taken_;       ///< by shape: cycles of the last one replayed, 0: none
  std::vector<End> ends_;                  ///< by group
  Repeats repeats_ = Repeats::kReplayed;
  std::uint64_t skipped_ = 0;  ///< cycles of what was not replayed
  PlanReplay result_;
};

}  // namespace

PlanReplay replay_plan(const model::Graph& graph, const hw::Machine& machine,
                       const std::vector<Group>& groups, const std::vector<Pipeline>& pipelines,
                       const Placement& placement, TilingChoice& choice, Repeats repeats,
                       std::uint64_t limit, const FixedTilings& fixed) {
  return PlanReplayer(graph, machine, groups, pipelines, placement, choice, fixed,
                      Replay::Service::kChunks)
      .run(repeats, limit);
}

PlanReplay replay_requests(const model::Graph& graph, const hw::Machine& machine,
                           const std::vector<Group>& groups, const std::vector<Pipeline>& pipelines,
                           const Placement& placement, TilingChoice& choice,
                           const PlanReplay& chosen, std::uint64_t limit) {
  return PlanReplayer(graph, machine, groups, pipelines, placement, choice, {},
                      Replay::Service::kRequests)
      .run_as_chosen(chosen, limit);
}

std::vector<TiledGroup> groups_of(const Pipeline& pipeline, const model::Graph& graph,
                                  const hw::Machine& machine, const std::vector<Group>& groups,
                                  const Placement& placement) {
  std::vector<TiledGroup> tiled;
  std::uint64_t ahead_bytes = 0;
  if (const auto ahead = placement.ahead.find(pipeline.first); ahead != placement.ahead.end()) {
    for (const AheadWeights& weights : ahead->second.weights) {
      const model::Tensor& tensor = graph.tensors[weights.tensor];
      const hw::StoredShape stored =
          hw::stored_shape(tensor.rows, tensor.cols, weights.transposed, weights.int4);
      ahead_bytes += std::uint64_t{stored.rows} * stored.cols;
    }
  }
  for (std::size_t i = pipeline.first; i < pipeline.end(); ++i) {
    const Share& share = placement.shares[i];
    tiled.push_back(
        {&groups[i], {}, tiling_problem(graph, groups[i], placement, machine, share), share});
    tiled.back().problem.ahead_bytes = ahead_bytes;
  }
  return tiled;
}

}  // namespace systole::mapper

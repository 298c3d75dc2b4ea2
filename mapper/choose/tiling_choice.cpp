#include "mapper/choose/tiling_choice.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/round.h"
#include "mapper/choose/bank_demand.h"
#include "mapper/replay/replay_work.h"

namespace systole::mapper {
namespace {

/// Groups that a pipeline is judged by: those after them repeat them.
constexpr std::size_t kJudged = 6;
/// Commands that are replayed to decide on one pipeline, and after how many of them a trial that is
/// already too late is given up.
constexpr std::uint64_t kMostReplayed = 40'000;
constexpr std::size_t kAtOnce = 16;
/// Commands of the next pipeline that a trial is judged with: they show how soon it can begin. With
/// all of them vit65 took 0.2 % more cycles on 48 machines of mapping_bench, with none 0.2 %, too,
/// and 3 % on one of them.
constexpr std::size_t kOfNext = 16;
/// So many of the best tilings of a short stream are tried with their tiles spread over all banks.
constexpr std::size_t kSpread = 4;
/// So many of the best tilings of a group in a pipeline are tried: with those after them vit65 was
/// as fast on 336 machines of mapping_bench.
constexpr std::size_t kInPipelines = 9;
/// So many of the tilings that were the best so far are tried again where the same pipeline runs
/// between others.
constexpr std::size_t kTriedAgain = 4;
/// The part of its time that a pipeline has to gain by loading more.
constexpr std::uint64_t kWorth = 100;

/// The pipeline as far as it is judged by.
Pipeline judged(const Pipeline& pipeline) {
  Pipeline part = pipeline;
  if (pipeline.is_heads_alone()) part.levels.resize(std::min(part.levels.size(), kJudged));
  return part;
}

/// Cycles that the array, the post-op unit and the bus to the load unit take at least for commands,
/// after some state.
class LeastLeft {
 public:
  LeastLeft(const hw::Program& program, const hw::Machine& machine, const Replay& state)
      : array_(state.progress(hw::Unit::kCompute)),
        postop_(state.progress(hw::Unit::kStore)),
        loads_(state.progress(hw::Unit::kLoad)),
        bus_cycle_(static_cast<double>(machine.core.clock_mhz) / machine.bus.clock_mhz) {
    for (const hw::Command& command : program.commands) {
      const std::uint64_t cycles = least_cycles(command, program, machine);
      if (hw::unit_of(command.opcode()) == hw::Unit::kCompute) {
        array_.cycles.push_back(cycles);
        last_ = 0;
      } else if (hw::unit_of(command.opcode()) == hw::Unit::kStore) {
        postop_.cycles.push_back(cycles);
        last_ += cycles;
      } else if (hw::unit_of(command.opcode()) == hw::Unit::kLoad) {
        loads_.cycles.push_back(least_beats(command, machine.bus.width_bytes));
      }
    }
    loads_.add_up();
    array_.add_up();
    postop_.add_up();
  }

  /// A cycle before which the commands have not completed on a replay that went on from the state.
  [[nodiscard]] std::uint64_t end(const Replay& replay) const {
    // One load may be in part on the bus.
    const std::uint64_t beats = loads_.left(replay.progress(hw::Unit::kLoad).ended + 1);
    const double loaded =
        beats == 0 ? 0 : replay.reads_free() + static_cast<double>(beats - 1) * bus_cycle_;
    return std::max({array_.end(replay.progress(hw::Unit::kCompute)) + last_,
                     postop_.end(replay.progress(hw::Unit::kStore)),
                     static_cast<std::uint64_t>(loaded)});
  }

 private:
  struct UnitLeft {
    explicit UnitLeft(const Replay::Progress& state) : before(state.dispatched) {}
    /// From cycles of each command to those of it and all after it.
    void add_up() {
      cycles.push_back(0);
      for (std::size_t i = cycles.size() - 1; i-- > 0;) cycles[i] += cycles[i + 1];
    }
    /// Of the commands after so many of the unit.
    [[nodiscard]] std::uint64_t left(std::uint64_t ended) const {
      const std::uint64_t done = std::max(ended, before) - before;
      return cycles[std::min<std::uint64_t>(done, cycles.size() - 1)];
    }
    [[nodiscard]] std::uint64_t end(const Replay::Progress& now) const {
      return now.free + left(now.ended);
    }
    std::uint64_t before;  ///< commands of the unit before these
    std::vector<std::uint64_t> cycles;
  };
  static std::uint64_t least_beats(const hw::Command& command, std::uint32_t width) {
    const auto* load = command.as<hw::cmd::Load>();
    if (load == nullptr || load->window) return 0;
    return load->m * ceil_div(load->n * hw::bytes_of(load->type), std::uint64_t{width});
  }

  UnitLeft array_, postop_, loads_;
  double bus_cycle_;
  std::uint64_t last_ = 0;  ///< cycles of results after the last product: the first is its own
};

std::vector<Tiling> tilings_of(const std::vector<TiledGroup>& groups) {
  std::vector<Tiling> tilings;
  tilings.reserve(groups.size());
  for (const TiledGroup& group : groups) tilings.push_back(group.tiling);
  return tilings;
}

void set_tilings(std::vector<TiledGroup>& groups, const std::vector<Tiling>& tilings) {
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].tiling = tilings[i];
}

}  // namespace

/// Replays tilings of a pipeline's groups after the same state, with what follows them.
class TilingChoice::Trials {
 public:
  using Commands = std::vector<hw::Command>;

  /// `spare`: memory of commands of trials before, taken and given back; `scratch`: of a replay.
  Trials(const Pipeline& pipeline, const TiledPipeline* next, const Emitter& emitter,
         const Replay& replay, std::vector<Commands>& spare, Replay& scratch)
      : part_(judged(pipeline)),
        next_(next),
        emitter_(emitter),
        replay_(replay),
        spare_(spare),
        scratch_(scratch) {
    if (next != nullptr) next_part_ = judged(*next->pipeline);
  }
  Trials(const Trials&) = delete;
  Trials& operator=(const Trials&) = delete;
  ~Trials() {
    for (Trial& trial : trials_) spare_.push_back(std::move(trial.commands));
  }

  /// Cycle in which all is done; nothing if that is not before `limit`, or too much to replay.
  std::optional<std::uint64_t> end(const std::vector<TiledGroup>& groups, std::uint64_t limit) {
    const auto last = groups.begin() + static_cast<std::ptrdiff_t>(part_.levels.size());
    std::uint64_t expected = 0, following = 0;
    std::for_each(groups.begin(), last,
                  [&](const TiledGroup& next) { expected += next.commands(); });
    if (next_ != nullptr) {
      for (std::size_t i = 0; i < next_part_.levels.size(); ++i) {
        following += next_->groups[i].commands();
      }
    }
    expected += std::min<std::uint64_t>(following, kOfNext);
    if (replayed_ + expected > kMostReplayed) return std::nullopt;
    hw::Program program;
    if (!spare_.empty()) {
      program.commands = std::move(spare_.back());
      program.commands.clear();
      spare_.pop_back();
    }
    ConstantImage constants(emitter_.target().constants.end(), false);
    Emitter draft(emitter_, constants, program);
    draft.emit(part_, {groups.begin(), last});
    const std::size_t commands = program.commands.size(), tiles = program.operand_tiles.size();
    // Tilings that differ in what they have no room for give the same commands.
    auto known = std::find_if(trials_.begin(), trials_.end(), [&](const Trial& trial) {
      return trial.second_half == draft.second_half() && trial.commands == program.commands &&
             trial.operand_tiles == program.operand_tiles;
    });
    const bool is_new = known == trials_.end();
    if (is_new) known = trials_.emplace(trials_.end());
    const bool second_half = draft.second_half();
    if (is_new || !known->says(limit)) {
      if (next_ != nullptr) {
        const auto count = static_cast<std::ptrdiff_t>(next_part_.levels.size());
        draft.emit(next_part_, {next_->groups.begin(), next_->groups.begin() + count}, kOfNext);
      }
      run(program, limit, *known);
      program.commands.resize(commands);
      program.operand_tiles.resize(tiles);
    }
    if (is_new) {
      known->commands = std::move(program.commands);
      known->operand_tiles = std::move(program.operand_tiles);
      known->second_half = second_half;
    } else {
      spare_.push_back(std::move(program.commands));
    }
    replayed_ += kAtOnce * known->chunks_until(limit);
    return known->end < limit ? std::optional(known->end) : std::nullopt;
  }

 private:
  /// Commands that were replayed.
  struct Trial {
    Commands commands;  ///< but for those of what follows, which follow from them
    std::vector<hw::DramTile> operand_tiles;
    bool second_half = false;               ///< where the next C tile goes
    std::size_t chunks = 0;                 ///< of all its commands
    std::vector<std::uint64_t> dispatched;  ///< cycles in which the last of each chunk was
    std::uint64_t end = kNotKnown;          ///< cycle; not known of a trial that was given up
    std::uint64_t not_before = 0;           ///< no end before this cycle

    /// Whether no replay is needed to compare it with that limit.
    [[nodiscard]] bool says(std::uint64_t limit) const {
      return end != kNotKnown || not_before >= limit;
    }
    /// Chunks that have to be dispatched to reach that limit: what is tried at all does not depend
    /// on how soon a bound says that a trial will be late.
    [[nodiscard]] std::size_t chunks_until(std::uint64_t limit) const {
      const auto found = std::lower_bound(dispatched.begin(), dispatched.end(), limit);
      if (found == dispatched.end()) return chunks;
      return static_cast<std::size_t>(found - dispatched.begin()) + 1;
    }
  };
  static constexpr std::uint64_t kNotKnown = std::numeric_limits<std::uint64_t>::max();

  void run(const hw::Program& program, std::uint64_t limit, Trial& trial) {
    trial.dispatched.clear();
    Replay& replay = scratch_;
    replay = replay_;
    const std::size_t count = program.commands.size();
    trial.chunks = ceil_div(count, kAtOnce);
    const LeastLeft least(program, emitter_.target().machine, replay_);
    for (std::size_t first = 0; first < count; first += kAtOnce) {
      replay.run(program, first, std::min(first + kAtOnce, count));
      trial.dispatched.push_back(replay.dispatch());
      trial.not_before = std::max(replay.dispatch(), least.end(replay));
      if (trial.not_before >= limit) return;
    }
    trial.end = replay.finish();
  }

  Pipeline part_, next_part_;
  const TiledPipeline* next_;
  const Emitter& emitter_;
  const Replay& replay_;
  std::vector<Commands>& spare_;
  Replay& scratch_;
  std::uint64_t replayed_ = 0;
  std::vector<Trial> trials_;  ///< all different
};

void TilingChoice::choose(TiledPipeline& now, const TiledPipeline* next, const Emitter& emitter,
                          const Replay& replay) {
  std::vector<Key> keys, next_keys;
  for (TiledGroup& group : now.groups) {
    keys.push_back(group.problem.key());
    group.tiling = first_tiling(group);
  }
  TiledPipeline after{now.pipeline, {}};
  if (next != nullptr && !next->groups.empty()) {
    after = *next;
    for (TiledGroup& group : after.groups) {
      next_keys.push_back(group.problem.key());
      group.tiling = first_tiling(group);
    }
  }
  const auto [known, is_new] =
      known_.try_emplace({judge_, before_, keys, next_keys}, Known{0, 0, false});
  if (is_new || (searches_all_ && !known->second.is_searched)) {
    const auto found = searches_all_ ? found_.end() : found_.find(keys);
    known->second.is_searched = found == found_.end();
    if (judge_ == Judge::kReplay && may_replay(machine_)) {
      const TiledPipeline* const following = after.groups.empty() ? nullptr : &after;
      Trials trials(*now.pipeline, following, emitter, replay, spare_, scratch_);
      if (found == found_.end()) {
        std::vector<Tilings> best = improve(now, trials, emitter, replay);
        if (!searches_all_) found_.emplace(keys, std::move(best));
      } else {
        take_best(now.groups, found->second, trials);
      }
    }
    known->second.number = number_of({keys, tilings_of(now.groups)});
  }
  known->second.used = step_;
  last_ = known->second.number;
  before_ = std::move(keys);
  set_tilings(now.groups, decisions_.at(last_).tilings);
}

void TilingChoice::take_best(std::vector<TiledGroup>& groups, const std::vector<Tilings>& all,
                             Trials& trials) {
  std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
  std::size_t chosen = all.size() - 1;
  for (std::size_t i = all.size(); i-- > 0 && all.size() > 1;) {
    set_tilings(groups, all[i]);
    if (const std::optional<std::uint64_t> found = trials.end(groups, best)) {
      best = *found;
      chosen = i;
    }
  }
  set_tilings(groups, all[chosen]);
}

void TilingChoice::forget_unused(std::uint64_t steps) {
  tiler_.forget_unused(steps);
  best_alone_.forget_unused(steps);
  ++step_;
  std::set<std::size_t> used;
  for (auto at = known_.begin(); at != known_.end();) {
    if (at->second.used + steps < step_) {
      at = known_.erase(at);
    } else {
      used.insert(at++->second.number);
    }
  }
  for (auto at = decisions_.begin(); at != decisions_.end();) {
    at = used.count(at->first) == 0 ? decisions_.erase(at) : std::next(at);
  }
}

const Tiling& TilingChoice::first_tiling(const TiledGroup& group) {
  // Other strategies find all of their tilings at once.
  Tiler& tiler = machine_.mapper.strategy == hw::MappingStrategy::kCost ? best_alone_ : tiler_;
  return tiler.choose(group.problem, group.group->name);
}

std::size_t TilingChoice::number_of(Decision decision) {
  for (const auto& [number, other] : decisions_) {
    if (other.keys == decision.keys && std::equal(decision.tilings.begin(), decision.tilings.end(),
                                                  other.tilings.begin(), same_tiles)) {
      return number;
    }
  }
  const std::size_t number = decisions_.empty() ? 0 : decisions_.rbegin()->first + 1;
  decisions_.emplace(number, std::move(decision));
  return number;
}

std::optional<std::vector<TiledGroup>> TilingChoice::in_pieces(std::vector<TiledGroup> groups,
                                                               std::uint32_t pieces, bool by_rows) {
  for (TiledGroup& next : groups) {
    if (next.group->matmul() == nullptr) continue;
    next.problem.row_tile = narrow(ceil_div(next.problem.m, pieces));
    const std::vector<Tiling>& all = tiler_.tilings(next.problem);
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Tiling& t) { return t.m_outer || !by_rows; });
    if (found == all.end()) return std::nullopt;
    next.tiling = *found;
  }
  return groups;
}

std::vector<Tiling> TilingChoice::candidates(const TiledGroup& group, bool alone,
                                             const EmitTarget& to) {
  std::vector<Tiling> all = tiler_.candidates(group.problem, group.group->name);
  if (!alone || machine_.mapper.strategy != hw::MappingStrategy::kCost) return all;
  TiledGroup one = group;
  std::uint64_t commands = 0;
  for (const Tiling& tiling : all) {
    one.tiling = tiling;
    commands += one.commands();
  }
  if (commands <= kMostReplayed) return all;
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    one.tiling = all[i];
    order.emplace_back(all[i].cycles + bank_excess(one, to), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<Tiling> sorted;
  sorted.reserve(all.size());
  for (const auto& [cycles, i] : order) sorted.push_back(all[i]);
  return sorted;
}

std::vector<TilingChoice::Tilings> TilingChoice::improve(TiledPipeline& now, Trials& trials,
                                                         const Emitter& emitter,
                                                         const Replay& replay) {
  const Pipeline& pipeline = *now.pipeline;
  std::vector<TiledGroup>& groups = now.groups;
  std::vector<Tilings> found_best;
  if (pipeline.is_single()) {
    groups[0].tiling = candidates(groups[0], true, emitter.target()).front();
  }
  const bool one = pipeline.is_single() &&
                   tiler_.candidates(groups[0].problem, groups[0].group->name).size() == 1;
  const std::optional<std::uint64_t> begin =
      one ? std::nullopt : trials.end(groups, std::numeric_limits<std::uint64_t>::max());
  if (!begin) return {tilings_of(groups)};
  found_best.push_back(tilings_of(groups));
  std::uint64_t best = *begin;
  // Rows that all products of a pipeline have in common, so that none waits for several tiles of
  // another; and one row tile after the other, so that the next group can begin.
  if (!pipeline.is_single() && pipeline.row_tile == 0) {
    const std::vector<TiledGroup> start = groups;
    for (const std::uint32_t pieces : {2U, 3U, 4U, 6U, 8U, 12U, 16U}) {
      for (const bool by_rows : {false, true}) {
        std::optional<std::vector<TiledGroup>> common = in_pieces(start, pieces, by_rows);
        if (!common) continue;
        const std::optional<std::uint64_t> found = trials.end(*common, best);
        if (!found) continue;
        best = *found;
        groups = std::move(*common);
        found_best.push_back(tilings_of(groups));
      }
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Key key = groups[i].problem.key();
    const auto is_same = [&](const TiledGroup& group) { return group.problem.key() == key; };
    const auto from = groups.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(groups.begin(), from, is_same)) continue;
    Tiling chosen = groups[i].tiling;
    const auto set = [&](const Tiling& tiling) {
      for (TiledGroup& group : groups) {
        if (is_same(group)) group.tiling = tiling;
      }
    };
    const auto consider = [&](const Tiling& tiling, bool has_to_pay) {
      if (same_tiles(tiling, chosen)) return;
      set(tiling);
      const std::uint64_t worth = has_to_pay ? (best - replay.dispatch()) / kWorth : 0;
      if (const std::optional<std::uint64_t> found = trials.end(groups, best - worth)) {
        best = *found;
        chosen = tiling;
        found_best.push_back(tilings_of(groups));
      }
    };
    std::vector<Tiling> candidates =
        this->candidates(groups[i], pipeline.is_single(), emitter.target());
    if (!pipeline.is_single() && candidates.size() > kInPipelines) candidates.resize(kInPipelines);
    // More bytes cost energy: they have to save time that is worth it.
    for (const Tiling& candidate : candidates) {
      consider(candidate, candidate.load_bytes > chosen.load_bytes);
    }
    Tiling other = chosen;
    other.spread = !other.spread;
    consider(other, false);
    // The same tiles may leave as a whole, and others in parts.
    other = chosen;
    other.in_parts = !other.in_parts && groups[i].problem.may_leave_in_parts(other);
    consider(other, false);
    // Where the banks matter, other sizes may be the best of those that are spread. A stream that
    // is shorter than the array reads tiles of B as fast as they come in. In pipelines none was
    // better in 1,200 trials on the machines of mapping_bench.
    const bool is_short = groups[i].problem.m < machine_.array.rows;
    for (std::size_t c = 0; c < candidates.size() && pipeline.is_single(); ++c) {
      if (!chosen.spread && (!is_short || c >= kSpread)) break;
      Tiling candidate = candidates[c];
      candidate.spread = true;
      consider(candidate, true);
    }
    set(chosen);
  }
  if (found_best.size() > kTriedAgain) {
    found_best.erase(found_best.begin(),
                     found_best.end() - static_cast<std::ptrdiff_t>(kTriedAgain));
  }
  return found_best;
}

}  // namespace systole::mapper

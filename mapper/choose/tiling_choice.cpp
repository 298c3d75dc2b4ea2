#include "mapper/choose/tiling_choice.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/round.h"
#include "mapper/choose/tiling_trials.h"
#include "mapper/tile/tiling_cost.h"

namespace systole::mapper {
namespace {

/// So many of the best tilings of a short stream are tried with their tiles spread over all banks.
constexpr std::size_t kSpread = 4;
/// So many of the best tilings of a group in a pipeline are tried: with those after them vit65 was
/// as fast on 336 machines of mapping_bench.
constexpr std::size_t kInPipelines = 9;
/// So many of the best tilings by whole sections of heads.
constexpr std::size_t kOfSections = 3;
/// So many of the tilings that were the best so far are tried again where the same pipeline runs
/// between others.
constexpr std::size_t kTriedAgain = 4;
/// The part of its time that a pipeline has to gain by loading more.
constexpr std::uint64_t kWorth = 100;

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
      TilingTrials trials(*now.pipeline, following, emitter, replay, spare_, scratch_);
      if (found == found_.end()) {
        std::vector<Tilings> best = improve(now, trials, replay);
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
                             TilingTrials& trials) {
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

void TilingChoice::add_sections(const TiledGroup& product, std::vector<Tiling>& candidates) {
  TilingProblem problem = product.problem;
  for (std::uint32_t cols = 2 * problem.section; cols < problem.n; cols *= 2) {
    if (problem.n % cols != 0) return;
    problem.section = cols;
    const std::vector<Tiling>& all = tiler_.tilings(problem);
    candidates.insert(candidates.end(), all.begin(),
                      all.begin() + static_cast<std::ptrdiff_t>(std::min(kOfSections, all.size())));
  }
}

std::vector<Tiling> TilingChoice::candidates_alone(const TiledGroup& group,
                                                   const TilingTrials& trials) {
  std::vector<Tiling> all = tiler_.candidates(group.problem, group.group->name);
  if (machine_.mapper.strategy != hw::MappingStrategy::kCost) return all;
  TiledGroup one = group;
  std::uint64_t commands = 0;
  for (const Tiling& tiling : all) {
    one.tiling = tiling;
    commands += one.commands();
  }
  if (commands / TilingTrials::kEmitted <= TilingTrials::kMostReplayed) return all;
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    one.tiling = all[i];
    order.emplace_back(trials.expected_by_sample(one), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<Tiling> sorted;
  sorted.reserve(all.size());
  for (const auto& [cycles, i] : order) sorted.push_back(all[i]);
  return sorted;
}

std::vector<TilingChoice::Tilings> TilingChoice::improve(TiledPipeline& now, TilingTrials& trials,
                                                         const Replay& replay) {
  const Pipeline& pipeline = *now.pipeline;
  std::vector<TiledGroup>& groups = now.groups;
  std::vector<Tilings> found_best;
  std::vector<Tiling> alone;
  if (pipeline.is_single()) {
    alone = candidates_alone(groups[0], trials);
    groups[0].tiling = alone.front();
  }
  const bool one = alone.size() == 1;
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
    std::vector<Tiling> candidates = alone;
    if (!pipeline.is_single()) {
      candidates = tiler_.candidates(groups[i].problem, groups[i].group->name);
      if (candidates.size() > kInPipelines) candidates.resize(kInPipelines);
      if (i == 0 && pipeline.section != 0) add_sections(groups[i], candidates);
    }
    // More bytes cost energy: they have to save time that is worth it.
    for (const Tiling& candidate : candidates) {
      consider(candidate, candidate.load_bytes > chosen.load_bytes);
    }
    Tiling other = chosen;
    other.spread = !other.spread;
    consider(other, false);
    other = chosen;
    other.banks_apart = !other.banks_apart;
    if (TilingCost(machine_, groups[i].problem).evaluate_if_fits(other)) consider(other, false);
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

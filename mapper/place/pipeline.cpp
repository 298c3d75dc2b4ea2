#include "mapper/place/pipeline.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/round.h"
#include "base/units.h"
#include "mapper/group/memory_use.h"
#include "mapper/place/placement.h"
#include "mapper/place/sharing.h"

namespace systole::mapper {
namespace {

using model::Graph;
using model::Tensor;
using model::View;

/// The part of the scratchpad that rings of scores may take.
constexpr std::uint64_t kRingShare = 4;

class PipelineFinder {
 public:
  PipelineFinder(const Graph& graph, const std::vector<Group>& groups, const hw::Machine& machine)
      : graph_(graph), groups_(groups), machine_(machine), readers_(graph.tensors.size()) {
    for (const Group& group : groups) {
      uses_.push_back(memory_use(graph, group));
      for (const View& view : uses_.back().reads) ++readers_[view.tensor];
    }
  }

  std::vector<Pipeline> find(Pipelining allowed) const {
    std::vector<Pipeline> pipelines;
    for (std::size_t step = 0; step < groups_.size(); step = pipelines.back().end()) {
      Pipeline next{step, {0}};
      if (allowed.attention && allowed.projected) next = projected(step, allowed.strips);
      if (allowed.attention && next.is_single()) next = attention(step, allowed.strips, 0);
      if (allowed.joined != 0 && !next.is_single()) join(next, allowed.joined);
      if (allowed.rows && next.is_single()) next = rows(step);
      Pipeline after;
      if (allowed.attention && allowed.projected && !next.is_single() && next.heads == 0) {
        after = projected(next.end() - 1, allowed.strips);
      }
      // A product that heads read is not the end of other rows.
      if (after.heads != 0) next.levels.pop_back();
      pipelines.push_back(std::move(next));
      if (after.heads != 0) pipelines.push_back(std::move(after));
    }
    return pipelines;
  }

 private:
  /// A group that is a list of tiles with their own rows.
  [[nodiscard]] bool is_plain(const Group& group) const {
    const auto is_state = [&](const View& view) {
      return graph_.tensors[view.tensor].kind == Tensor::Kind::kState;
    };
    return !group.attention() && !group.encoder() && !group.host() && !group.window &&
           group.sections.encoders.empty() && !hw::transposes(group.chain) &&
           !is_state(group.out) && !is_state(group.a) && !group.out.folded && !group.a.folded &&
           !(group.matmul() != nullptr && is_state(group.matmul()->b));
  }
  [[nodiscard]] bool is_weight(const View& view) const {
    return graph_.tensors[view.tensor].kind == Tensor::Kind::kConstant;
  }
  [[nodiscard]] bool is_temporary(const View& view) const {
    const Tensor& tensor = graph_.tensors[view.tensor];
    return tensor.kind == Tensor::Kind::kActivation && tensor.data.empty();
  }

  /// Whether groups may run in turns although `later` follows `earlier`: nothing but rows that are
  /// done goes from one to the other.
  [[nodiscard]] bool independent(std::size_t earlier, std::size_t later) const {
    return meeting(uses_[earlier].writes, uses_[later].reads) == nullptr && keeps(earlier, later);
  }
  /// Whether `later` leaves alone what `earlier` reads and writes.
  [[nodiscard]] bool keeps(std::size_t earlier, std::size_t later) const {
    return meeting(uses_[earlier].reads, uses_[later].writes) == nullptr &&
           meeting(uses_[earlier].writes, uses_[later].writes) == nullptr;
  }

  /// Scores that the next group alone multiplies, whole rows of them.
  [[nodiscard]] bool is_head(std::size_t step) const {
    if (step + 1 >= groups_.size()) return false;
    const Group &scores = groups_[step], &context = groups_[step + 1];
    if (!is_plain(scores) || !is_plain(context) || !scores.matmul() || !context.matmul()) {
      return false;
    }
    const Tensor& between = graph_.tensors[scores.out.tensor];
    const bool passes = is_temporary(scores.out) && readers_[scores.out.tensor] == 1 &&
                        between.rows == scores.out.rows && between.cols == scores.out.cols &&
                        hw::bytes_of(between.type) == 1 && !context.pre &&
                        (hw::is_row_wise(scores.chain) || scores.valid_cols != 0);
    if (!passes || context.a.tensor != scores.out.tensor || context.a.rows != scores.out.rows ||
        context.a.cols != scores.out.cols || context.matmul()->b.tensor == scores.out.tensor) {
      return false;
    }
    if (!keeps(step, step + 1)) return false;
    // Row statistics go the same way.
    return scores.statistics == model::kNoTensor ||
           (scores.statistics == context.statistics && readers_[scores.statistics] == 1);
  }

  /// `reserved`: sums of each half of the accumulator that others need.
  [[nodiscard]] Pipeline attention(std::size_t step, bool in_strips, std::uint64_t reserved) const {
    Pipeline pipeline{step, {0}};
    if (!is_head(step)) return pipeline;
    const Group& scores = groups_[step];
    const std::uint64_t scores_cols = round_up(scores.n(), machine_.array.cols);
    const std::uint64_t context_cols = round_up(groups_[step + 1].n(), machine_.array.cols);
    std::size_t heads = 0;
    for (std::size_t next = step; is_head(next); next += 2, ++heads) {
      const Group& other = groups_[next];
      if (other.m() != scores.m() || other.n() != scores.n() ||
          groups_[next + 1].n() != groups_[step + 1].n()) {
        break;
      }
      bool apart = true;
      for (std::size_t mine = next; mine < next + 2; ++mine) {
        for (std::size_t before = step; before < next; ++before) {
          apart = apart && independent(before, mine);
        }
      }
      if (!apart) break;
      // What the next tile loads may be where these parameters are.
      in_strips =
          in_strips && hw::parameter_words(other.chain) == 0 && hw::is_row_wise(other.chain);
    }
    const std::uint64_t half = whole_share(machine_).sums_end - reserved;
    const std::uint64_t row_bytes = operand_pitch(scores.n(), machine_.array.rows);
    const std::uint64_t ring = machine_.scratchpad.kib * hw::kKib / kRingShare;
    constexpr std::uint32_t kSlots = 2;
    const std::uint32_t words = hw::statistics_words(scores.chain);
    std::uint64_t most = std::min({half / (scores_cols + context_cols), ring / kSlots / row_bytes,
                                   std::uint64_t{scores.m()}});
    if (words != 0)
      most = std::min(most, machine_.postop.row_statistics / std::uint64_t{words} / kSlots);
    if (most == 0) return pipeline;
    pipeline.row_tile = narrow(ceil_div(scores.m(), ceil_div(scores.m(), most)));
    if (in_strips) {
      const std::uint64_t rows = pipeline.row_tile, all = ceil_div(scores.m(), rows);
      const std::uint64_t fit = (half - rows * context_cols) / (rows * scores_cols);
      pipeline.strips = narrow(ceil_div(all, ceil_div(all, fit)));
    }
    pipeline.slots = kSlots;
    pipeline.levels.clear();
    for (std::size_t head = 0; head < heads; ++head) {
      pipeline.levels.push_back(0);
      pipeline.levels.push_back(1);
    }
    pipeline.heads = narrow(heads);
    return pipeline;
  }

  /// Heads whose queries, keys and values one product gives, and that product before them: while
  /// scores of a head pass the post-op unit, the array multiplies for the next one.
  [[nodiscard]] Pipeline projected(std::size_t step, bool in_strips) const {
    Pipeline alone{step, {0}};
    if (step + 1 >= groups_.size() || !is_head(step + 1)) return alone;
    const Group& product = groups_[step];
    if (!is_plain(product) || product.matmul() == nullptr || !is_weight(product.matmul()->b) ||
        product.m() < 2) {
      return alone;
    }
    const Tensor& result = graph_.tensors[product.out.tensor];
    const std::uint32_t section = groups_[step + 1].a.cols;
    const bool is_whole = is_temporary(product.out) && product.out.rows == result.rows &&
                          product.out.cols == result.cols && hw::bytes_of(result.type) == 1 &&
                          !result.int4 && !hw::is_row_wise(product.chain) &&
                          product.valid_cols == 0 && product.statistics == model::kNoTensor;
    if (!is_whole || result.cols % section != 0) return alone;
    const std::uint64_t sums = section_sums(product, section, machine_);
    if (sums >= whole_share(machine_).sums_end) return alone;
    Pipeline heads = attention(step + 1, in_strips, sums);
    if (heads.heads == 0) return alone;
    std::size_t reads = 0;
    heads.read_by.assign(result.cols / section, 0);
    // The last one first, so that the first one stays.
    for (std::size_t next = heads.end(); next-- > step + 1;) {
      const View &a = groups_[next].a, &b = groups_[next].matmul()->b;
      for (const View& view : {a, b}) {
        if (view.tensor != product.out.tensor) continue;
        if (view.rows != result.rows || view.cols != section || view.col % section != 0 ||
            view.folded) {
          return alone;
        }
        ++reads;
        heads.read_by[view.col / section] = narrow(next - step - 1);
      }
      if (!keeps(step, next)) return alone;
    }
    if (reads != readers_[product.out.tensor]) return alone;
    heads.first = step;
    heads.section = section;
    for (std::uint32_t& level : heads.levels) ++level;
    heads.levels.insert(heads.levels.begin(), 0);
    return heads;
  }

  /// Whether the scratchpad could hold all queries, keys and values: every row tile takes all
  /// heads.
  [[nodiscard]] bool may_reside(const Pipeline& heads) const {
    std::set<model::TensorId> tensors;
    for (std::size_t step = heads.first; step < heads.end(); ++step) {
      tensors.insert(groups_[step].matmul()->b.tensor);
      if (step % 2 == heads.first % 2) tensors.insert(groups_[step].a.tensor);
    }
    std::uint64_t bytes = 0;
    for (const model::TensorId id : tensors) bytes += graph_.tensors[id].bytes();
    return bytes <= machine_.scratchpad.kib * hw::kKib;
  }
  /// Appends the chain that reads the rows of all contexts of `heads`, if one does.
  void join(Pipeline& heads, std::uint32_t pieces) const {
    const std::size_t step = heads.end();
    if (step >= groups_.size()) return;
    const Group &group = groups_[step], &context = groups_[step - 1];
    if (!is_plain(group) || group.pre || group.matmul() == nullptr ||
        !is_weight(group.matmul()->b) || group.a.tensor != context.out.tensor ||
        group.a.row != context.out.row || group.m() != context.m() || group.m() < pieces ||
        !may_reside(heads)) {
      return;
    }
    for (std::size_t other = heads.first; other < step; ++other) {
      if (!reads_rows_alone(other, step)) return;
    }
    heads.by_rows = true;
    heads.row_tile = std::min(heads.row_tile, narrow(ceil_div(group.m(), pieces)));
    extend(heads, step);
    for (std::size_t next = step; next < heads.end(); ++next) {
      const View& in = groups_[next].a;
      const Tensor& tensor = graph_.tensors[in.tensor];
      if (groups_[next].matmul() != nullptr && is_temporary(in) && readers_[in.tensor] == 1 &&
          hw::bytes_of(tensor.type) == 1 && tensor.rows == group.m()) {
        heads.passing.push_back(in.tensor);
      }
    }
  }

  [[nodiscard]] std::uint64_t weight_bytes(const Group& group) const {
    return group.matmul() != nullptr ? operand_b_bytes(group, machine_) : 0;
  }

  /// Whether `step` reads rows of the group before it, and nothing else of `first` .. `step` - 1.
  [[nodiscard]] bool continues(std::size_t first, std::size_t step) const {
    const Group &before = groups_[step - 1], &group = groups_[step];
    if (!is_plain(group) || group.pre || group.a.tensor != before.out.tensor ||
        (group.matmul() != nullptr && !is_weight(group.matmul()->b)) ||
        group.a.row != before.out.row || group.a.rows != before.out.rows ||
        group.m() != before.m()) {
      return false;
    }
    for (std::size_t other = first; other < step; ++other) {
      if (!reads_rows_alone(other, step)) return false;
    }
    return true;
  }
  /// Whether tensor operands of `step` take from `other` only the rows that it is working on.
  [[nodiscard]] bool reads_rows_alone(std::size_t other, std::size_t step) const {
    if (!keeps(other, step)) return false;
    for (const View& view : groups_[step].tensors) {
      if (meeting({view}, uses_[other].writes) != nullptr &&
          (view.row != groups_[other].out.row || view.rows != groups_[step].m())) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] Pipeline rows(std::size_t step) const {
    Pipeline pipeline{step, {0}};
    const Group& begin = groups_[step];
    if (!is_plain(begin) || begin.m() < 2 || (begin.matmul() && !is_weight(begin.matmul()->b)))
      return pipeline;
    pipeline.levels.clear();
    extend(pipeline, step);
    return pipeline;
  }
  /// Appends `step` and the groups that continue it.
  void extend(Pipeline& pipeline, std::size_t step) const {
    const std::uint64_t rows = std::max(pipeline.row_tile, 1U);
    const std::uint64_t room = machine_.scratchpad.kib * hw::kKib / 2;
    std::uint64_t weights = 0, sums = 0;
    std::size_t products = 0;
    if (pipeline.heads != 0) {
      sums = rows * (round_up(groups_[pipeline.first].n(), machine_.array.cols) +
                     round_up(groups_[pipeline.first + 1].n(), machine_.array.cols));
    }
    std::uint32_t level = pipeline.levels.empty() ? 0 : pipeline.levels.back() + 1;
    for (std::size_t next = step; next < groups_.size() && (next == step || continues(step, next));
         ++next) {
      const Group& group = groups_[next];
      weights += weight_bytes(group);
      sums += rows * least_sum_cols(group, machine_);
      // Weights of several products stay; with one product there is nothing to share.
      products += group.matmul() != nullptr ? 1 : 0;
      if (next != step && group.matmul() != nullptr && products > 1 && weights > room) return;
      const bool is_alone = next == step && pipeline.heads == 0;
      if (!is_alone && sums > whole_share(machine_).sums_end) return;
      pipeline.levels.push_back(level++);
    }
  }

  const Graph& graph_;
  const std::vector<Group>& groups_;
  const hw::Machine& machine_;
  std::vector<MemoryUse> uses_;       ///< by group
  std::vector<std::size_t> readers_;  ///< views of groups, by tensor
};

}  // namespace

std::size_t Pipeline::last_beside(std::size_t step) const {
  if (by_rows) return end() - 1;
  const std::uint32_t level = levels.at(step - first);
  std::size_t last = step;
  while (last + 1 < end() && levels[last + 1 - first] != level) ++last;
  return last;
}

std::vector<Pipeline> find_pipelines(const Graph& graph, const std::vector<Group>& groups,
                                     const hw::Machine& machine, Pipelining allowed) {
  // Gemmini's library runs one operator after the other.
  if (machine.mapper.strategy == hw::MappingStrategy::kGemmini) allowed = {};
  allowed.attention &= machine.mapper.on_chip != 0;
  return PipelineFinder(graph, groups, machine).find(allowed);
}

namespace {

/// Turns of heads with those of the product before them: while a head passes the post-op unit, what
/// the next one reads is multiplied.
std::vector<Turn> turns_after_product(const Pipeline& pipeline,
                                      const std::vector<std::vector<Tile>>& tiles) {
  Pipeline heads = pipeline;
  heads.section = 0;
  heads.levels.erase(heads.levels.begin());
  for (std::uint32_t& level : heads.levels) --level;
  const std::vector<Turn> turns = turns_of(heads, {tiles.begin() + 1, tiles.end()});
  std::vector<std::size_t> begins;  // of the heads, among their turns
  std::vector<std::size_t> first_of(pipeline.heads * std::size_t{2}, turns.size());  // by group
  for (std::size_t i = 0; i < turns.size(); ++i) {
    std::size_t& first = first_of[turns[i].group];
    first = std::min(first, i);
    if (turns[i].group == 2 * begins.size()) begins.push_back(i);
  }
  begins.push_back(turns.size());
  // The scores of a head in strips are written between those of the head before it.
  for (std::size_t head = 1; head < pipeline.heads && pipeline.strips > 1; ++head) {
    first_of[2 * head] = begins[head - 1];
  }
  // A tile of the product, and the turn before which it has to be issued.
  struct Needed {
    std::size_t before, tile;
  };
  std::vector<Needed> product;
  for (std::size_t i = 0; i < tiles.front().size(); ++i) {
    const Tile& tile = tiles.front()[i];
    const std::size_t end = ceil_div(tile.col + tile.cols, pipeline.section);
    Needed needed{turns.size(), i};
    for (std::size_t section = tile.col / pipeline.section; section < end; ++section) {
      needed.before = std::min(needed.before, first_of[pipeline.read_by[section]]);
    }
    product.push_back(needed);
  }
  std::stable_sort(product.begin(), product.end(),
                   [](const Needed& a, const Needed& b) { return a.before < b.before; });
  const auto needed_by = [&](std::size_t turn) {
    const auto later = [](std::size_t at, const Needed& tile) { return at < tile.before; };
    return static_cast<std::size_t>(std::upper_bound(product.begin(), product.end(), turn, later) -
                                    product.begin());
  };
  std::vector<Turn> all;
  std::size_t done = 0;
  const auto issue_until = [&](std::size_t end) {
    for (; done < end; ++done) all.push_back({0, product[done].tile});
  };
  for (std::size_t head = 0; head + 1 < begins.size(); ++head) {
    // Between the turns of a head comes what the next head begins with, and the turn after that.
    const std::size_t begin = begins[head], end = begins[head + 1];
    issue_until(needed_by(begin));
    const std::size_t from = done, next = std::max(needed_by(end + 1), from);
    for (std::size_t i = begin; i < end; ++i) {
      issue_until(needed_by(i));
      all.push_back({turns[i].group + 1, turns[i].tile});
      issue_until(from + ceil_div((next - from) * (i + 1 - begin), end - begin));
    }
  }
  return all;
}

}  // namespace

std::vector<Turn> turns_of(const Pipeline& pipeline, const std::vector<std::vector<Tile>>& tiles) {
  if (pipeline.section != 0) return turns_after_product(pipeline, tiles);
  const std::size_t groups = pipeline.levels.size();
  std::vector<Turn> turns;
  std::size_t count = 0;
  for (const std::vector<Tile>& some : tiles) count += some.size();
  turns.reserve(count);
  if (pipeline.is_single() && !pipeline.by_rows) {
    for (std::size_t i = 0; i < count; ++i) turns.push_back({0, i});
    return turns;
  }
  const std::uint32_t most = *std::max_element(pipeline.levels.begin(), pipeline.levels.end());
  // By level, its tiles in order; by tile, how many of the level before it must have been issued.
  struct Entry {
    Turn turn;
    Tile tile;
    std::size_t needs;
  };
  std::vector<std::vector<Entry>> levels(most + std::size_t{1});
  for (std::vector<Entry>& level : levels) level.reserve(count);
  for (std::size_t group = 0; group < groups; ++group) {
    for (std::size_t i = 0; i < tiles[group].size(); ++i) {
      levels[pipeline.levels[group]].push_back({{group, i}, tiles[group][i], 0});
    }
  }
  if (pipeline.by_rows) {
    for (std::vector<Entry>& level : levels) {
      std::stable_sort(level.begin(), level.end(), [](const Entry& a, const Entry& b) {
        return std::make_pair(a.tile.row, a.turn.group) < std::make_pair(b.tile.row, b.turn.group);
      });
    }
  }
  std::vector<std::vector<std::size_t>> places(groups);  // of the tiles of a group in its level
  for (std::size_t group = 0; group < groups; ++group) places[group].reserve(tiles[group].size());
  for (std::vector<Entry>& level : levels) {
    for (std::size_t i = 0; i < level.size(); ++i) places[level[i].turn.group].push_back(i);
  }
  for (std::size_t level = 1; level < levels.size(); ++level) {
    const std::vector<Entry>& before = levels[level - 1];
    for (Entry& entry : levels[level]) {
      // A context reads the scores before it, the chain after the heads all contexts.
      const std::size_t last = level == 1 ? entry.turn.group : pipeline.first_of(narrow(level));
      const std::size_t first = level == 2 && pipeline.heads != 0 ? 1 : last - 1;
      for (std::size_t source = first; source < last; ++source) {
        for (const std::size_t i : places[source]) {
          if (pipeline.levels[source] + 1 == level &&
              before[i].tile.row < entry.tile.row + entry.tile.rows) {
            entry.needs = std::max(entry.needs, i + 1);
          }
        }
      }
    }
  }
  std::vector<std::size_t> issued(levels.size(), 0);
  for (;;) {
    std::size_t level = levels.size();
    while (level-- > 0) {
      if (issued[level] == levels[level].size()) continue;
      if (level == 0) break;
      const std::size_t all = levels[level - 1].size();
      const std::size_t needs = levels[level][issued[level]].needs;
      if (issued[level - 1] >= std::min(needs + 1, all)) break;
    }
    if (level > levels.size()) return turns;
    turns.push_back(levels[level][issued[level]++].turn);
  }
}

}  // namespace systole::mapper

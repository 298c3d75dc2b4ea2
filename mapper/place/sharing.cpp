#include "mapper/place/sharing.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/round.h"
#include "base/units.h"
#include "hw/program/program.h"

namespace systole::mapper {
namespace {

/// Rows of a tile that has no height of its own yet: enough that the pipeline's fill does not
/// count.
constexpr std::uint64_t kRows = 16;
constexpr std::uint64_t kSlots = 2, kWordBytes = 4;
/// The part of the scratchpad that is left to the others by a product that comes first.
constexpr std::uint64_t kLeft = 4;
/// The part of the accumulator that a product before heads may take from them.
constexpr std::uint64_t kSumShare = 4;

/// What the groups of a level need.
struct Need {
  std::uint64_t sums = 0;               ///< of each half of the accumulator, at least
  std::uint64_t bytes = 0;              ///< of the scratchpad, at least
  std::optional<std::uint64_t> wanted;  ///< of the scratchpad, of a product: with all of B
  bool comes_first = false;             ///< its B would pass more often than that of the others
};

class Needs {
 public:
  Needs(const Pipeline& pipeline, const hw::Machine& machine, const std::vector<Location>& tensors)
      : pipeline_(pipeline), machine_(machine), tensors_(tensors) {}

  [[nodiscard]] Need of(const Group& group, std::uint32_t level, std::uint64_t most_sums) const {
    Need need;
    const std::uint64_t row = round_up(group.n(), machine_.array.cols);
    const std::uint64_t parameters =
        kSlots * aligned(kWordBytes * hw::parameter_words(group.chain) * group.n());
    if (group.matmul() == nullptr) {
      const std::uint64_t rows = std::clamp(most_sums / row, std::uint64_t{1}, kRows);
      need.sums = (pipeline_.row_tile != 0 ? pipeline_.row_tile : rows) * row;
      need.bytes = parameters;
      return need;
    }
    const bool in_head = pipeline_.is_of_heads(level);
    const std::uint64_t tile = pipeline_.tile_rows(level);
    need.sums =
        level < pipeline_.scores_level()
            ? section_sums(group, pipeline_.section, machine_)
            : std::max(tile, std::uint64_t{1}) * (in_head ? row : least_sum_cols(group, machine_));
    const std::uint64_t depth = operand_pitch(group.k(), machine_.array.rows);
    const std::uint64_t rows = tile != 0 ? tile : kRows;
    need.comes_first = pipeline_.strips > 1 && level == pipeline_.scores_level() + 1;
    need.wanted = parameters +
                  (on_chip(group.matmul()->b) ? 0 : aligned(operand_b_bytes(group, machine_))) +
                  (on_chip(group.a) ? 0 : kSlots * aligned(rows * depth));
    return need;
  }

 private:
  [[nodiscard]] std::uint64_t aligned(std::uint64_t bytes) const {
    return round_up(bytes, slot_alignment(machine_));
  }
  [[nodiscard]] bool on_chip(const model::View& view) const {
    return tensors_[view.tensor].place == Location::Place::kScratchpad;
  }

  const Pipeline& pipeline_;
  const hw::Machine& machine_;
  const std::vector<Location>& tensors_;
};

/// Parts of the scratchpad by level: what each must have, then as much as products want if there is
/// enough, else equal parts for those that want more.
std::vector<std::uint64_t> split(std::uint64_t bytes, const std::vector<Need>& needs) {
  std::vector<std::uint64_t> parts;
  std::vector<std::size_t> products;
  for (std::size_t level = 0; level < needs.size(); ++level) {
    parts.push_back(needs[level].bytes);
    bytes -= std::min(needs[level].bytes, bytes);
    if (needs[level].wanted) products.push_back(level);
  }
  std::sort(products.begin(), products.end(), [&](std::size_t a, std::size_t b) {
    return std::make_pair(!needs[a].comes_first, *needs[a].wanted) <
           std::make_pair(!needs[b].comes_first, *needs[b].wanted);
  });
  for (std::size_t i = 0; i < products.size(); ++i) {
    const std::uint64_t equal = bytes / (products.size() - i);
    const std::uint64_t most = needs[products[i]].comes_first ? bytes - bytes / kLeft : equal;
    const std::uint64_t part = std::min(*needs[products[i]].wanted, most);
    parts[products[i]] = part;
    bytes -= part;
  }
  for (const std::size_t level : products) parts[level] += bytes / products.size();
  return parts;
}

}  // namespace

std::vector<Share> share_memories(const std::vector<Group>& groups, const Pipeline& pipeline,
                                  const hw::Machine& machine, const std::vector<Location>& tensors,
                                  Span free) {
  Share whole = whole_share(machine);
  whole.stream_begin = free.begin;
  whole.stream_end = free.end;
  if (pipeline.is_single()) return {whole};
  const std::uint32_t levels =
      *std::max_element(pipeline.levels.begin(), pipeline.levels.end()) + 1;
  const Needs needs_of(pipeline, machine, tensors);
  std::vector<Need> needs;
  std::uint64_t sums_left = whole.sums_end, products = 0;
  for (std::uint32_t level = 0; level < levels; ++level) {
    const Group& group = groups[pipeline.first + pipeline.first_of(level)];
    needs.push_back(needs_of.of(group, level, whole.sums_end / levels));
    sums_left -= std::min(needs.back().sums, sums_left);
    products += needs.back().wanted ? 1 : 0;
  }
  const std::vector<std::uint64_t> bytes = split(free.end - free.begin, needs);
  // Those that read A after the free part have what is far from there.
  std::vector<std::uint32_t> order;
  for (const bool a_after : {true, false}) {
    for (std::uint32_t level = 0; level < levels; ++level) {
      const Location& a = tensors[groups[pipeline.first + pipeline.first_of(level)].a.tensor];
      const bool is_after = a.place == Location::Place::kScratchpad && a.address >= free.end;
      if (is_after == a_after) order.push_back(level);
    }
  }
  std::vector<Share> by_level(levels);
  std::uint64_t at = free.begin;
  for (const std::uint32_t level : order) {
    by_level[level].stream_begin = at;
    at += bytes[level] / slot_alignment(machine) * slot_alignment(machine);
    by_level[level].stream_end = at;
  }
  Share next = whole;
  next.in_turns = true;
  next.sums_end = 0;
  for (std::uint32_t level = 0; level < levels; ++level) {
    const bool in_strips = level == pipeline.scores_level() && pipeline.strips > 1;
    next.strip_rows = in_strips ? pipeline.row_tile : 0;
    next.row_tile = std::min(pipeline.tile_rows(level), groups[pipeline.first].m());
    next.sums_begin = next.sums_end;
    next.sums_end += needs[level].sums + (needs[level].wanted ? sums_left / products : 0);
    next.stream_begin = by_level[level].stream_begin;
    next.stream_end = by_level[level].stream_end;
    by_level[level] = next;
  }
  std::vector<Share> shares;
  for (const std::uint32_t level : pipeline.levels) shares.push_back(by_level[level]);
  return shares;
}

std::uint64_t least_sum_cols(const Group& group, const hw::Machine& machine) {
  const bool whole =
      group.matmul() == nullptr || hw::is_row_wise(group.chain) || group.valid_cols != 0;
  return whole ? round_up(group.n(), machine.array.cols) : machine.array.cols;
}

std::uint64_t section_sums(const Group& product, std::uint32_t section,
                           const hw::Machine& machine) {
  const std::uint64_t cols = round_up(section, machine.array.cols);
  return std::max(cols, std::min(whole_share(machine).sums_end / kSumShare, product.m() * cols));
}

std::uint64_t slot_alignment(const hw::Machine& machine) {
  return std::max({machine.array.rows, machine.array.cols, hw::kParameterAlignment});
}

Share whole_share(const hw::Machine& machine) {
  Share share;
  share.stream_end = machine.scratchpad.kib * hw::kKib;
  share.sums_end = machine.accumulator.kib * hw::kKib / 4 / 2;
  return share;
}

}  // namespace systole::mapper

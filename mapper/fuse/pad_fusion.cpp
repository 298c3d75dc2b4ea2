/// Zeros around a picture as the padding of the windows that read it.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "hw/number/dtype.h"
#include "mapper/fuse/fusion_state.h"
#include "mapper/group/fusion_rules.h"
#include "mapper/group/memory_use.h"

namespace systole::mapper {
namespace {

/// Whether a group adds zeros around a picture and does nothing else.
bool only_pads(const Group& group, const model::Graph& graph) {
  if (!std::holds_alternative<LoadAnchor>(group.anchor) || !group.window) return false;
  const hw::Window& window = *group.window;
  const bool plain = window.gather == hw::Gather::kSum && window.pixels() == 1 &&
                     window.stride == 1 && window.padding != hw::Padding{};
  if (!plain || group.pre || group.chain.stages.size() != 1) return false;
  const hw::Stage& stage = group.chain.stages.front();
  const hw::DType type = graph.tensors[group.a.tensor].type;
  if (stage.op != hw::StageOp::kClamp || graph.tensors[group.out.tensor].type != type) return false;
  const hw::IntRange all = hw::range_of(type);
  return stage.imm[0] <= all.lo && stage.imm[1] >= all.hi;
}

/// Side by side; nothing if a side is too wide.
std::optional<hw::Padding> sum_of(const hw::Padding& a, const hw::Padding& b) {
  const auto widest =
      std::max({a.top + b.top, a.left + b.left, a.bottom + b.bottom, a.right + b.right});
  if (widest > static_cast<int>(hw::kMaxWindowSide)) return std::nullopt;
  const auto side = [](int pixels) { return static_cast<std::uint8_t>(pixels); };
  return hw::Padding{side(a.top + b.top), side(a.left + b.left), side(a.bottom + b.bottom),
                     side(a.right + b.right)};
}

/// Whether a group reads the padded picture through a window to which the zeros count as padding.
bool takes_padding(const Group& reader, const Group& pads) {
  if (!reader.window || reader.window->gather == hw::Gather::kMaximum) return false;
  const model::View &from = reader.a, &out = pads.out;
  const bool whole = from.tensor == out.tensor && from.row == out.row && from.rows == out.rows &&
                     from.col >= out.col && !from.folded && !out.folded;
  return whole && sum_of(reader.window->padding, pads.window->padding).has_value();
}

/// Makes the padded picture's reader one of the picture itself.
void put_padding(const Group& pads, Group& reader) {
  hw::Window& window = *reader.window;
  window.padding = *sum_of(window.padding, pads.window->padding);
  window.height = pads.window->height;
  window.width = pads.window->width;
  const std::uint32_t col = reader.a.col - pads.out.col + pads.a.col;
  const std::uint32_t cols = reader.a.cols;
  reader.a = pads.a;
  reader.a.col = col;
  reader.a.cols = cols;
}

/// Why the pass of group `i` stays; empty if all that read its result took its zeros.
std::string padding_obstacle(FusionState& state, std::vector<Group>& groups, std::size_t i) {
  const Group& pads = groups[i];
  if (state.machine.mapper.fusion != hw::FusionLevel::kAll) {
    return level_obstacle(state.machine);
  }
  std::vector<std::size_t> readers;
  for (std::size_t j = i + 1; j < groups.size(); ++j) {
    if (takes_padding(groups[j], pads)) readers.push_back(j);
  }
  if (readers.size() != state.readers[pads.out.tensor]) {
    return "not all that read " + state.graph.tensors[pads.out.tensor].name +
           " do so through a window that counts padding as zeros";
  }
  if (std::string why = state.memory_obstacle(pads.out.tensor); !why.empty()) return why;
  for (const std::size_t reader : readers) {
    if (std::string why = order_obstacle(state.graph, groups, i, reader); !why.empty()) return why;
  }
  for (const std::size_t reader : readers) put_padding(pads, groups[reader]);
  Group& first = groups[readers.front()];
  first.nodes.insert(first.nodes.begin(), pads.nodes.begin(), pads.nodes.end());
  first.pads += static_cast<std::uint32_t>(pads.nodes.size());
  state.why[pads.nodes.front()] = "padding of a window";
  return "";
}

}  // namespace

void fuse_pads(FusionState& state, std::vector<Group>& groups) {
  for (std::size_t i = 0; i < groups.size();) {
    if (!only_pads(groups[i], state.graph)) {
      ++i;
      continue;
    }
    const std::size_t node = groups[i].nodes.front();
    std::string why = padding_obstacle(state, groups, i);
    if (why.empty()) {
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      state.why[node] = std::move(why);
      ++i;
    }
  }
}

}  // namespace systole::mapper

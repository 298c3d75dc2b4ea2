#include "mapper/fuse/fusion.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/round.h"
#include "base/units.h"
#include "hw/description/machine_text.h"
#include "mapper/fuse/fusion_state.h"
#include "mapper/group/fusion_rules.h"

namespace systole::mapper {
namespace {

using model::Graph;
using model::Node;
using model::View;
using Role = FusionDecision::Role;

Group matmul_group(const Graph& graph, std::size_t index) {
  const Node& node = graph.nodes[index];
  Group group;
  group.name = node.name;
  group.nodes = {index};
  group.anchor =
      MatmulAnchor{node.product()->b, node.product()->b_transposed,
                   graph.tensors[node.in.tensor].type == hw::DType::kU8, node.product()->groups};
  group.a = node.in;
  group.window = node.window;
  group.out = node.out;
  return group;
}

Group attention_group(const Graph& graph, AttentionGroup attention, std::size_t first) {
  Group group;
  group.name = graph.tensors[attention.out.tensor].name;
  for (const HeadMixLayer& decoder : attention.decoders) {
    for (std::size_t i = 0; i < HeadMixLayer::kNodes; ++i) group.nodes.push_back(decoder.first + i);
  }
  for (std::size_t i = 0; i < attention.nodes; ++i) group.nodes.push_back(first + i);
  group.chain = attention.chain;
  group.out = attention.out;
  group.anchor = std::move(attention);
  return group;
}

Group host_group(const Graph& graph, std::size_t index) {
  const Node& node = graph.nodes[index];
  Group group;
  group.name = node.name;
  group.nodes = {index};
  group.a = node.in;
  if (node.second().tensor != model::kNoTensor) group.tensors.push_back(node.second());
  group.out = node.out;
  group.chain.out = node.host()->function.out;
  group.anchor = node.host()->function;
  group.valid_cols = node.valid_cols();
  return group;
}

Group encoder_group(const Graph& graph, const HeadMixLayer& encoder) {
  Group group;
  group.name = graph.nodes[encoder.first].name;
  for (std::size_t i = 0; i < HeadMixLayer::kNodes; ++i) group.nodes.push_back(encoder.first + i);
  group.chain.out = hw::DType::kS8;
  group.out = encoder.out;
  group.anchor = encoder;
  return group;
}

/// Whether both ways fit, at costs that the model may have in the wrong order.
bool is_close(const FusionCost::Comparison& cost) {
  constexpr double kClose = 1.25;
  return cost.fits && cost.together != cost.apart && cost.together < kClose * cost.apart &&
         cost.apart < kClose * cost.together;
}

/// Throws InputError with the key of the unit that an operator needs and the machine has not.
void check_units(const Graph& graph, const hw::Machine& machine) {
  const hw::ChainLimits limits = hw::chain_limits(machine);
  for (const Node& node : graph.nodes) {
    if (node.stage() == nullptr) continue;
    const hw::StageInfo& info = hw::stage_info(node.stage()->stage.op);
    if (limits.units.at(static_cast<std::size_t>(info.unit))) continue;
    throw hw::InputError(std::string(hw::key_of(info.unit)) + " = 0: " + node.name + " is a " +
                         std::string(info.name) + ", expected a machine with the unit for it");
  }
}

std::size_t upstream_stages(const Group& group) {
  const AttentionGroup* const attention = group.attention();
  if (attention == nullptr) return group.pre ? group.pre->chain.stages.size() : group.pads;
  return group.nodes.size() - attention->nodes - attention->decoders.size() * HeadMixLayer::kNodes;
}

FusionDecision::Role role_of(const Group& group, std::size_t node) {
  const std::size_t upstream = upstream_stages(group);
  if (node < upstream) return Role::kPre;
  if (group.attention() != nullptr || group.encoder() != nullptr) return Role::kInside;
  const bool anchors = group.matmul() != nullptr || group.pads != 0 || upstream == 0;
  return node == upstream && anchors ? Role::kAnchor : Role::kPost;
}

std::vector<FusionDecision> decisions(const FusionState& state, const std::vector<Group>& groups) {
  std::vector<FusionDecision> result(state.graph.nodes.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g].nodes.size(); ++i) {
      const std::size_t node = groups[g].nodes[i];
      result[node] = {node, g, role_of(groups[g], i), state.why[node]};
    }
  }
  return result;
}

/// Grows groups in the order of the nodes: a stage joins the group before it. Finds what is not a
/// run of nodes: attention with its decoders upstream, and encoders.
class GroupBuilder {
 public:
  GroupBuilder(FusionState& state, CloseCalls close_calls)
      : state_(state),
        graph_(state.graph),
        machine_(state.machine),
        close_calls_(close_calls),
        taken_(graph_.nodes.size(), false),
        attention_(graph_.nodes.size()) {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      attention_[i] = match_attention(graph_, i, machine_, state.readers);
      if (!attention_[i]) continue;
      decode(i);
      for (const HeadMixLayer& decoder : attention_[i]->decoders) take(decoder);
      i += attention_[i]->nodes - 1;
    }
  }

  [[nodiscard]] std::vector<Group> build() {
    std::vector<Group> groups;
    for (std::size_t i = 0; i < graph_.nodes.size();) {
      if (taken_[i]) {
        ++i;
        continue;
      }
      if (attention_[i]) {
        groups.push_back(attention_group(graph_, std::move(*attention_[i]), i));
        i += groups.back().attention()->nodes;
        continue;
      }
      if (graph_.nodes[i].host() != nullptr) {
        groups.push_back(host_group(graph_, i++));
        continue;
      }
      groups.push_back(group_from(i));
      const std::vector<HeadMixLayer> encoders = groups.back().sections.encoders;
      for (const HeadMixLayer& encoder : encoders) {
        groups.push_back(encoder_group(graph_, encoder));
      }
    }
    return groups;
  }

 private:
  /// Makes the decoders part of the attention that begins with node `first`, where that pays.
  void decode(std::size_t first) {
    if (machine_.mapper.head_mix == hw::HeadMixUse::kOff) return;
    std::optional<AttentionGroup> together =
        with_decoders(graph_, *attention_[first], first, machine_, state_.readers);
    if (!together) return;
    if (machine_.mapper.head_mix == hw::HeadMixUse::kAuto) {
      const FusionCost::Comparison cost =
          state_.cost.decoding(*together, *attention_[first], products_of(together->decoders));
      for (const HeadMixLayer& decoder : together->decoders) {
        state_.why[decoder.first] = state_.reason(cost);
      }
      if (!cost.pays()) return;
    }
    attention_[first] = std::move(together);
  }

  /// What mixes heads as products of the array.
  [[nodiscard]] std::vector<Group> products_of(const std::vector<HeadMixLayer>& layers) const {
    std::vector<Group> products;
    for (const HeadMixLayer& layer : layers) {
      products.push_back(matmul_group(graph_, layer.first));
      for (std::size_t i = 1; i < HeadMixLayer::kNodes; ++i) {
        append(products.back(), layer.first + i, graph_);
      }
    }
    return products;
  }

  void take(const HeadMixLayer& layer) {
    for (std::size_t i = 0; i < HeadMixLayer::kNodes; ++i) taken_[layer.first + i] = true;
  }

  /// The group that begins with node `i`, which then is the first node after it.
  Group group_from(std::size_t& i) {
    const std::size_t first = i;
    Group group = grown(i, true);
    if (!keeps_saved(group)) {
      i = first;
      group = grown(i, false);
    }
    group.chain.out = graph_.tensors[group.out.tensor].type;
    check_row(group);
    encode(group);
    return group;
  }

  [[nodiscard]] Group anchored(std::size_t i) const {
    if (graph_.nodes[i].product() != nullptr) return matmul_group(graph_, i);
    Group group;
    group.name = graph_.nodes[i].name;
    group.a = graph_.nodes[i].in;
    group.window = graph_.nodes[i].window;
    append(group, i, graph_);
    return group;
  }

  /// `shares`: stages further downstream may read the matmul's sums too.
  Group grown(std::size_t& i, bool shares) {
    Group group = anchored(i);
    while (++i < graph_.nodes.size() && !taken_[i] && !attention_[i] && joins(group, i, shares)) {
      append(group, i, graph_);
    }
    return group;
  }

  /// Whether all that reads the matmul's sums is in the group.
  [[nodiscard]] bool keeps_saved(const Group& group) const {
    if (group.matmul() == nullptr || group.chain.stages.empty()) return true;
    const auto saved = static_cast<unsigned>(
        std::count_if(group.chain.stages.begin(), group.chain.stages.end(),
                      [](const auto& stage) { return stage.operand == hw::Operand::kSaved; }));
    return state_.readers[graph_.nodes[group.nodes.front()].out.tensor] == saved + 1;
  }

  [[nodiscard]] bool joins(Group& group, std::size_t index, bool shares) {
    const Node& node = graph_.nodes[index];
    if (node.stage() == nullptr) return false;
    std::string why = tensor_obstacle(group, node, shares);
    if (why.empty()) {
      why = obstacle(group, node, graph_, machine_);
      if (!why.empty() && moves_upstream(group)) {
        why = obstacle(group, node, graph_, machine_);
      }
    }
    if (why.empty() && hw::stage_info(node.stage()->stage.op).row_wise &&
        group.matmul() != nullptr) {
      const FusionCost::Comparison cost = after(group, index);
      const bool joined = close_calls_ == CloseCalls::kByCost || !is_close(cost)
                              ? cost.pays()
                              : close_calls_ == CloseCalls::kTogether;
      (joined ? state_.why[index] : why) = state_.reason(cost);
      if (joined != cost.pays()) (joined ? state_.why[index] : why) += ", decided by replay";
    }
    if (!why.empty()) state_.why[index] = why;
    return why.empty();
  }

  [[nodiscard]] std::string tensor_obstacle(const Group& group, const Node& node,
                                            bool shares) const {
    const model::Tensor& between = graph_.tensors[group.out.tensor];
    if (node.window) return "it reads through a window";
    if (!same(node.in, group.out)) return "it does not read the result of " + last_of(group);
    if (std::string why = state_.memory_obstacle(group.out.tensor); !why.empty()) return why;
    const unsigned readers = state_.readers[group.out.tensor];
    const bool sums = shares && group.matmul() != nullptr && group.chain.stages.empty();
    if (readers == 1 || sums) return "";
    return std::to_string(readers) + " operators read " + between.name;
  }

  /// A chain on a loaded tensor that is too long goes on after the load.
  bool moves_upstream(Group& group) const {
    const bool full = group.chain.stages.size() >= machine_.postop.max_stages;
    if (!full || group.matmul() != nullptr || !pre_obstacle(group, machine_).empty()) return false;
    BoundChain after;
    std::swap(static_cast<BoundChain&>(group), after);
    after.chain.out = hw::DType::kS32;
    group.pre = std::move(after);
    return true;
  }

  [[nodiscard]] std::string last_of(const Group& group) const {
    return graph_.nodes[group.nodes.back()].name;
  }

  [[nodiscard]] FusionCost::Comparison after(const Group& group, std::size_t stage) {
    Group fused = group, alone;
    append(fused, stage, graph_);
    alone.a = graph_.nodes[stage].in;
    append(alone, stage, graph_);
    return state_.cost.after(fused, group, alone);
  }

  void check_row(const Group& group) const {
    if (!hw::is_row_wise(group.chain) || rows_in_half(machine_, group.n()) != 0) return;
    const std::uint64_t bytes = 2 * 4 * round_up(group.n(), machine_.array.cols);
    throw hw::InputError("accumulator.kib = " + std::to_string(machine_.accumulator.kib) + ": " +
                         group.name + " needs whole rows of " + std::to_string(group.n()) +
                         " int32 in half the accumulator, at least " + std::to_string(bytes) +
                         " bytes" +
                         hw::memory_advice("accumulator.kib", (bytes + hw::kKib - 1) / hw::kKib));
  }

  void encode(Group& group) {
    if (machine_.mapper.head_mix == hw::HeadMixUse::kOff || group.matmul() == nullptr ||
        hw::is_row_wise(group.chain) || hw::transposes(group.chain)) {
      return;
    }
    EncodedSections sections = encoded_sections(graph_, group, machine_, state_.readers, taken_);
    if (sections.encoders.empty()) return;
    Group fused = group;
    fused.sections = sections;
    const FusionCost::Comparison cost =
        state_.cost.encoding(fused, group, products_of(sections.encoders));
    const bool forced = machine_.mapper.head_mix == hw::HeadMixUse::kOn && cost.fits;
    for (const HeadMixLayer& encoder : sections.encoders) {
      state_.why[encoder.first] = state_.reason(cost);
    }
    if (!forced && !cost.pays()) return;
    for (const HeadMixLayer& encoder : sections.encoders) take(encoder);
    group.sections = std::move(sections);
  }

  FusionState& state_;
  const Graph& graph_;
  const hw::Machine& machine_;
  const CloseCalls close_calls_;
  std::vector<bool> taken_;  ///< nodes that belong to a group that began before them, or after
  std::vector<std::optional<AttentionGroup>> attention_;  ///< by first node
};

}  // namespace

Fusion fuse(const Graph& graph, const hw::Machine& machine, CloseCalls close_calls) {
  Tiler tiler(machine, kBestAlone);
  return fuse(graph, machine, close_calls, tiler);
}

Fusion fuse(const Graph& graph, const hw::Machine& machine, CloseCalls close_calls, Tiler& tiler) {
  FusionState state(graph, machine, tiler);
  GroupBuilder builder(state, close_calls);
  check_units(graph, machine);
  std::vector<Group> groups = builder.build();
  fuse_pads(state, groups);
  fuse_upstream(state, groups);
  std::vector<FusionDecision> all = decisions(state, groups);
  return {std::move(groups), std::move(all)};
}

}  // namespace systole::mapper

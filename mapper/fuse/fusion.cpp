#include "mapper/fuse/fusion.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/round.h"
#include "base/units.h"
#include "hw/description/machine_text.h"
#include "mapper/fuse/attention_operands.h"
#include "mapper/fuse/fusion_cost.h"
#include "mapper/group/fusion_rules.h"
#include "mapper/group/memory_use.h"

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
      MatmulAnchor{node.b, node.b_transposed, graph.tensors[node.in.tensor].type == hw::DType::kU8};
  group.a = node.in;
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
  if (node.tensor.tensor != model::kNoTensor) group.tensors.push_back(node.tensor);
  group.out = node.out;
  group.chain.out = node.host.out;
  group.anchor = node.host;
  group.valid_cols = node.valid_cols;
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

std::string cost_text(const FusionCost::Comparison& cost, const hw::Machine::Mapper& mapper) {
  if (!cost.fits) return "no tile fits together";
  const auto text = [](double value) { return std::to_string(std::llround(value)); };
  if (mapper.strategy == hw::MappingStrategy::kSearch &&
      mapper.objective != hw::MappingObjective::kCycles) {
    return "expected at " + text(100 * cost.together / cost.apart) + " % of the cost apart";
  }
  return "expected " + text(cost.together) + " cycles together, " + text(cost.apart) + " apart";
}

/// Whether both ways fit, at costs that the model may have in the wrong order.
bool is_close(const FusionCost::Comparison& cost) {
  constexpr double kClose = 1.25;
  return cost.fits && cost.together != cost.apart && cost.together < kClose * cost.apart &&
         cost.apart < kClose * cost.together;
}

/// Finds what is not a run of nodes: attention with its decoders upstream, and encoders.
class Fuser {
 public:
  Fuser(const Graph& graph, const hw::Machine& machine, CloseCalls close_calls)
      : graph_(graph),
        machine_(machine),
        close_calls_(close_calls),
        readers_(count_readers(graph)),
        cost_(graph, machine),
        taken_(graph.nodes.size(), false),
        why_(graph.nodes.size()),
        attention_(graph.nodes.size()) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      attention_[i] = match_attention(graph, i, machine, readers_);
      if (!attention_[i]) continue;
      for (const HeadMixLayer& decoder : attention_[i]->decoders) take(decoder);
      i += attention_[i]->nodes - 1;
    }
  }

  Fusion run() {
    check_units();
    for (std::size_t i = 0; i < graph_.nodes.size();) {
      if (taken_[i]) {
        ++i;
        continue;
      }
      if (attention_[i]) {
        groups_.push_back(attention_group(graph_, std::move(*attention_[i]), i));
        i += groups_.back().attention()->nodes;
        continue;
      }
      if (graph_.nodes[i].kind == Node::Kind::kHost) {
        groups_.push_back(host_group(graph_, i++));
        continue;
      }
      groups_.push_back(group_from(i));
      const std::vector<HeadMixLayer> encoders = groups_.back().sections.encoders;
      for (const HeadMixLayer& encoder : encoders)
        groups_.push_back(encoder_group(graph_, encoder));
    }
    fuse_in_front();
    std::vector<FusionDecision> all = decisions();
    return {std::move(groups_), std::move(all)};
  }

 private:
  /// The key of the unit that an operator needs and the machine has not.
  void check_units() const {
    const hw::ChainLimits limits = hw::chain_limits(machine_);
    for (const Node& node : graph_.nodes) {
      if (node.kind != Node::Kind::kStage) continue;
      const hw::StageInfo& info = hw::stage_info(node.stage.op);
      if (limits.units.at(static_cast<std::size_t>(info.unit))) continue;
      throw hw::InputError(std::string(hw::key_of(info.unit)) + " = 0: " + node.name + " is a " +
                           std::string(info.name) + ", expected a machine with the unit for it");
    }
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
    if (graph_.nodes[i].kind == Node::Kind::kMatmul) return matmul_group(graph_, i);
    Group group;
    group.name = graph_.nodes[i].name;
    group.a = graph_.nodes[i].in;
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
    return readers_[graph_.nodes[group.nodes.front()].out.tensor] == saved + 1;
  }

  [[nodiscard]] bool joins(Group& group, std::size_t index, bool shares) {
    const Node& node = graph_.nodes[index];
    if (node.kind != Node::Kind::kStage) return false;
    std::string why = tensor_obstacle(group, node, shares);
    if (why.empty()) {
      why = obstacle(group, node, graph_, machine_);
      if (!why.empty() && moves_in_front(group)) {
        why = obstacle(group, node, graph_, machine_);
      }
    }
    if (why.empty() && hw::stage_info(node.stage.op).row_wise && group.matmul() != nullptr) {
      const FusionCost::Comparison cost = after(group, index);
      const bool joined = close_calls_ == CloseCalls::kByCost || !is_close(cost)
                              ? cost.pays()
                              : close_calls_ == CloseCalls::kTogether;
      (joined ? why_[index] : why) = cost_text(cost, machine_.mapper);
      if (joined != cost.pays()) (joined ? why_[index] : why) += ", decided by replay";
    }
    if (!why.empty()) why_[index] = why;
    return why.empty();
  }

  [[nodiscard]] std::string tensor_obstacle(const Group& group, const Node& node,
                                            bool shares) const {
    const model::Tensor& between = graph_.tensors[group.out.tensor];
    if (!same(node.in, group.out)) return "it does not read the result of " + last_of(group);
    if (between.kind != model::Tensor::Kind::kActivation || !between.data.empty()) {
      return between.name + " is wanted in memory";
    }
    const unsigned readers = readers_[group.out.tensor];
    const bool sums = shares && group.matmul() != nullptr && group.chain.stages.empty();
    if (readers == 1 || sums) return "";
    return std::to_string(readers) + " operators read " + between.name;
  }

  /// A chain on a loaded tensor that is too long goes on after the load.
  bool moves_in_front(Group& group) const {
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
    return cost_.after(fused, group, alone);
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
    if (group.matmul() == nullptr || hw::is_row_wise(group.chain) || hw::transposes(group.chain))
      return;
    EncodedSections sections = encoded_sections(graph_, group, machine_, readers_, taken_);
    if (sections.encoders.empty()) return;
    Group fused = group;
    fused.sections = sections;
    std::vector<Group> products;
    for (const HeadMixLayer& encoder : sections.encoders) {
      products.push_back(matmul_group(graph_, encoder.first));
      for (std::size_t i = 1; i < HeadMixLayer::kNodes; ++i) {
        append(products.back(), encoder.first + i, graph_);
      }
    }
    if (!cost_.encoding(fused, group, products).pays()) return;
    for (const HeadMixLayer& encoder : sections.encoders) take(encoder);
    group.sections = std::move(sections);
  }

  /// Puts groups without a matmul before the matmul that reads their result.
  void fuse_in_front() {
    for (std::size_t i = 0; i < groups_.size();) {
      if (in_front_of_reader(i)) {
        groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }

  bool in_front_of_reader(std::size_t i) {
    const Group& group = groups_[i];
    if (!std::holds_alternative<LoadAnchor>(group.anchor)) return false;
    const auto next = groups_.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const auto reader = std::find_if(next, groups_.end(), [&](const Group& candidate) {
      return reads_in_front(candidate, group.out) != 0;
    });
    if (reader == groups_.end()) return false;
    std::string why = pre_obstacle(group, machine_);
    if (why.empty()) why = result_obstacle(group, reads_in_front(*reader, group.out));
    if (why.empty()) {
      why = order_obstacle(graph_, groups_, i, static_cast<std::size_t>(reader - groups_.begin()));
    }
    if (why.empty() && reader->attention()) {
      why = operand_obstacle(*reader->attention(), group, graph_);
    }
    if (why.empty()) {
      Group fused = *reader;
      const FusionCost::Comparison cost = put_in_front(group, fused);
      why_[group.nodes.front()] = cost_text(cost, machine_.mapper);
      if (cost.pays()) {
        *reader = std::move(fused);
        return true;
      }
      return false;
    }
    std::string& so_far = why_[group.nodes.front()];
    so_far += (so_far.empty() ? "" : "; ") + ("not before " + reader->name + ": ") + why;
    return false;
  }

  /// How often the anchor of a group reads a view as an operand that may have stages in front.
  static unsigned reads_in_front(const Group& reader, const View& view) {
    if (reader.attention()) return operand_reads(*reader.attention(), view);
    return reader.matmul() != nullptr && same(reader.a, view) ? 1 : 0;
  }

  /// Makes `group` stages upstream of `reader`, and says whether that pays.
  FusionCost::Comparison put_in_front(const Group& group, Group& reader) {
    const Group alone = reader;
    reader.nodes.insert(reader.nodes.begin(), group.nodes.begin(), group.nodes.end());
    if (reader.attention()) {
      stage_operands(group, *reader.attention());
      return cost_.before_attention(operand_stage_cycles(*reader.attention(), machine_), group);
    }
    reader.pre = static_cast<const BoundChain&>(group);  // the chain and its operands alone
    reader.a = group.a;
    return cost_.before(reader, group, alone);
  }

  /// Why a group's result, which its reader reads `reads` times, cannot stay away from memory.
  [[nodiscard]] std::string result_obstacle(const Group& group, unsigned reads) const {
    const model::Tensor& result = graph_.tensors[group.out.tensor];
    const unsigned readers = readers_[group.out.tensor];
    if (readers != reads) return std::to_string(readers) + " operators read " + result.name;
    if (result.kind != model::Tensor::Kind::kActivation || !result.data.empty()) {
      return result.name + " is wanted in memory";
    }
    return "";
  }

  static std::size_t stages_in_front(const Group& group) {
    if (!group.attention()) return group.pre ? group.pre->chain.stages.size() : 0;
    const AttentionGroup& attention = *group.attention();
    return group.nodes.size() - attention.nodes - attention.decoders.size() * HeadMixLayer::kNodes;
  }

  [[nodiscard]] std::vector<FusionDecision> decisions() const {
    std::vector<FusionDecision> result(graph_.nodes.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      const std::size_t in_front = stages_in_front(group);
      for (std::size_t i = 0; i < group.nodes.size(); ++i) {
        FusionDecision& decision = result[group.nodes[i]];
        decision.node = group.nodes[i];
        decision.group = g;
        decision.why = why_[group.nodes[i]];
        if (i < in_front) {
          decision.role = Role::kPre;
        } else if (group.attention() || group.encoder()) {
          decision.role = Role::kInside;
        } else if (i > in_front) {
          decision.role = Role::kPost;
        } else {
          decision.role = group.matmul() != nullptr || in_front == 0 ? Role::kAnchor : Role::kPost;
        }
      }
    }
    return result;
  }

  const Graph& graph_;
  const hw::Machine& machine_;
  const CloseCalls close_calls_;
  const std::vector<unsigned> readers_;
  FusionCost cost_;
  std::vector<bool> taken_;       ///< nodes that belong to a group that began before them, or after
  std::vector<std::string> why_;  ///< by node
  std::vector<std::optional<AttentionGroup>> attention_;  ///< by first node
  std::vector<Group> groups_;
};

}  // namespace

Fusion fuse(const Graph& graph, const hw::Machine& machine, CloseCalls close_calls) {
  return Fuser(graph, machine, close_calls).run();
}

}  // namespace systole::mapper

#include "mapper/fusion.h"

#include <algorithm>
#include <optional>

#include "hw/error.h"
#include "mapper/objective.h"
#include "mapper/placement.h"
#include "mapper/round.h"
#include "mapper/tiling.h"
#include "mapper/view.h"

namespace systole::mapper {
namespace {

using model::Graph;
using model::Node;
using model::View;

std::vector<unsigned> count_readers(const Graph& graph) {
  std::vector<unsigned> readers(graph.tensors.size(), 0);
  const auto read = [&](const View& view) {
    if (view.tensor != model::kNoTensor) ++readers[view.tensor];
  };
  for (const Node& node : graph.nodes) {
    read(node.in);
    read(node.b);
    read(node.tensor);
  }
  return readers;
}

/// Rows of this many columns that half the accumulator holds.
std::uint64_t rows_in_half(const hw::Machine& machine, std::uint32_t cols) {
  const std::uint64_t elements = std::uint64_t{machine.accumulator.kib} * 1024 / 4 / 2;
  return elements / round_up(cols, machine.array.cols);
}

/// Whether the machine's mapper lets this stage run in the chain of an operator in front of it.
bool may_fuse(hw::FusionLevel level, hw::StageOp op) {
  switch (level) {
    case hw::FusionLevel::kAll:
      return true;
    case hw::FusionLevel::kLibrary:
      return op != hw::StageOp::kAddTensor && op != hw::StageOp::kLayerNorm;
    case hw::FusionLevel::kNone:
      break;
  }
  return op == hw::StageOp::kBias || op == hw::StageOp::kRequantise || op == hw::StageOp::kClamp ||
         op == hw::StageOp::kDivideRowSum;
}

bool may_append(const Group& group, const Node& node, const hw::Machine& machine) {
  if (!may_fuse(machine.mapper.fusion, node.stage.op)) return false;
  if (group.chain.stages.size() >= machine.postop.max_stages) return false;
  const hw::StageInfo& info = hw::stage_info(node.stage.op);
  if (node.stage.op == hw::StageOp::kAddTensor && hw::uses_tensor(group.chain)) return false;
  if (info.row_wise) {
    if (hw::is_row_wise(group.chain)) return false;
    if (rows_in_half(machine, node.out.cols) == 0) return false;
  }
  const bool statistics = node.statistics != model::kNoTensor;
  return !(statistics && group.statistics != model::kNoTensor);
}

void append(Group& group, std::size_t index, const Graph& graph) {
  const Node& node = graph.nodes[index];
  group.nodes.push_back(index);
  group.chain.stages.push_back(node.stage);
  group.parameters.insert(group.parameters.end(), node.parameters.begin(), node.parameters.end());
  if (node.stage.op == hw::StageOp::kAddTensor) group.tensor = node.tensor;
  if (node.statistics != model::kNoTensor) group.statistics = node.statistics;
  if (node.kept != 0) group.kept = node.kept;
  group.out = node.out;
}

Group matmul_group(const Graph& graph, std::size_t index) {
  const Node& node = graph.nodes[index];
  Group group;
  group.name = node.name;
  group.nodes = {index};
  group.has_matmul = true;
  group.a = node.in;
  group.b = node.b;
  group.b_transposed = node.b_transposed;
  group.a_unsigned = graph.tensors[node.in.tensor].type == hw::DType::kU8;
  group.out = node.out;
  return group;
}

Group attention_group(const Graph& graph, AttentionGroup attention, std::size_t first) {
  Group group;
  group.name = graph.tensors[attention.out.tensor].name;
  for (const MixLayer& decoder : attention.decoders) {
    for (std::size_t i = 0; i < MixLayer::kNodes; ++i) group.nodes.push_back(decoder.first + i);
  }
  for (std::size_t i = 0; i < attention.nodes; ++i) group.nodes.push_back(first + i);
  group.chain = attention.chain;
  group.out = attention.out;
  group.attention = std::move(attention);
  return group;
}

Group host_group(const Graph& graph, std::size_t index) {
  const Node& node = graph.nodes[index];
  Group group;
  group.name = node.name;
  group.nodes = {index};
  group.a = node.in;
  group.tensor = node.tensor;
  group.out = node.out;
  group.chain.out = node.host.out;
  group.host = node.host;
  group.kept = node.kept;
  return group;
}

Group encoder_group(const Graph& graph, const MixLayer& encoder) {
  Group group;
  group.name = graph.nodes[encoder.first].name;
  for (std::size_t i = 0; i < MixLayer::kNodes; ++i) group.nodes.push_back(encoder.first + i);
  group.chain.out = hw::DType::kS8;
  group.out = encoder.out;
  group.encoder = encoder;
  return group;
}

/// A row-wise stage makes the matmul in front of it work on whole rows, which may cost more traffic
/// than a pass of its own. Compares the two by the tiler's model, as if nothing stayed on chip.
class FusionCost {
 public:
  FusionCost(const Graph& graph, const hw::Machine& machine)
      : graph_(graph), machine_(machine), tiler_(machine) {
    placement_.tensors.resize(graph.tensors.size());
  }

  [[nodiscard]] bool pays(const Group& group, std::size_t stage) {
    Group fused = group, alone;
    append(fused, stage, graph_);
    alone.a = graph_.nodes[stage].in;
    append(alone, stage, graph_);
    const std::optional<Tiling> together = tiling(fused), first = tiling(group),
                                second = tiling(alone);
    if (!together) return false;
    // The second pass waits for the first one's last write, and then for its own first read.
    const double latency = dma_rate(machine_, machine_.dma.outstanding_reads).cycles_per_request *
                           machine_.dma.outstanding_reads;
    return !first || !second ||
           value(together->cycles, together->energy) <=
               value(first->cycles + second->cycles + static_cast<std::uint64_t>(2 * latency),
                     first->energy + second->energy);
  }

  /// Whether a group that encodes these sections on the way out is no slower than a product for
  /// each of the encoders.
  [[nodiscard]] bool pays(const Group& group, const EncodedSections& sections) {
    Group fused = group;
    fused.sections = sections;
    const std::optional<Tiling> together = tiling(fused);
    std::optional<Tiling> apart = tiling(group);
    for (const MixLayer& encoder : sections.encoders) {
      Group product = matmul_group(graph_, encoder.first);
      for (std::size_t i = 1; i < MixLayer::kNodes; ++i) append(product, encoder.first + i, graph_);
      const std::optional<Tiling> more = tiling(product);
      if (!apart || !more) continue;
      apart->cycles += more->cycles;
      apart->energy += more->energy;
    }
    return together && (!apart || value(together->cycles, together->energy) <=
                                      value(apart->cycles, apart->energy));
  }

 private:
  /// Nothing if the group does not fit the machine.
  std::optional<Tiling> tiling(Group group) {
    group.chain.out = graph_.tensors[group.out.tensor].type;
    try {
      return tiler_.choose(tiling_problem(graph_, group, placement_, machine_), group.name);
    } catch (const hw::InputError&) {
      return std::nullopt;
    }
  }

  /// What the machine's mapper wants little of.
  [[nodiscard]] double value(std::uint64_t cycles, double joules) const {
    return objective_of(machine_.mapper, static_cast<double>(cycles), joules);
  }

  const Graph& graph_;
  const hw::Machine& machine_;
  Placement placement_;
  Tiler tiler_;
};

/// Finds what is not a run of nodes: the attention of each layer, whose decoders stand further in
/// front, and encoders.
class Fuser {
 public:
  Fuser(const Graph& graph, const hw::Machine& machine)
      : graph_(graph),
        machine_(machine),
        readers_(count_readers(graph)),
        cost_(graph, machine),
        taken_(graph.nodes.size(), false),
        attention_(graph.nodes.size()) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      attention_[i] = match_attention(graph, i, machine, readers_);
      if (!attention_[i]) continue;
      for (const MixLayer& decoder : attention_[i]->decoders) take(decoder);
      i += attention_[i]->nodes - 1;
    }
  }

  std::vector<Group> run() {
    std::vector<Group> groups;
    for (std::size_t i = 0; i < graph_.nodes.size();) {
      if (taken_[i]) {
        ++i;
        continue;
      }
      if (attention_[i]) {
        groups.push_back(attention_group(graph_, std::move(*attention_[i]), i));
        i += groups.back().attention->nodes;
        continue;
      }
      if (graph_.nodes[i].kind == Node::Kind::kHost) {
        groups.push_back(host_group(graph_, i++));
        continue;
      }
      groups.push_back(group_from(i));
      const std::vector<MixLayer> encoders = groups.back().sections.encoders;
      for (const MixLayer& encoder : encoders) groups.push_back(encoder_group(graph_, encoder));
    }
    return groups;
  }

 private:
  void take(const MixLayer& layer) {
    for (std::size_t i = 0; i < MixLayer::kNodes; ++i) taken_[layer.first + i] = true;
  }

  /// The group that begins with node `i`, which then is the first node behind it.
  Group group_from(std::size_t& i) {
    Group group = anchored(i);
    while (++i < graph_.nodes.size() && !taken_[i] && joins(group, graph_.nodes[i], i)) {
      append(group, i, graph_);
    }
    group.chain.out = graph_.tensors[group.out.tensor].type;
    if (hw::is_row_wise(group.chain) && rows_in_half(machine_, group.n()) == 0) {
      throw hw::InputError("accumulator.kib = " + std::to_string(machine_.accumulator.kib) + ": " +
                           group.name + " needs whole rows of " + std::to_string(group.n()) +
                           " int32 in half the accumulator, at least " +
                           std::to_string(2 * 4 * round_up(group.n(), machine_.array.cols)) +
                           " bytes");
    }
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

  [[nodiscard]] bool joins(const Group& group, const Node& node, std::size_t index) {
    const model::Tensor& between = graph_.tensors[group.out.tensor];
    const bool private_result = readers_[group.out.tensor] == 1 &&
                                between.kind == model::Tensor::Kind::kActivation &&
                                between.data.empty();
    if (node.kind != Node::Kind::kStage || !private_result || !same(node.in, group.out) ||
        !may_append(group, node, machine_)) {
      return false;
    }
    return !hw::stage_info(node.stage.op).row_wise || !group.has_matmul || cost_.pays(group, index);
  }

  void encode(Group& group) {
    if (!group.has_matmul || hw::is_row_wise(group.chain)) return;
    EncodedSections sections = encoded_sections(graph_, group.out, machine_, readers_, taken_);
    if (sections.encoders.empty() || !cost_.pays(group, sections)) return;
    for (const MixLayer& encoder : sections.encoders) take(encoder);
    group.sections = std::move(sections);
  }

  const Graph& graph_;
  const hw::Machine& machine_;
  const std::vector<unsigned> readers_;
  FusionCost cost_;
  std::vector<bool> taken_;  ///< nodes that belong to a group that began before them, or behind
  std::vector<std::optional<AttentionGroup>> attention_;  ///< by first node
};

}  // namespace

std::vector<Group> fuse(const Graph& graph, const hw::Machine& machine) {
  return Fuser(graph, machine).run();
}

}  // namespace systole::mapper

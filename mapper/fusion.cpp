#include "mapper/fusion.h"

#include <algorithm>
#include <optional>

#include "hw/error.h"
#include "mapper/placement.h"
#include "mapper/round.h"
#include "mapper/tiling.h"

namespace systole::mapper {
namespace {

using model::Graph;
using model::Node;
using model::View;

bool same(const View& a, const View& b) {
  return a.tensor == b.tensor && a.row == b.row && a.col == b.col && a.rows == b.rows &&
         a.cols == b.cols;
}

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

bool may_append(const Group& group, const Node& node, const hw::Machine& machine) {
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
  group.out = node.out;
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
    const std::optional<std::uint64_t> together = cycles(fused), first = cycles(group),
                                       second = cycles(alone);
    if (!together) return false;
    // The second pass waits for the first one's last write, and then for its own first read.
    const double latency = dma_rate(machine_, machine_.dma.outstanding_reads).cycles_per_request *
                           machine_.dma.outstanding_reads;
    return !first || !second ||
           *together <= *first + *second + static_cast<std::uint64_t>(2 * latency);
  }

 private:
  /// Nothing if the group does not fit the machine.
  std::optional<std::uint64_t> cycles(Group group) {
    group.chain.out = graph_.tensors[group.out.tensor].type;
    try {
      return tiler_.choose(tiling_problem(graph_, group, placement_, machine_), group.name).cycles;
    } catch (const hw::InputError&) {
      return std::nullopt;
    }
  }

  const Graph& graph_;
  const hw::Machine& machine_;
  Placement placement_;
  Tiler tiler_;
};

}  // namespace

std::vector<Group> fuse(const Graph& graph, const hw::Machine& machine) {
  const std::vector<unsigned> readers = count_readers(graph);
  FusionCost cost(graph, machine);
  std::vector<Group> groups;
  for (std::size_t i = 0; i < graph.nodes.size();) {
    const Node& anchor = graph.nodes[i];
    Group group;
    group.attention = match_attention(graph, i, machine);
    if (group.attention) {
      group.name = graph.tensors[group.attention->out.tensor].name;
      for (const std::size_t end = i + group.attention->nodes; i < end; ++i) {
        group.nodes.push_back(i);
      }
      group.chain = group.attention->chain;
      group.out = group.attention->out;
      groups.push_back(std::move(group));
      continue;
    }
    group.name = anchor.name;
    group.a = anchor.in;
    if (anchor.kind == Node::Kind::kMatmul) {
      group.has_matmul = true;
      group.b = anchor.b;
      group.b_transposed = anchor.b_transposed;
      group.a_unsigned = graph.tensors[anchor.in.tensor].type == hw::DType::kU8;
      group.nodes.push_back(i);
      group.out = anchor.out;
    } else {
      append(group, i, graph);
    }
    for (++i; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      const model::Tensor& between = graph.tensors[group.out.tensor];
      const bool private_result = readers[group.out.tensor] == 1 &&
                                  between.kind == model::Tensor::Kind::kActivation &&
                                  between.data.empty();
      if (node.kind != Node::Kind::kStage || !private_result || !same(node.in, group.out) ||
          !may_append(group, node, machine)) {
        break;
      }
      if (hw::stage_info(node.stage.op).row_wise && group.has_matmul && !cost.pays(group, i)) break;
      append(group, i, graph);
    }
    group.chain.out = graph.tensors[group.out.tensor].type;
    if (hw::is_row_wise(group.chain) && rows_in_half(machine, group.n()) == 0) {
      throw hw::InputError("accumulator.kib = " + std::to_string(machine.accumulator.kib) + ": " +
                           group.name + " needs whole rows of " + std::to_string(group.n()) +
                           " int32 in half the accumulator, at least " +
                           std::to_string(2 * 4 * round_up(group.n(), machine.array.cols)) +
                           " bytes");
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace systole::mapper

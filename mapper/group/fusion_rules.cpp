#include "mapper/group/fusion_rules.h"

#include "base/error.h"
#include "base/round.h"
#include "base/units.h"

namespace systole::mapper {
namespace {

using model::Graph;
using model::Node;
using model::View;

/// What brings a result into its type belongs to the operator that gives it.
bool rounds(const hw::Stage& stage) {
  return stage.op == hw::StageOp::kRequantise || stage.op == hw::StageOp::kClamp;
}

/// Whether the machine's mapper lets this stage run in the chain of an operator before it.
bool may_fuse(hw::FusionLevel level, const hw::Stage& stage) {
  switch (level) {
    case hw::FusionLevel::kAll:
    case hw::FusionLevel::kPost:
      return true;
    case hw::FusionLevel::kLibrary:
      return !hw::is_residual(stage) && stage.op != hw::StageOp::kLayerNorm;
    case hw::FusionLevel::kNone:
      return rounds(stage) || hw::is_bias(stage) || stage.op == hw::StageOp::kDivideRowSum;
    case hw::FusionLevel::kOff:
      break;
  }
  return rounds(stage);
}

const char* name_of(hw::FusionLevel level) {
  switch (level) {
    case hw::FusionLevel::kAll:
      return "all";
    case hw::FusionLevel::kLibrary:
      return "library";
    case hw::FusionLevel::kNone:
      return "none";
    case hw::FusionLevel::kPost:
      return "post";
    case hw::FusionLevel::kOff:
      return "off";
  }
  return "?";
}

/// The key and its value, as messages name what is too small.
std::string limit(const char* key, std::uint64_t value) {
  return std::string(key) + " is " + std::to_string(value);
}

std::string statistics_obstacle(const Group& group, const Node& node) {
  const bool writes = hw::statistics_written(node.stage()->stage) != 0;
  const bool reads = hw::statistics_read(node.stage()->stage) != 0;
  if (writes && hw::writes_row_statistics(group.chain))
    return "the chain has a side output already";
  if ((writes && hw::reads_row_statistics(group.chain)) ||
      (reads && hw::writes_row_statistics(group.chain))) {
    return "one chain cannot read row statistics and leave others";
  }
  const bool other = group.statistics != model::kNoTensor &&
                     node.statistics() != model::kNoTensor && group.statistics != node.statistics();
  return other ? "the chain works with other row statistics" : "";
}

/// Whether the stage's tensor operand is the saved accumulator: what the chain began with.
bool reads_saved(const Group& group, const Node& node, const Graph& graph) {
  const hw::Stage& stage = node.stage()->stage;
  if (stage.operand != hw::Operand::kTensor || group.pre || group.nodes.empty() ||
      !hw::stage_info(stage.op).takes(hw::Operand::kSaved)) {
    return false;
  }
  if (group.matmul() == nullptr && group.window) return false;
  return same(node.second(),
              group.matmul() != nullptr ? graph.nodes[group.nodes.front()].out : group.a);
}

std::string operand_obstacle(const Group& group, const Node& node, const Graph& graph,
                             const hw::Machine& machine) {
  if (node.stage()->stage.operand != hw::Operand::kTensor || reads_saved(group, node, graph))
    return "";
  if (group.tensors.size() >= machine.postop.tensor_operands) {
    return limit("postop.tensor_operands", machine.postop.tensor_operands);
  }
  return "";
}

/// A tile of the result is written before others are read: it may lie over the same tile of what
/// passes with it, and over nothing else that the group reads.
std::string in_place_obstacle(const Group& group, const Node& node, const Graph& graph) {
  const bool turns = node.stage()->stage.op == hw::StageOp::kTranspose;
  const auto spoils = [&](const View& read, bool in_step) {
    return overlap(read, node.out) && !(in_step && !turns && same(read, node.out));
  };
  bool spoilt = spoils(group.a, group.matmul() == nullptr && !group.window) ||
                (group.matmul() != nullptr && spoils(group.matmul()->b, false));
  const auto add = [&](const BoundChain& chain) {
    for (const View& view : chain.tensors) spoilt |= spoils(view, true);
  };
  add(group);
  if (group.pre) add(*group.pre);
  return spoilt ? "it writes over " + graph.tensors[node.out.tensor].name + ", which " +
                      group.name + " still reads"
                : "";
}

}  // namespace

std::string level_obstacle(const hw::Machine& machine) {
  return std::string("mapper.fusion is \"") + name_of(machine.mapper.fusion) + "\"";
}

std::vector<unsigned> count_readers(const Graph& graph) {
  std::vector<unsigned> readers(graph.tensors.size(), 0);
  const auto read = [&](const View& view) {
    if (view.tensor != model::kNoTensor) ++readers[view.tensor];
  };
  for (const Node& node : graph.nodes) {
    read(node.in);
    read(node.second());
  }
  return readers;
}

std::uint64_t rows_in_half(const hw::Machine& machine, std::uint32_t cols) {
  const std::uint64_t elements = std::uint64_t{machine.accumulator.kib} * 1024 / 4 / 2;
  return elements / round_up(cols, machine.array.cols);
}

void append(Group& group, std::size_t index, const Graph& graph) {
  const Node& node = graph.nodes[index];
  hw::Stage stage = node.stage()->stage;
  if (reads_saved(group, node, graph)) {
    stage.operand = hw::Operand::kSaved;
    stage.tensor = {};
  } else if (stage.operand == hw::Operand::kTensor) {
    group.tensors.push_back(node.second());
  }
  group.nodes.push_back(index);
  group.chain.stages.push_back(stage);
  const hw::SharedVector<std::int32_t>& parameters = node.stage()->parameters;
  if (group.parameters.empty()) {
    group.parameters = parameters;
  } else if (!parameters.empty()) {
    std::vector<std::int32_t>& all = group.parameters.edit();
    all.insert(all.end(), parameters.begin(), parameters.end());
  }
  if (node.statistics() != model::kNoTensor) group.statistics = node.statistics();
  if (node.valid_cols() != 0) group.valid_cols = node.valid_cols();
  group.out = node.out;
}

std::string obstacle(const Group& group, const Node& node, const Graph& graph,
                     const hw::Machine& machine) {
  const hw::Stage& stage = node.stage()->stage;
  const hw::StageInfo& info = hw::stage_info(stage.op);
  if (!may_fuse(machine.mapper.fusion, stage)) {
    return level_obstacle(machine);
  }
  // Gemmini's library adds residuals in a call of their own.
  if (machine.mapper.strategy == hw::MappingStrategy::kGemmini && group.matmul() != nullptr &&
      machine.host.operators == hw::HostOperators::kFloat && hw::is_residual(stage)) {
    return "mapper.strategy is \"gemmini\"";
  }
  if (hw::transposes(group.chain)) return "the chain ends with a transposition";
  if (group.chain.stages.size() >= machine.postop.max_stages) {
    return limit("postop.max_stages", machine.postop.max_stages);
  }
  if (std::string why = operand_obstacle(group, node, graph, machine); !why.empty()) return why;
  if (std::string why = statistics_obstacle(group, node); !why.empty()) return why;
  if (std::string why = in_place_obstacle(group, node, graph); !why.empty()) return why;
  const bool both_mask = hw::uses_valid_cols(group.chain) && hw::uses_valid_cols({{stage}, {}});
  if (both_mask && node.valid_cols() != group.valid_cols) {
    return "the chain has another causal mask";
  }
  if (info.row_wise && hw::is_row_wise(group.chain))
    return "the chain has a row-wise stage already";
  if ((info.row_wise || node.valid_cols() != 0) && rows_in_half(machine, node.in.cols) == 0) {
    return limit("accumulator.kib", machine.accumulator.kib) + ", half of it less than a row";
  }
  return "";
}

std::string pre_obstacle(const Group& group, const hw::Machine& machine) {
  if (machine.mapper.fusion != hw::FusionLevel::kAll) {
    return level_obstacle(machine);
  }
  if (machine.mapper.strategy == hw::MappingStrategy::kGemmini) {
    return "mapper.strategy is \"gemmini\"";
  }
  if (machine.preop.lanes == 0) return limit("preop.lanes", 0);
  if (!std::holds_alternative<LoadAnchor>(group.anchor)) return "it is an anchor";
  if (group.pre) return "it has stages in front already";
  if (group.window) return "it reads through a window";
  if (group.valid_cols != 0) return "a causal mask counts whole rows";
  if (hw::staged_rows(group.a.cols, hw::DType::kS32, group.chain, machine.postop) == 0) {
    return limit("postop.operand_kib", machine.postop.operand_kib);
  }
  try {
    hw::check_pre_chain(group.chain);
  } catch (const hw::InputError& error) {
    return std::string("its chain ") + error.what();
  }
  return "";
}

}  // namespace systole::mapper

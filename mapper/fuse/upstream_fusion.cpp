#include <algorithm>
#include <array>
#include <variant>

#include "hw/attention/timing/attention_plan.h"
#include "hw/program/attention_check.h"
#include "mapper/fuse/fusion_state.h"
#include "mapper/group/fusion_rules.h"
#include "mapper/group/memory_use.h"

namespace systole::mapper {

namespace {

/// How many matmuls of the heads read this view, which is that of an operand of all heads, or of
/// several operands. 0: it is none.
unsigned operand_reads(const AttentionGroup& attention, const model::View& view) {
  unsigned operands = 0;
  for (const model::View* operand : {&attention.query, &attention.key, &attention.value}) {
    operands += same(*operand, view) ? 1 : 0;
  }
  return operands * static_cast<unsigned>(attention.heads.size());
}

/// Why the chain of a group that may go before an anchor cannot go before the engines; empty if it
/// can.
std::string operand_obstacle(const AttentionGroup& attention, const Group& stages,
                             const model::Graph& graph) {
  if (!attention.decoders.empty()) return "its operands have decoders";
  if (!hw::runs_on_engines(stages.chain, false)) return "the engines have no ports for operands";
  const model::Tensor& in = graph.tensors[stages.a.tensor];
  return in.type == hw::DType::kS8 ? "" : in.name + " is not s8";
}

/// Puts the chain of `stages` before the operands that are its result.
void stage_operands(const Group& stages, AttentionGroup& attention) {
  const std::array<model::View*, 3> operands = {&attention.query, &attention.key, &attention.value};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!same(*operands[i], stages.out)) continue;
    *operands[i] = stages.a;
    attention.operand_chains[i] = stages.chain;
  }
}

/// Cycles in which the stages of the operands take rows, all that come in together.
std::uint64_t operand_stage_cycles(const AttentionGroup& attention, const hw::Machine& machine) {
  const hw::AttentionPlan plan =
      hw::plan_attention(attention.heads, attention.dim, attention.value_dim, machine);
  std::uint64_t cycles = 0;
  for (const hw::AttentionFetch& fetch : plan.fetches) {
    const hw::Chain& chain = attention.operand_chains[static_cast<std::size_t>(fetch.operand)];
    if (chain.stages.empty()) continue;
    const std::size_t features =
        fetch.operand == hw::AttentionOperand::kValue ? attention.value_dim : attention.dim;
    cycles += hw::chain_cycles(chain, 1, features, machine.preop.lanes).per_row;
  }
  return cycles;
}

/// How often the anchor of a group reads a view as an operand that may have stages upstream.
unsigned reads_after_stages(const Group& reader, const model::View& view) {
  if (reader.attention() != nullptr) return operand_reads(*reader.attention(), view);
  return reader.matmul() != nullptr && !reader.window && same(reader.a, view) ? 1 : 0;
}

/// Makes `group` stages upstream of `reader`, and says whether that pays.
FusionCost::Comparison put_upstream(FusionState& state, const Group& group, Group& reader) {
  const Group alone = reader;
  reader.nodes.insert(reader.nodes.begin(), group.nodes.begin(), group.nodes.end());
  if (AttentionGroup* const attention = reader.attention()) {
    stage_operands(group, *attention);
    return state.cost.before_attention(operand_stage_cycles(*attention, state.machine), group);
  }
  reader.pre = static_cast<const BoundChain&>(group);  // the chain and its operands alone
  reader.a = group.a;
  return state.cost.before(reader, group, alone);
}

/// Why a group's result, which its reader reads `reads` times, cannot stay away from memory.
std::string result_obstacle(const FusionState& state, const Group& group, unsigned reads) {
  const unsigned readers = state.readers[group.out.tensor];
  if (readers == reads) return state.memory_obstacle(group.out.tensor);
  return std::to_string(readers) + " operators read " + state.graph.tensors[group.out.tensor].name;
}

/// Whether group `i` went upstream of its reader.
bool goes_upstream(FusionState& state, std::vector<Group>& groups, std::size_t i) {
  const Group& group = groups[i];
  if (!std::holds_alternative<LoadAnchor>(group.anchor)) return false;
  const auto next = groups.begin() + static_cast<std::ptrdiff_t>(i) + 1;
  const auto reader = std::find_if(next, groups.end(), [&](const Group& candidate) {
    return reads_after_stages(candidate, group.out) != 0;
  });
  if (reader == groups.end()) return false;
  std::string why = pre_obstacle(group, state.machine);
  if (why.empty()) why = result_obstacle(state, group, reads_after_stages(*reader, group.out));
  if (why.empty()) {
    why = order_obstacle(state.graph, groups, i, static_cast<std::size_t>(reader - groups.begin()));
  }
  if (why.empty() && reader->attention() != nullptr) {
    why = operand_obstacle(*reader->attention(), group, state.graph);
  }
  std::string& so_far = state.why[group.nodes.front()];
  if (!why.empty()) {
    so_far += (so_far.empty() ? "" : "; ") + ("not before " + reader->name + ": ") + why;
    return false;
  }
  Group fused = *reader;
  const FusionCost::Comparison cost = put_upstream(state, group, fused);
  so_far = state.reason(cost);
  if (cost.pays()) *reader = std::move(fused);
  return cost.pays();
}

}  // namespace

void fuse_upstream(FusionState& state, std::vector<Group>& groups) {
  for (std::size_t i = 0; i < groups.size();) {
    if (goes_upstream(state, groups, i)) {
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

}  // namespace systole::mapper

#include "mapper/fuse/attention_operands.h"

#include <array>

#include "hw/attention/timing/attention_plan.h"
#include "hw/program/attention_check.h"

namespace systole::mapper {

unsigned operand_reads(const AttentionGroup& attention, const model::View& view) {
  unsigned operands = 0;
  for (const model::View* operand : {&attention.query, &attention.key, &attention.value}) {
    operands += same(*operand, view) ? 1 : 0;
  }
  return operands * static_cast<unsigned>(attention.heads.size());
}

std::string operand_obstacle(const AttentionGroup& attention, const Group& stages,
                             const model::Graph& graph) {
  if (!attention.decoders.empty()) return "its operands have decoders";
  if (!hw::runs_on_engines(stages.chain, false)) return "the engines have no ports for operands";
  const model::Tensor& in = graph.tensors[stages.a.tensor];
  return in.type == hw::DType::kS8 ? "" : in.name + " is not s8";
}

void stage_operands(const Group& stages, AttentionGroup& attention) {
  const std::array<model::View*, 3> operands = {&attention.query, &attention.key, &attention.value};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!same(*operands[i], stages.out)) continue;
    *operands[i] = stages.a;
    attention.operand_chains[i] = stages.chain;
  }
}

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

}  // namespace systole::mapper

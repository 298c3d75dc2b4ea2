#include <limits>
#include <utility>

#include "base/error.h"
#include "base/round.h"
#include "hw/attention/mask_codec.h"
#include "mapper/emit/emitter.h"

namespace systole::mapper {

std::uint32_t Emitter::near_address(const model::View& view) const {
  return near(view, address(view, 0, 0));
}

std::uint32_t Emitter::near(const model::View& view, std::uint64_t at) const {
  if (at > std::numeric_limits<std::uint32_t>::max()) {
    throw hw::InputError(graph_.tensors[view.tensor].name +
                         ": an operand beyond 4 GiB, expected it below");
  }
  return narrow(at);
}

void Emitter::emit_host(const Group& group) {
  Work work;
  work.op = narrow(program_.operators.size());
  work_ = &work;
  add_operator(group, 0);
  hw::Command command = this->command(hw::Opcode::kHost);
  command.chain = static_cast<std::uint16_t>(program_.host_functions.size());
  command.m = group.m();
  command.n = group.n();
  command.k = group.valid_cols;
  command.dram = address(group.a, 0, 0);
  command.dram_pitch = location(group.a).pitch;
  if (hw::operands_of(group.host->op) > 1) {
    command.a = near_address(group.tensors.front());
    command.a_pitch = location(group.tensors.front()).pitch;
  }
  command.tensor = address(group.out, 0, 0);
  command.tensor_pitch = location(group.out).pitch;
  program_.host_functions.push_back(*group.host);
  program_.commands.push_back(command);
  work_ = nullptr;
}

void Emitter::emit_attention(const Group& group) {
  const AttentionGroup& attention = *group.attention;
  std::uint64_t cells = 0;
  for (const hw::SparseHead& head : attention.heads) cells += head.kept();
  std::uint64_t macs = cells * (attention.dim + attention.value_dim);
  for (const HeadMixLayer& decoder : attention.decoders) macs += decoder.macs();
  Work work = begin(group, macs);
  work_ = &work;
  program_.chains.push_back(attention.softmax);
  if (attention.stages_operands()) {
    program_.chains.insert(program_.chains.end(), attention.operand_chains.begin(),
                           attention.operand_chains.end());
  }

  hw::LayerMask mask;
  mask.bytes = hw::encode_mask(attention.heads);
  const std::uint32_t mask_bytes = narrow(mask.bytes.size());
  mask.address = constants_.add_tile(nullptr, mask_bytes, 1, mask_bytes, mask_bytes);
  hw::Command command = this->command(hw::Opcode::kAttention);
  command.dram = address(attention.query, 0, 0);
  command.dram_pitch = location(attention.query).pitch;
  command.a = near_address(attention.key);
  command.a_pitch = location(attention.key).pitch;
  command.b = near_address(attention.value);
  command.b_pitch = location(attention.value).pitch;
  command.tensor = address(attention.out, 0, 0);
  command.tensor_pitch = location(attention.out).pitch;
  command.m = attention.query.rows;
  command.n = narrow(attention.value_dim);
  command.k = narrow(attention.dim);
  command.c = work_->chain + 1U;
  command.c_pitch = attention.key.rows;
  command.accumulate = attention.stages_operands();
  command.chain = work_->chain;
  command.statistics = narrow(attention.heads.size());
  command.parameters = narrow(program_.masks.size());
  program_.masks.push_back(std::move(mask));
  if (!attention.decoders.empty()) {
    command.mix = next_mix();
    for (const HeadMixLayer& decoder : attention.decoders) program_.mixes.push_back(decoder.mix);
  }
  program_.commands.push_back(command);
  work_ = nullptr;
}

}  // namespace systole::mapper

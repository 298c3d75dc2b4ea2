#include <limits>
#include <utility>

#include "base/error.h"
#include "base/round.h"
#include "hw/attention/mask_codec.h"
#include "mapper/emit/emitter.h"

namespace systole::mapper {

hw::DramTile Emitter::near(const model::View& view, const hw::DramTile& tile) const {
  if (tile.address > std::numeric_limits<std::uint32_t>::max()) {
    throw hw::InputError(graph_.tensors[view.tensor].name +
                         ": an operand beyond 4 GiB, expected it below");
  }
  return tile;
}

void Emitter::emit_host(const Group& group) {
  Work work;
  work.op = narrow(program_.operators.size());
  work_ = &work;
  add_operator(group, 0);
  hw::cmd::HostCall call;
  call.function = static_cast<std::uint16_t>(program_.host_functions.size());
  call.m = group.m();
  call.n = group.n();
  call.valid_cols = group.valid_cols;
  call.in = dram_tile(group.a);
  if (hw::operands_of(group.host->op) > 1) {
    call.operand = near(group.tensors.front(), dram_tile(group.tensors.front()));
  }
  call.out = dram_tile(group.out);
  program_.host_functions.push_back(*group.host);
  add(call);
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
  hw::cmd::Attention command;
  command.query = dram_tile(attention.query);
  command.key = near(attention.key, dram_tile(attention.key));
  command.value = near(attention.value, dram_tile(attention.value));
  command.out = dram_tile(attention.out);
  command.queries = attention.query.rows;
  command.keys = attention.key.rows;
  command.heads = narrow(attention.heads.size());
  command.k = narrow(attention.dim);
  command.n = narrow(attention.value_dim);
  command.chain = work_->chain;
  command.softmax = work_->chain + 1U;
  command.operand_chains = attention.stages_operands();
  command.mask = narrow(program_.masks.size());
  program_.masks.push_back(std::move(mask));
  if (!attention.decoders.empty()) {
    command.decoders = static_cast<std::uint16_t>(program_.mixes.size());
    for (const HeadMixLayer& decoder : attention.decoders) program_.mixes.push_back(decoder.mix);
  }
  add(command);
  work_ = nullptr;
}

}  // namespace systole::mapper

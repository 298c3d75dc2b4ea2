#include "mapper/ring/pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "mapper/ring/exchanges.h"

namespace systole::mapper::dfx {

using hw::dfx::Batching;
using hw::dfx::Collective;
using hw::dfx::Prefill;

PassMaker::PassMaker(const GptShape& shape, const hw::Machine& machine, std::uint32_t core,
                     std::uint32_t texts)
    : shape_(shape),
      machine_(machine),
      core_(core),
      texts_(texts),
      sizes_(shape, machine),
      layout_(lay_out(shape, machine, core, texts)) {
  std::uint32_t next = 0;
  const auto take = [&](std::uint32_t elements) {
    const std::uint32_t at = next;
    next += round_up(elements, sizes_.depth);
    return at;
  };
  const std::uint32_t own = std::max(layout_.part.heads.size(), 1U);
  const std::uint32_t own_kv = std::max(layout_.part.kv.size(), 1U);
  registers_.stream = take(sizes_.stream(shape));
  registers_.normalised = take(sizes_.stream(shape));
  registers_.scratch = take(sizes_.stream(shape));
  registers_.value = take(own_kv * sizes_.head);
  registers_.key = take(own_kv * sizes_.head);
  registers_.query = take(own * sizes_.head);
  registers_.scores = take(own * sizes_.context);
  registers_.attended = take(shape.encoder.heads * sizes_.head);
  registers_.projected = take(sizes_.width);
  registers_.hidden = take(sizes_.hidden);
  if (shape.llama) registers_.gate = take(layout_.part.hidden.size() * sizes_.columns);
  if (is_pipelined()) registers_.handed = take(machine.dfx.cores * sizes_.width);
  place_logits(next);

  const std::uint32_t cores = machine.dfx.cores;
  const bool sums = machine.ring.collective == Collective::kAllReduce;
  const std::uint32_t slices = sizes_.width / sizes_.columns;
  exchanges_.resize(kExchanges);
  exchanges_[kAttended] = {registers_.attended, bounds(shape.encoder.heads, cores, sizes_.head),
                           false};
  exchanges_[kProjected] = {registers_.projected, bounds(slices, cores, sizes_.columns), sums};
  exchanges_[kHidden] = {registers_.hidden,
                         bounds(sizes_.hidden / sizes_.hidden_unit, cores, sizes_.hidden_unit),
                         false};
  exchanges_[kOutput] = exchanges_[kProjected];
}

// Rows that share weights have the same registers from row to row, logits included. The rows of a
// pipeline come one after the other: only their logits have to be kept.
void PassMaker::place_logits(std::uint32_t next) {
  const std::uint32_t own = round_up(layout_.part.vocabulary.size() * sizes_.columns, sizes_.depth);
  const std::uint32_t logits = own + machine_.dfx.cores * sizes_.depth;
  const std::uint64_t file = std::uint64_t{machine_.vector.registers} * sizes_.depth;
  if (std::uint64_t{next} + logits > file) {
    throw hw::InputError(fmt::format("vector.registers: found {}, expected at least {}",
                                     machine_.vector.registers, (next + logits) / sizes_.depth));
  }
  const bool shares = texts_ > 1 && machine_.dfx.batching == Batching::kShared;
  registers_.pitch = next;
  registers_.logits = next;
  if (is_pipelined()) {
    registers_.logits_pitch = logits;
    max_rows_ =
        static_cast<std::uint32_t>(std::min<std::uint64_t>((file - next) / logits, kMostRows));
    register_elements_ = next + max_rows_ * logits;
  } else if (shares) {
    registers_.logits_pitch = registers_.pitch = next + logits;
    const std::uint64_t fitting = file / registers_.pitch;
    max_rows_ =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(fitting, machine_.matrix.partial_sums));
    register_elements_ = max_rows_ * registers_.pitch;
  } else {
    if (machine_.dfx.prefill == Prefill::kBatched) {
      const auto fitting = static_cast<std::uint32_t>((file - logits) / next);
      max_rows_ = std::min(fitting, machine_.matrix.partial_sums);
    }
    registers_.logits = max_rows_ * next;
    register_elements_ = registers_.logits + logits;
  }
  registers_.winners = registers_.logits + own;
}

}  // namespace systole::mapper::dfx

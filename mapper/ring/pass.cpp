#include "mapper/ring/pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "mapper/ring/exchanges.h"

namespace systole::mapper::dfx {

using hw::dfx::Collective;
using hw::dfx::Prefill;

PassMaker::PassMaker(const TextShape& shape, const hw::Machine& machine, std::uint32_t core)
    : shape_(shape),
      machine_(machine),
      core_(core),
      sizes_(shape, machine),
      layout_(lay_out(shape, machine, core)) {
  std::uint32_t next = 0;
  const auto take = [&](std::uint32_t elements) {
    const std::uint32_t at = next;
    next += round_up(elements, sizes_.depth);
    return at;
  };
  const std::uint32_t own = std::max(layout_.part.heads.size(), 1U);
  registers_.stream = take(sizes_.width);
  registers_.normalised = take(sizes_.width);
  registers_.scratch = take(sizes_.width);
  registers_.value = take(own * sizes_.head);
  registers_.key = take(own * sizes_.head);
  registers_.query = take(own * sizes_.head);
  registers_.scores = take(own * sizes_.context);
  registers_.attended = take(shape.encoder.heads * sizes_.head);
  registers_.projected = take(sizes_.width);
  registers_.hidden = take(sizes_.hidden);
  registers_.pitch = next;
  const std::uint32_t own_logits =
      round_up(layout_.part.vocabulary.size() * sizes_.columns, sizes_.depth);
  const std::uint32_t logits = own_logits + machine.dfx.cores * sizes_.depth;
  const std::uint64_t file = std::uint64_t{machine.vector.registers} * sizes_.depth;
  if (std::uint64_t{next} + logits > file) {
    throw hw::InputError(fmt::format("vector.registers: found {}, expected at least {}",
                                     machine.vector.registers, (next + logits) / sizes_.depth));
  }
  if (machine.dfx.prefill == Prefill::kBatched) {
    const auto fitting = static_cast<std::uint32_t>((file - logits) / next);
    max_rows_ = std::min(fitting, machine.matrix.partial_sums);
  }
  registers_.logits = max_rows_ * next;
  registers_.winners = registers_.logits + own_logits;

  const std::uint32_t cores = machine.dfx.cores;
  const bool sums = machine.ring.collective == Collective::kAllReduce;
  const std::uint32_t slices = sizes_.width / sizes_.columns;
  exchanges_.resize(kExchanges);
  exchanges_[kAttended] = {registers_.attended, bounds(shape.encoder.heads, cores, sizes_.head),
                           false};
  exchanges_[kProjected] = {registers_.projected, bounds(slices, cores, sizes_.columns), sums};
  exchanges_[kHidden] = {registers_.hidden,
                         bounds(sizes_.hidden / sizes_.columns, cores, sizes_.columns), false};
  exchanges_[kOutput] = exchanges_[kProjected];
}

std::uint32_t PassMaker::register_elements() const {
  return registers_.winners + machine_.dfx.cores * sizes_.depth;
}

}  // namespace systole::mapper::dfx

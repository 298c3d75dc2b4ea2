#pragma once

#include <algorithm>
#include <cstdint>

#include "hw/core/bank_words.h"
#include "hw/machine/machine.h"
#include "hw/postop/store_set_up.h"

namespace systole::test {

/// Cycles that a store or move of rows of `cols` sums takes beyond those of its chain, if it starts
/// when it is dispatched, as the first of its core.
inline std::uint64_t set_up_alone(const hw::Machine& machine, const hw::Chain& chain,
                                  std::uint64_t cols) {
  hw::StoreSetUp set_up;
  const hw::StoreSetUp::Command command = hw::set_up_command(
      chain, cols, machine.result_lanes(), hw::scratchpad_word_bytes(machine), 0, 0, 0);
  const std::uint64_t first = set_up.begin(command, 1 + command.parameter_words);
  const std::uint64_t lead = hw::chain_cycles(chain, 1, cols, machine.result_lanes()).lead;
  return std::max(first, lead) - lead;
}

}  // namespace systole::test

#pragma once

#include <cstdint>
#include <vector>

#include "hw/ring/instruction.h"

/// What the cores do for one token, or for several of a prompt at once.
namespace systole::hw::dfx {

/// A vector that the cores put together: core i has the elements [first[i], first[i + 1]). When
/// sums are exchanged, every core has a part of each.
struct Exchange {
  std::uint32_t base = 0;  ///< register element
  std::vector<std::uint32_t> first;
  bool sums = false;
};

/// Instructions of one core, in order.
struct Pass {
  std::vector<Instruction> instructions;
  std::vector<Exchange> exchanges;  ///< the same places on every core
};

}  // namespace systole::hw::dfx

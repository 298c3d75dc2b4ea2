#pragma once

#include <algorithm>

#include "support/random/random_machine.h"

namespace systole::test {

/// A random machine with attention engines; small buffers.
inline hw::Machine random_engines(Random& random) {
  for (;;) {
    hw::Machine machine = random_machine(random);
    machine.postop.max_stages = std::max(machine.postop.max_stages, 2U);  // divide, requantise
    const std::uint32_t macs = machine.array.rows * machine.array.cols;
    hw::Machine::Attention& attention = machine.attention;
    attention.macs_per_line = std::min(power_of_two(random, 0, 6), macs / 2);
    attention.lines = macs / attention.macs_per_line;
    attention.mapping =
        random() % 4 == 0 ? hw::SparserMapping::kBroadcast : hw::SparserMapping::kColumnPerLine;
    attention.order = random() % 3 == 0 ? hw::AttentionOrder::kHead : hw::AttentionOrder::kPhase;
    attention.decoder_lines = random() % 3 == 0 ? 0 : between(random, 1, 40);
    attention.line_rows = between(random, 1, 8);
    attention.softmax_lanes = between(random, 1, 64);
    attention.dividers = between(random, 1, 16);
    for (std::uint32_t* kib :
         {&attention.query_kib, &attention.key_kib, &attention.value_kib, &attention.index_kib}) {
      *kib = random() % 2 == 0 ? 1 : between(random, 1, 12);
    }
    attention.banks = power_of_two(random, 0, 8);
    attention.ports = between(random, 1, 4);
    if (hw::machine_problems(machine).empty()) return machine;
  }
}

}  // namespace systole::test

#pragma once

#include <array>
#include <utility>

#include "hw/machine/machine.h"
#include "hw/silicon/sram.h"

/// What the blocks of a machine take at 45 nm: cells and memories, without wires between them.
/// House models, class *estimate*: see docs/energy.md.
namespace systole::hw {

/// Check bits included.
[[nodiscard]] SramSize scratchpad_size(const Machine& machine);
[[nodiscard]] SramSize accumulator_size(const Machine& machine);
[[nodiscard]] SramSize l2_size(const Machine& machine);
/// Of a streaming core: a tile of them (hw/stream/stream_core.h).
[[nodiscard]] SramSize partial_sums_size(const Machine& machine);

/// Square millimetres by block. Zero: the machine has no such block.
struct AreaReport {
  double array = 0, scratchpad = 0, accumulator = 0, postop = 0, preop = 0, attention = 0,
         stream = 0, l2 = 0, rest = 0;
  double memory = 0;  ///< of these, in SRAM

  [[nodiscard]] double total() const {
    return array + scratchpad + accumulator + postop + preop + attention + stream + l2 + rest;
  }
  /// By the names that reports use, in order.
  [[nodiscard]] std::array<std::pair<const char*, double>, 9> parts() const {
    return {{{"array", array},
             {"scratchpad", scratchpad},
             {"accumulator", accumulator},
             {"postop", postop},
             {"preop", preop},
             {"attention", attention},
             {"stream", stream},
             {"l2", l2},
             {"rest", rest}}};
  }
};

/// Of the core and an L2 cache. Host, DRAM and its controller are not in it, nor are the cores of a
/// ring, which are FPGAs: such a machine has none.
[[nodiscard]] AreaReport area_of(const Machine& machine);

}  // namespace systole::hw

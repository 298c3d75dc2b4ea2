#pragma once

#include <string_view>

#include "analysis/operator_cost.h"
#include "hw/machine/machine.h"

namespace systole::analysis {

/// What a machine can do at most, per cycle of the core.
struct Roofline {
  double macs = 0;            ///< of the array, by int8 weights
  double int4_macs = 0;       ///< by int4 weights; 0: its multipliers do not split
  double int4_int4_macs = 0;  ///< of int4 activations by them; 0: they do not split for these
  double dram_bytes = 0;      ///< of main memory: all channels of a DRAM together, either direction
  double bus_bytes = 0;       ///< of each direction
  /// What the outstanding requests of a DMA port cover on an idle memory, however wide the bus.
  double read_bytes = 0, write_bytes = 0;
  double elements = 0;  ///< of the post-op unit, in a pass

  /// The narrowest way of a byte between memory and core.
  [[nodiscard]] double memory_bytes() const;
  /// MACs per byte at which array and memory take equally long.
  [[nodiscard]] double ridge() const { return macs / memory_bytes(); }
};
[[nodiscard]] Roofline roofline_of(const hw::Machine& machine);

/// What bounds an operator.
enum class Resource { kArray, kMemory, kPostop, kHost };
/// "array", "memory", "post-op", "host".
[[nodiscard]] std::string_view name_of(Resource resource);

/// Cycles that an operator takes at least, by resource, and of the slowest.
struct Bound {
  double array = 0, memory = 0, postop = 0;
  double host = 0;  ///< computing and waiting for its lines: of what no unit of the core does

  [[nodiscard]] Resource resource() const;
  [[nodiscard]] double cycles() const;
};
[[nodiscard]] Bound bound_of(const OperatorCost& cost, const Roofline& roofline);

}  // namespace systole::analysis

#pragma once

#include <cstddef>
#include <cstdint>

#include "hw/machine/machine.h"
#include "model/mask/attention_mask.h"

namespace systole::testbench {

/// SDDMM cycles of all heads one after the other, before any stall, by how the lines share the
/// work: the cycle contract of hw/attention/timing/attention_cycles.h.
struct LineMappingCycles {
  double ideal = 0;             ///< kept cells x features / MACs
  std::uint64_t packed = 0;     ///< dense block in full; the rest on lines that never wait
  std::uint64_t per_line = 0;   ///< published threshold, one column of keys per line
  std::uint64_t broadcast = 0;  ///< published threshold, one column on all sparse lines
  std::uint64_t best = 0;       ///< per line, global columns chosen by cycles
  std::uint64_t unordered = 0;  ///< no global columns, one column per line
  std::uint64_t unordered_broadcast = 0;  ///< no global columns, one column on all lines
};

[[nodiscard]] LineMappingCycles line_mapping_cycles(const model::AttentionMask& mask,
                                                    std::size_t dim,
                                                    const hw::Machine::Attention& attention);

}  // namespace systole::testbench

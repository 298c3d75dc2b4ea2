#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"

namespace systole::hw {

/// The keys of a head that its dense block takes.
struct GlobalColumns {
  std::vector<std::uint16_t> keys;  ///< ascending
  std::uint64_t sddmm_cycles = 0;   ///< of the head split in this way
};

/// The number of global columns with the fewest SDDMM cycles, the least of equals. Candidates are
/// the G columns with the most kept cells (the lower key of equals), G from 0 to all: so a
/// threshold on the kept cells is among them, as is no reordering at all, and none of these is
/// faster.
///
/// `column_kept`: [keys] kept cells of each key's column, each at most `queries`; `dim`: features
/// of Q and K. Throws std::invalid_argument for more than kMaxSparseTokens keys or queries, and as
/// sddmm_cycles() does.
[[nodiscard]] GlobalColumns best_global_columns(const std::vector<std::uint32_t>& column_kept,
                                                std::size_t queries, std::size_t dim,
                                                const Machine::Attention& array);

}  // namespace systole::hw

#pragma once

#include <cstdint>

#include "hw/machine/machine.h"

namespace systole::hw {

/// Throws std::invalid_argument for engines that cannot work: fewer than 2 lines, 1 MAC, softmax
/// lane, line row or port, or banks that are not a power of two in number. A machine that was read
/// from a file has passed its own rules; this is for callers that fill in the fields, of which the
/// number of lines is 0 by default.
void check_attention(const Machine::Attention& array);

/// Lines of the array by engine.
struct LineSplit {
  std::uint32_t dense = 0;
  std::uint32_t sparse = 0;
};

/// Divides `lines` in proportion to the cells of the engines: round(lines * dense / (dense +
/// sparse)), half up, for the denser engine, but at least one line for each that has work. Without
/// dense cells all lines belong to the sparser engine.
[[nodiscard]] LineSplit split_lines(std::uint32_t lines, std::uint64_t dense_cells,
                                    std::uint64_t sparse_cells);

}  // namespace systole::hw

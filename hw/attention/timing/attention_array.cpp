#include "hw/attention/timing/attention_array.h"

#include <algorithm>
#include <stdexcept>

namespace systole::hw {

void check_attention(const Machine::Attention& array) {
  if (array.lines < 2) throw std::invalid_argument("attention array: expected at least 2 lines");
  if (array.macs_per_line < 1 || array.softmax_lanes < 1) {
    throw std::invalid_argument("attention array: expected at least 1 MAC and 1 softmax lane");
  }
  if (array.line_rows < 1 || array.ports < 1) {
    throw std::invalid_argument("attention array: expected at least 1 line row and 1 port");
  }
  if (array.banks < 1 || (array.banks & (array.banks - 1)) != 0) {
    throw std::invalid_argument("attention array: expected a power of two of banks");
  }
}

LineSplit split_lines(std::uint32_t lines, std::uint64_t dense_cells, std::uint64_t sparse_cells) {
  if (dense_cells == 0) return {0, lines};
  if (sparse_cells == 0) return {lines, 0};
  const std::uint64_t cells = dense_cells + sparse_cells;
  const std::uint64_t share = (std::uint64_t{2} * lines * dense_cells + cells) / (2 * cells);
  const auto dense = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(share, 1, lines - 1));
  return {dense, lines - dense};
}

}  // namespace systole::hw

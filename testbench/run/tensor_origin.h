#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/graph/graph.h"

namespace systole::testbench {

/// Where the values of a tensor are in the tensor of another graph.
struct TensorOrigin {
  model::TensorId whole = model::kNoTensor;
  std::vector<std::uint32_t> columns;  ///< of that one, by column; empty: the same
  std::uint32_t whole_cols = 0;        ///< of that one, where `columns` are given
  std::uint32_t element = 1;           ///< bytes

  /// Where byte `at` of this tensor, its rows one after another, is in that one.
  [[nodiscard]] std::size_t place_of(std::size_t at) const {
    if (columns.empty()) return at;
    const std::size_t index = at / element;
    const std::size_t whole_index =
        index / columns.size() * whole_cols + columns[index % columns.size()];
    return whole_index * element + at % element;
  }
};

}  // namespace systole::testbench

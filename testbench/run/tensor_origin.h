#pragma once

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
};

}  // namespace systole::testbench

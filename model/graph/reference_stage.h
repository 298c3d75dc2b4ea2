#pragma once

#include <cstdint>
#include <vector>

#include "model/graph/graph.h"

namespace systole::model {

/// One row of a stage's operands; every vector has one entry per column unless it is empty.
struct StageRow {
  std::vector<std::int32_t> in;
  std::vector<std::int32_t> tensor;       ///< of a tensor operand
  std::vector<std::uint32_t> statistics;  ///< what the stage reads, replaced by what it leaves
  std::size_t index = 0;                  ///< of the row in the node's input
  std::vector<std::int64_t> out;
};

/// Computes one row of a stage node, element by element with the scalar functions of hw/. Throws
/// std::invalid_argument if the node's parameters do not fill its columns.
void apply_stage_row(const Node& node, StageRow& row);

}  // namespace systole::model

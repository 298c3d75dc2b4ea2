#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/graph/graph.h"
#include "testbench/cores/core_plan.h"

namespace systole::testbench {

/// Columns of a tensor.
struct Columns {
  std::uint32_t begin = 0, end = 0;
};

/// A part of a network between two exchanges, as one core computes it.
struct ColumnPart {
  std::shared_ptr<model::Graph> graph;
  std::vector<TensorOrigin> origins;  ///< by tensor of `graph`
  struct Exchanged {
    model::TensorId here, whole;  ///< of this graph, and of the whole one
    bool written;                 ///< in this part; else read
    bool own;                     ///< each core has its own copy, of all columns
  };
  std::vector<Exchanged> exchanged;
  bool reads_input = false;
  std::vector<Columns> output;  ///< of the network's output: written here
};

/// The parts of a graph by segment and core; a core without work in a segment has null there.
/// Throws InputError if the graph cannot be divided.
[[nodiscard]] std::vector<std::vector<std::unique_ptr<ColumnPart>>> column_parts(
    const model::Graph& graph, std::size_t cores);

}  // namespace systole::testbench

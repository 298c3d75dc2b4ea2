#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/graph/graph.h"

/// Graphs of integer networks without parts of them: heads, neurons, tokens.
namespace systole::model {

/// By column: whether it is gone.
using GoneColumns = std::vector<bool>;

/// The graph without columns of activations, as if these were zero, and without all that only they
/// need: the rows and columns of weights, other columns, operators, tensors. What is left keeps its
/// names and order. Throws std::invalid_argument where a column goes that cannot go alone: a part
/// of a row that is normalised, of a residual stream, of queries or keys, or the network's input or
/// output.
[[nodiscard]] Graph without_columns(const Graph& graph,
                                    const std::map<TensorId, GoneColumns>& columns);

/// The graph in which the operators from number `first` on work on the first `kept` of `tokens`
/// rows alone, keys and values included. Throws std::invalid_argument for operators that have a
/// mask of tokens.
[[nodiscard]] Graph with_fewer_tokens(const Graph& graph, std::size_t first, std::uint32_t tokens,
                                      std::uint32_t kept);

}  // namespace systole::model

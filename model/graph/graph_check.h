#pragma once

#include <vector>

#include "model/graph/graph.h"

namespace systole::model {

/// Every tensor a node reads or writes.
[[nodiscard]] std::vector<TensorId> tensors_of(const Node& node);

/// Throws std::invalid_argument that names the node or tensor: a view outside its tensor, shapes
/// that do not fit together, element types that the array cannot take, a missing operand, a result
/// that is a constant or lies over other elements of what its operator reads; row statistics that
/// are missing, not used, of another size than [rows x words] or values of something else too; data
/// of another size than the tensor, a name used twice.
void check_graph(const Graph& graph);

}  // namespace systole::model

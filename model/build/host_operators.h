#pragma once

#include "hw/machine/machine.h"
#include "model/graph/graph.h"

namespace systole::model {

/// The graph as a machine whose host has float operators (host.operators = "float") runs it: the
/// core keeps matmuls, bias, requantisation, ReLU and clamps, the host gets
///
/// - softmax: of the scores as they leave the array, s32. Probabilities of a deferred softmax come
///   in steps of 1/256, others as the stage gives them.
/// - divide_row_sum: none. The probabilities are normalised, the product with V is the mean.
/// - gelu: codes of the stage's input and output, 8 bits.
/// - layer_norm: gamma and beta as the stage's multipliers and addends encode them.
/// - add_tensor: both operands and, where a clamp alone reads the sum, the clamped result.
///
/// Operands keep their type: what a matmul leaves is requantised on the core where the network says
/// so, else int32. Real values are those of the tensors' scales; where a tensor has none, one step
/// is 1, which is right for all but GELU. Throws std::invalid_argument for a GELU without scales.
[[nodiscard]] Graph with_host_operators(Graph graph);

/// with_host_operators() if the machine wants it, else the graph itself. Nothing else divides the
/// work between core and host: stages that a graph keeps run on the core of any machine.
[[nodiscard]] Graph for_machine(Graph graph, const hw::Machine& machine);

/// Whether the host of a machine with float operators does this stage.
[[nodiscard]] bool is_host_stage(const hw::Stage& stage);

}  // namespace systole::model

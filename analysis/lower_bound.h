#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/roofline.h"
#include "hw/machine.h"
#include "model/graph.h"

/// What no mapping of a network can beat on a machine: array, memory and post-op unit, each as if
/// the others cost nothing.
///
/// Assumptions. (1) Operators run in the order of the graph: the array finishes one before it
/// begins the next. The attention of a layer is one operator, its heads may interleave. (2) What
/// one operator leaves on chip, or has loaded for it while another runs, fits scratchpad and
/// accumulator together. (3) Partial sums reside in the accumulator only: a product has a loop nest
/// of tiles (Orojenesis: Huang et al., ISCA 2024), with tiles of any size, not multiples of the
/// array's, and without double buffers. (4) Stages of a chain share one pass. (5) Tensor operands
/// of chains come from memory, as the hardware's operand ports do; so what they name has been
/// written there. (6) An L2 cache holds everything: DRAM does not limit a machine that has one. (7)
/// Commands, row misses, refresh and bus turnarounds cost nothing.
namespace systole::analysis {

/// An operator: a product with weights and the stages after it, the attention of a layer, a
/// function of the host, or stages before the first of these.
struct OperatorBound {
  std::string name;           ///< of its first node
  double array = 0;           ///< cycles of the core
  double postop = 0;          ///< cycles
  double host = 0;            ///< cycles during which nothing else runs
  double loaded = 0;          ///< bytes, by the load unit
  double operands = 0;        ///< bytes of tensor operands, by the store unit
  double written = 0;         ///< bytes
  std::uint64_t results = 0;  ///< sums that pass through the accumulator
};

struct LowerBound {
  std::vector<OperatorBound> operators;
  Bound total;          ///< each resource alone, over all operators
  double in_order = 0;  ///< operators one after the other, each limited by its slowest resource
  /// Least cycles of an inference, from start to completion.
  [[nodiscard]] double cycles() const;
};

/// Of one inference. Exact for whole networks on the tile machine; on attention engines the
/// attention counts nothing, which keeps it a bound.
[[nodiscard]] LowerBound lower_bound(const model::Graph& graph, const hw::Machine& machine);

/// Least elements of A and B, a byte each, that a product of m x k by k x n brings on chip, over
/// all tilings: C tiles of at most `sums` elements, `operand_bytes` for parts of A and B that stay
/// over the loops which do not index them. At least m k + k n. Falls with both sizes.
[[nodiscard]] double least_operand_bytes(std::uint64_t m, std::uint64_t n, std::uint64_t k,
                                         std::uint64_t sums, std::uint64_t operand_bytes);

}  // namespace systole::analysis

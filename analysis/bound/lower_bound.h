#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/roofline.h"
#include "hw/machine/machine.h"
#include "model/graph/graph.h"

/// What no mapping of a network can beat on a machine: array, memory and post-op unit, each as if
/// the others cost nothing, and the latency of what depends on each other.
///
/// Operators may run in any order that their data allow, tile by tile, so nothing is said of one
/// operator after the other but where every element of one needs all of another
/// (analysis/bound/least_path.h).
///
/// Assumptions. (1) Every operator is computed once and completely, masked scores too; a product
/// streams A past B as the graph has them. (2) Before an operator begins, no more than scratchpad
/// and accumulator hold has been loaded for it. (3) Partial sums reside in the accumulator only: a
/// product has a loop nest of tiles (Orojenesis: Huang et al., ISCA 2024), with tiles of any size,
/// not multiples of the array's, and without double buffers. All of scratchpad and accumulator are
/// its own. (4) What the core computes comes on chip once without memory; while all of B passes,
/// the scratchpad holds a row of A, or the accumulator its sums. (5) Stages of a chain share one
/// pass, but what leaves it in the middle takes a separate pass; a LayerNorm may be split in
/// sums of squares and the rest. (6) Tensor operands of chains come from memory, as the hardware's
/// operand ports do; so what they name has been written there. A chain has one result: where a
/// tensor leaves for memory and a norm or a product reads it too, a second chain or a load reads
/// it again, or the tensor operands that were added to sums which are still there. Inputs of the
/// network that stages read come from memory. (7) An L2 cache holds everything: DRAM does not limit
/// a machine that has one. (8) Row misses, bus turnarounds, bank conflicts and commands beyond the
/// first cost nothing.
namespace systole::analysis {

/// An operator: a product with weights and the stages after it, the attention of a layer, a
/// function of the host, or stages before the first of these.
struct OperatorBound {
  std::string name;     ///< of its first node
  double array = 0;     ///< cycles of the core
  double postop = 0;    ///< cycles
  double host = 0;      ///< cycles during which nothing else runs
  double loaded = 0;    ///< bytes, by the load unit
  double operands = 0;  ///< bytes of tensor operands, by the store unit
  double either = 0;    ///< bytes that chains read beyond these, by either unit
  double written = 0;   ///< bytes
};

struct LowerBound {
  std::vector<OperatorBound> operators;
  Bound total;         ///< each resource alone, over all operators
  double latency = 0;  ///< along what depends on each other (analysis/bound/least_path.h)
  /// Least cycles of an inference, from start to completion: the largest, and those of the host.
  [[nodiscard]] double cycles() const;
  /// "array", "memory", "post-op", "latency" or "host": the largest.
  [[nodiscard]] std::string_view bound_by() const;
};

/// Of one inference. Exact for whole networks on the tile machine; on attention engines the
/// attention counts nothing and there is no latency, which keeps it a bound.
[[nodiscard]] LowerBound lower_bound(const model::Graph& graph, const hw::Machine& machine);

/// Least elements of A and B, a byte each, that a product of m x k by k x n brings on chip, over
/// all tilings: C tiles of at most `sums` elements, `operand_bytes` for parts of A and B that stay
/// over the loops which do not index them. At least m k + k n. Falls with both sizes.
[[nodiscard]] double least_operand_bytes(std::uint64_t m, std::uint64_t n, std::uint64_t k,
                                         std::uint64_t sums, std::uint64_t operand_bytes);

}  // namespace systole::analysis

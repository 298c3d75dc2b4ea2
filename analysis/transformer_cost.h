#pragma once

#include <cstdint>
#include <vector>

#include "analysis/operator_cost.h"
#include "model/metadata/vit_shape.h"

/// FLOPs and memory operations of Transformer networks by shape, as the survey counts them ("Full
/// Stack Optimization of Transformer Inference", arXiv 2302.14017, Sec. 2.1 and 3.3): elements of
/// one byte, multiplication and addition apart, no fusion, so that every operator reads its inputs
/// from memory and writes its result there.
///
/// A product with weights has as many additions as multiplications, the bias being one of them. A
/// product of two activations has none: one addition less for each result.
namespace systole::analysis {

/// An encoder working on `length` tokens at once.
struct EncoderWorkload {
  model::EncoderShape shape;
  std::uint32_t length = 0;  ///< tokens, 1 or more
  /// How many of the four d x d projections have their MACs and weights counted, 3 or 4. The
  /// survey's curves of BERT-Large have 3, the activations of the fourth included.
  std::uint32_t projections = 4;
};

/// Fitted, and exact to the digits that Tab. 3, 10 and 11 print: what LayerNorm, GELU, residual
/// additions and biases of a layer take together, per element of the residual stream. The survey
/// does not say how it counts them. They hold for hidden = 4 x width.
inline constexpr double kOtherFlopsPerElement = 58;
inline constexpr double kOtherBytesPerElement = 17;
/// The same of a decoder that reads its parameters again for every token.
inline constexpr double kDecodeOtherBytesPerElement = 22;

/// Every operand is moved once: all of a product fits on chip (Tab. 3 and 10).
[[nodiscard]] std::vector<OperatorCost> ideal_costs(const EncoderWorkload& workload);

/// What fits on chip in the survey's performance model (Sec. 3.3).
struct TileLimits {
  double l2_bytes = 2.0 * 1024 * 1024;
  std::uint32_t array_width = 16;  ///< columns of the operands' slices beside a tile of results
  /// Rows of a tile. Tab. 5 gives it away: any number from 1024 to 1365 prints the same.
  std::uint32_t rows = 1024;
  /// Columns of a tile of int32 results that the L2 holds beside double-buffered slices.
  [[nodiscard]] std::uint32_t cols() const;
};

/// Products in tiles that fit `limits` (Tab. 5): an operand is read again for every tile of the
/// dimension that it does not have. Sums leave in four bytes where a nonlinear operator follows,
/// which reads four and writes one; the survey's own figures have one byte for the results of the
/// MLP's second product.
[[nodiscard]] std::vector<OperatorCost> tiled_costs(const EncoderWorkload& workload,
                                                    const TileLimits& limits);

/// A decoder that generates `length` tokens one by one with a key-value cache and no prompt, its
/// mean context being length / 2 tokens (Tab. 11).
[[nodiscard]] std::vector<OperatorCost> decode_costs(const model::EncoderShape& shape,
                                                     std::uint32_t length);

}  // namespace systole::analysis

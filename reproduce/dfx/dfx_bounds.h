#pragma once

#include <cstdint>

#include "hw/machine/machine.h"
#include "model/checkpoint/text_checkpoint.h"

/// What follows from the sizes of a network and of a machine with cores for text generation,
/// without simulating it.
namespace systole::testbench {

/// Bytes of the weights of layers and output vocabulary, in all cores' memories.
[[nodiscard]] double weight_bytes(const model::TextShape& shape, const hw::Machine& machine);
/// Bytes of the keys and values of one token, of all layers.
[[nodiscard]] double cache_bytes(const model::TextShape& shape);
/// What all cores' HBM needs at least for a token with `context` tokens in the caches, if it is
/// shared evenly: ms at `gbyte_per_s` a core.
[[nodiscard]] double hbm_milliseconds(const model::TextShape& shape, const hw::Machine& machine,
                                      std::uint32_t context, double gbyte_per_s);
/// What a core can take from its HBM, GB/s.
[[nodiscard]] double port_gbyte_per_s(const hw::Machine& machine);
/// What the data buses of a core's HBM carry, GB/s.
[[nodiscard]] double bus_gbyte_per_s(const hw::Machine& machine);

/// Cycles of a token's products on the core that has most of them, a tile in a cycle; attention's
/// own products are not in it.
struct MatrixCycles {
  std::uint64_t projection;  ///< query, and as many each for key and value
  std::uint64_t hidden;      ///< the first product of the FFN
  std::uint64_t layer, lm_head, total;
};
[[nodiscard]] MatrixCycles matrix_cycles(const model::TextShape& shape, const hw::Machine& machine);

/// The larger of both bounds of a token, ms: weights at the port's rate, and products.
[[nodiscard]] double bound_milliseconds(const model::TextShape& shape, const hw::Machine& machine,
                                        std::uint32_t context);

/// What a layer's four exchanges take at least in a ring of `cores`, us: each core's part goes
/// around one way, or half of the parts each way (of two cores half of each part).
[[nodiscard]] double ring_microseconds(const model::TextShape& shape, const hw::Machine& machine,
                                       std::uint32_t cores, bool both_ways, double hop_us);

/// Operations of a layer with `context` tokens in its caches; a multiply-accumulate is two.
struct LayerOperations {
  double norm, attention, residual, feed_forward;
  [[nodiscard]] double all() const { return norm + attention + residual + feed_forward; }
};
[[nodiscard]] LayerOperations layer_operations(const model::TextShape& shape,
                                               std::uint32_t context);

}  // namespace systole::testbench

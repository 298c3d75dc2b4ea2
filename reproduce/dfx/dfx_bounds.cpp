/// What follows from sizes, without simulating it.

#include <algorithm>

#include "mapper/ring/layout.h"
#include "reproduce/dfx/dfx.h"

namespace systole::testbench {
namespace {

constexpr double kHalfBytes = 2.0;
constexpr double kMsPerS = 1e3;

std::uint64_t tiles(const hw::dfx::MatrixOperand& matrix) {
  return std::uint64_t{matrix.k_tiles} * matrix.slices;
}

}  // namespace

double weight_bytes(const model::TextShape& shape, const hw::Machine& machine) {
  double bytes = 0;
  for (std::uint32_t core = 0; core < machine.dfx.cores; ++core) {
    bytes += static_cast<double>(mapper::dfx::lay_out(shape, machine, core).hbm.weight_bytes);
  }
  return bytes;
}

double cache_bytes(const model::TextShape& shape) {
  return 2.0 * shape.encoder.layers * shape.encoder.width * kHalfBytes;
}

double hbm_milliseconds(const model::TextShape& shape, const hw::Machine& machine,
                        std::uint32_t context, double gbyte_per_s) {
  const double bytes = weight_bytes(shape, machine) + context * cache_bytes(shape);
  return bytes / (gbyte_per_s * 1e9 * machine.dfx.cores) * kMsPerS;
}

double port_gbyte_per_s(const hw::Machine& machine) {
  return 1e-3 * machine.hbm.channels * machine.hbm.port_bytes * machine.core.clock_mhz;
}

double bus_gbyte_per_s(const hw::Machine& machine) {
  return 1e-3 * machine.hbm.channels * machine.hbm.bus_bytes * machine.hbm.mega_transfers;
}

MatrixCycles matrix_cycles(const model::TextShape& shape, const hw::Machine& machine) {
  MatrixCycles most{};
  for (std::uint32_t core = 0; core < machine.dfx.cores; ++core) {
    const mapper::dfx::HbmLayout hbm = mapper::dfx::lay_out(shape, machine, core).hbm;
    const mapper::dfx::HbmLayout::Layer& layer = hbm.layers.front();
    MatrixCycles cycles{};
    cycles.projection = tiles(layer.query);
    cycles.hidden = tiles(layer.hidden);
    cycles.layer = tiles(layer.value) + tiles(layer.key) + cycles.projection +
                   tiles(layer.projection) + cycles.hidden + tiles(layer.output);
    cycles.lm_head = tiles(hbm.lm_head);
    cycles.total = shape.encoder.layers * cycles.layer + cycles.lm_head;
    if (cycles.total > most.total) most = cycles;
  }
  return most;
}

double bound_milliseconds(const model::TextShape& shape, const hw::Machine& machine,
                          std::uint32_t context) {
  const double products = static_cast<double>(matrix_cycles(shape, machine).total) /
                          (machine.core.clock_mhz * 1e6) * kMsPerS;
  const double gbyte_per_s = std::min(port_gbyte_per_s(machine), bus_gbyte_per_s(machine));
  return std::max(products, hbm_milliseconds(shape, machine, context, gbyte_per_s));
}

double ring_microseconds(const model::TextShape& shape, const hw::Machine& machine, bool both_ways,
                         double hop_us) {
  const std::uint32_t cores = machine.dfx.cores;
  // Three exchanges of the width, one of the FFN's.
  const double part = (3.0 * shape.encoder.width + shape.encoder.hidden) * kHalfBytes / cores;
  const double bytes_per_us = 1e3 / 8.0 * machine.ring.gbit_per_s * machine.ring.coding;
  const std::uint32_t hops = both_ways ? cores / 2 : cores - 1;
  const double parts = both_ways && cores == 2 ? 0.5 : hops;
  return parts * part / bytes_per_us + 4.0 * hops * hop_us;
}

LayerOperations layer_operations(const model::TextShape& shape, std::uint32_t context) {
  const double width = shape.encoder.width, hidden = shape.encoder.hidden;
  const double scores = double{1} * shape.encoder.heads * context;
  LayerOperations operations{};
  // Two: mean, subtract, scale, square, sum, normalise, gamma, beta.
  operations.norm = 2 * 8 * width;
  // Four products with biases; scores and their sums with V; scale, maximum, subtract, exp, sum and
  // divide of each score.
  operations.attention = 4 * (2 * width + 1) * width + 2 * 2 * context * width + 6 * scores;
  operations.residual = 2 * width;
  // Biases, and a multiply and an add of each GELU.
  operations.feed_forward = 2 * 2 * width * hidden + hidden + width + 2 * hidden;
  return operations;
}

}  // namespace systole::testbench

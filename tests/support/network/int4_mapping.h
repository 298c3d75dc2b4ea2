#pragma once

#include <cstdint>

#include "hw/number/int4.h"
#include "hw/program/program.h"
#include "mapper/mapping.h"
#include "model/graph/graph.h"

/// Graphs with operands of int4, and what mappings make of them.
namespace systole::test {

/// Every weight of a product from -8 to 7.
inline model::Graph with_int4(model::Graph graph) {
  for (const model::Node& node : graph.nodes) {
    if (node.product() == nullptr) continue;
    model::Tensor& b = graph.tensors[node.product()->b.tensor];
    if (b.kind != model::Tensor::Kind::kConstant) continue;
    b.int4 = true;
    for (std::uint8_t& weight : b.data.edit()) {
      weight = static_cast<std::uint8_t>(static_cast<std::int8_t>(weight) / 16);
    }
  }
  return graph;
}

/// Bytes that loads without a window read, MACs by int4 weights, those of int4 activations, and
/// bytes that results take in memory or scratchpad.
struct WidthBytes {
  std::uint64_t loaded = 0, int4_macs = 0, int4_int4_macs = 0, int4_results = 0;
};
inline WidthBytes int4_bytes(const mapper::Mapping& mapping) {
  WidthBytes sum;
  for (const hw::Command& command : mapping.program.commands) {
    if (const auto* const load = command.as<hw::cmd::Load>()) {
      const hw::ReadRows read = hw::read_rows(*load);
      sum.loaded += load->window ? 0 : read.rows * read.bytes;
    } else if (const auto* const matmul = command.as<hw::cmd::Matmul>()) {
      const std::uint64_t macs = std::uint64_t{matmul->m} * matmul->n * matmul->k;
      if (matmul->b_int4) sum.int4_macs += macs;
      if (matmul->a_int4) sum.int4_int4_macs += macs;
    } else if (const auto* const result = command.as<hw::cmd::Result>()) {
      if (result->int4) sum.int4_results += std::uint64_t{result->m} * hw::int4_pairs(result->n);
    }
  }
  return sum;
}

inline std::uint64_t tiling_cycles(const mapper::Mapping& mapping) {
  std::uint64_t sum = 0;
  for (const mapper::Tiling& tiling : mapping.tilings) sum += tiling.cycles;
  return sum;
}

}  // namespace systole::test

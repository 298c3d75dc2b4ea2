#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/machine/machine.h"
#include "model/mask/attention_mask.h"
#include "model/mask/global_columns.h"
#include "support/random/random_machine.h"
#include "support/tlm/fresh_kernel.h"
#include "testbench/attention/attention_simulation.h"
#include "testbench/attention/attention_workload.h"

/// Runs of the attention engines, one after the other in one process. The test is a SystemCTest.
namespace systole::test {

using Layers = std::vector<std::vector<hw::SparseHead>>;

inline testbench::AttentionResult run_attention(const testbench::AttentionWorkload& workload,
                                                const hw::Machine& machine, bool functional) {
  fresh_kernel();
  return testbench::simulate_attention(workload, machine, functional);
}

/// The same without values.
inline testbench::AttentionResult time_attention(const testbench::AttentionShape& shape,
                                                 const Layers& layers, const hw::Machine& machine) {
  return run_attention(testbench::make_attention_workload(shape, layers, machine, false), machine,
                       false);
}

/// Cycles of the engines: all heads, one after the other.
inline std::uint64_t engine_cycles(const testbench::AttentionResult& result) {
  std::uint64_t cycles = 0;
  for (const auto& head : result.heads) cycles += head.total();
  return cycles;
}

/// A mask like those of vision transformers: a column and a row of the class token, a few keys that
/// most queries attend to, a band along the diagonal that is as wide as the head wants, and cells
/// anywhere. Heads differ in all of it.
inline model::AttentionMask synthetic_mask(const model::AttentionShape& shape, std::uint64_t seed) {
  model::AttentionMask mask(shape);
  Random random(seed);
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const std::size_t width = random() % 6;
      std::vector<std::size_t> global{0};
      for (std::size_t i = random() % 12; i > 0; --i) global.push_back(random() % shape.keys);
      for (std::size_t q = 0; q < shape.queries; ++q) {
        for (std::size_t k = 0; k < shape.keys; ++k) {
          const std::size_t away = q > k ? q - k : k - q;
          if (q == 0 || away <= width || random() % 50 == 0) mask.keep(layer, head, q, k);
        }
        for (const std::size_t k : global) {
          if (k == 0 || random() % 4 != 0) mask.keep(layer, head, q, k);
        }
      }
    }
  }
  return mask;
}

inline testbench::AttentionShape shape_of(const model::AttentionMask& mask, std::size_t dim) {
  return {mask.shape().heads, mask.shape().queries, mask.shape().keys, dim};
}

/// All heads, split where the SDDMM has the fewest cycles.
inline Layers split_by_cycles(const model::AttentionMask& mask, std::size_t dim,
                              const hw::Machine& machine) {
  Layers layers(mask.shape().layers);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (std::size_t head = 0; head < mask.shape().heads; ++head) {
      layers[layer].push_back(
          model::split_by_cycles(mask.head(layer, head), dim, machine.attention));
    }
  }
  return layers;
}

/// Of all heads.
inline std::uint64_t sum(const testbench::AttentionResult& result,
                         std::uint64_t tlm_model::AttentionUnit::HeadCycles::*cycles) {
  return std::accumulate(
      result.heads.begin(), result.heads.end(), std::uint64_t{0},
      [&](std::uint64_t total, const auto& head) { return total + head.*cycles; });
}

}  // namespace systole::test

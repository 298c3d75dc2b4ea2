#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/graph/graph.h"

namespace systole::model {

/// A matrix product of a network, or `count` of the same shape, one per head.
struct ProductInfo {
  std::string name;
  std::uint32_t count = 1;
  std::uint32_t m = 0, k = 0, n = 0;  ///< [m x k] times [k x n]
  std::uint64_t macs = 0;             ///< of all `count`
  std::uint64_t weight_bytes = 0;     ///< 0 if both operands are activations
  std::uint64_t parameter_bytes = 0;  ///< bias and per-channel constants of its post-op stages
};

/// The range of an activation: its real values are scale times an integer of `type`.
struct ScaleInfo {
  std::string tensor;
  hw::DType type = hw::DType::kS8;
  std::uint32_t rows = 0, cols = 0;
  double scale = 0.0;
};

struct ModelInfo {
  std::vector<ProductInfo> products;  ///< in order of execution
  std::vector<ScaleInfo> scales;      ///< of the tensors that have one
  std::uint64_t macs = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t table_bytes = 0;      ///< constants that are no weights
  std::uint64_t parameter_bytes = 0;  ///< of all stages
  std::uint64_t stages = 0;           ///< post-op stages
};

[[nodiscard]] ModelInfo describe_graph(const Graph& graph);

}  // namespace systole::model

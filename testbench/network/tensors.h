#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/number/dtype.h"
#include "model/graph/elements.h"
#include "model/graph/graph.h"
#include "model/graph/graph_builder.h"

/// Small questions about a graph's tensors that every testbench asks.
namespace systole::testbench {

[[nodiscard]] inline model::TensorId only_tensor(const model::Graph& graph,
                                                 model::Tensor::Kind kind, const char* what) {
  model::TensorId found = model::kNoTensor;
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    if (graph.tensors[id].kind != kind) continue;
    if (found != model::kNoTensor)
      throw std::invalid_argument(std::string("more than one ") + what);
    found = static_cast<model::TensorId>(id);
  }
  if (found == model::kNoTensor) throw std::invalid_argument(std::string("no ") + what);
  return found;
}
[[nodiscard]] inline model::TensorId input_tensor(const model::Graph& graph) {
  return only_tensor(graph, model::Tensor::Kind::kInput, "input");
}
[[nodiscard]] inline model::TensorId output_tensor(const model::Graph& graph) {
  return only_tensor(graph, model::Tensor::Kind::kOutput, "output");
}

/// Throws InputError if an input of the network does not have `bytes` bytes.
inline void check_input_sizes(const std::vector<std::vector<std::uint8_t>>& inputs,
                              const std::string& network, std::size_t bytes) {
  for (const std::vector<std::uint8_t>& input : inputs) {
    if (input.size() == bytes) continue;
    throw hw::InputError("input of " + std::to_string(input.size()) + " bytes: " + network +
                         " takes " + std::to_string(bytes));
  }
}

/// Too large for plain loops in a test's patience.
[[nodiscard]] inline bool graph_is_large(const model::Graph& graph) {
  return model::count_macs(graph) > 100'000'000;
}

/// Little-endian elements as numbers.
[[nodiscard]] inline std::vector<std::int32_t> widen(const std::vector<std::uint8_t>& bytes,
                                                     hw::DType type) {
  std::vector<std::int32_t> values(bytes.size() / hw::bytes_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = model::load_element(bytes.data(), i, type);
  }
  return values;
}

}  // namespace systole::testbench

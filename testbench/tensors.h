#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "hw/dtype.h"
#include "model/graph.h"

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

[[nodiscard]] inline std::uint64_t macs_of(const model::Graph& graph) {
  std::uint64_t macs = 0;
  for (const model::Node& node : graph.nodes) {
    if (node.kind == model::Node::Kind::kMatmul) {
      macs += std::uint64_t{node.out.rows} * node.out.cols * node.in.cols;
    }
  }
  return macs;
}

/// Too large for plain loops in a test's patience.
[[nodiscard]] inline bool graph_is_large(const model::Graph& graph) {
  return macs_of(graph) > 100'000'000;
}

/// Little-endian elements as numbers.
[[nodiscard]] inline std::vector<std::int32_t> widen(const std::vector<std::uint8_t>& bytes,
                                                     hw::DType type) {
  std::vector<std::int32_t> values(bytes.size() / hw::bytes_of(type));
  const auto copy = [&](auto element) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::memcpy(&element, &bytes[i * sizeof element], sizeof element);
      values[i] = static_cast<std::int32_t>(element);
    }
  };
  switch (type) {
    case hw::DType::kS8:
      copy(std::int8_t{});
      break;
    case hw::DType::kU8:
      copy(std::uint8_t{});
      break;
    case hw::DType::kS16:
      copy(std::int16_t{});
      break;
    case hw::DType::kU16:
      copy(std::uint16_t{});
      break;
    case hw::DType::kS32:
      copy(std::int32_t{});
      break;
  }
  return values;
}

}  // namespace systole::testbench

#pragma once

#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/mapping.h"
#include "mapper/program_file.h"
#include "model/graph/graph.h"
#include "model/graph/reference.h"
#include "model/seeded/shapes.h"

/// What the examples run: a small encoder with seeded weights, mapped to a machine.
struct Encoder {
  static constexpr systole::model::EncoderShape kShape{2, 64, 2, 128};
  static constexpr std::uint32_t kTokens = 32;

  systole::model::Graph graph;
  systole::mapper::Mapping mapping;
  std::vector<std::uint8_t> input;     ///< bytes of the input tensor
  std::vector<std::uint8_t> expected;  ///< of the output tensor, by plain loops

  explicit Encoder(const systole::hw::Machine& machine)
      : graph(systole::model::make_seeded_encoder("encoder", kShape, kTokens, 1)),
        mapping(systole::mapper::map_graph(graph, machine)) {
    const std::vector<std::int32_t> values =
        systole::model::seeded_embedding(kShape, kTokens, 0, {});
    const std::size_t bytes = systole::hw::bytes_of(graph.tensors[tensor(Kind::kInput)].type);
    for (const std::int32_t value : values) {
      for (std::size_t i = 0; i < bytes; ++i) {
        input.push_back(static_cast<std::uint8_t>(static_cast<std::uint32_t>(value) >> 8 * i));
      }
    }
    systole::model::Reference reference(graph);
    reference.set_input(graph.tensors[tensor(Kind::kInput)].name, values);
    reference.run();
    expected = reference.bytes(tensor(Kind::kOutput));
  }

  /// Where input and output reside in memory.
  [[nodiscard]] systole::mapper::TensorPlace place_of_input() const {
    return systole::mapper::place_of(graph, mapping, tensor(Kind::kInput));
  }
  [[nodiscard]] systole::mapper::TensorPlace place_of_output() const {
    return systole::mapper::place_of(graph, mapping, tensor(Kind::kOutput));
  }

 private:
  using Kind = systole::model::Tensor::Kind;
  [[nodiscard]] systole::model::TensorId tensor(Kind kind) const {
    systole::model::TensorId id = 0;
    while (graph.tensors[id].kind != kind) ++id;
    return id;
  }
};

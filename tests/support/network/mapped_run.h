#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "mapper/group/memory_use.h"
#include "mapper/mapping.h"
#include "model/graph/elements.h"
#include "model/graph/reference.h"
#include "support/network/program_interpreter.h"
#include "support/random/random_graph.h"

namespace systole::test {

/// Seeded values for every input of a graph, by name.
inline std::map<std::string, std::vector<std::int32_t>> random_inputs(const model::Graph& graph,
                                                                      std::uint64_t seed) {
  Random random(seed);
  std::map<std::string, std::vector<std::int32_t>> inputs;
  for (const model::Tensor& tensor : graph.tensors) {
    if (tensor.kind != model::Tensor::Kind::kInput) continue;
    const std::size_t count = std::size_t{tensor.rows} * tensor.cols;
    const std::int32_t largest = hw::bytes_of(tensor.type) == 1 ? 127 : 8000;
    std::vector<std::int32_t> values = random_values(random, count, tensor.int4 ? 7 : largest);
    if (tensor.type == hw::DType::kU8) {
      for (std::int32_t& value : values) value += 128;
    }
    inputs[tensor.name] = std::move(values);
  }
  return inputs;
}

/// Whether an operator after number `op` writes over its result: the reference has the last one.
inline bool written_again(const model::Graph& graph, const mapper::Mapping& mapping,
                          std::uint32_t op) {
  for (std::size_t later = op + std::size_t{1}; later < mapping.groups.size(); ++later) {
    const mapper::MemoryUse use = mapper::memory_use(graph, mapping.groups[later]);
    if (mapper::meeting({mapping.groups[op].written()}, use.writes) != nullptr) return true;
  }
  return false;
}

/// Runs a mapped program in the interpreter and compares the result of every operator, as it is
/// when its last command is done, with the reference.
inline void expect_program_computes_graph(const model::Graph& graph, const hw::Machine& machine,
                                          const mapper::Mapping& mapping, std::uint64_t seed) {
  ProgramInterpreter interpreter(mapping.program, machine, mapping.dram_bytes);
  interpreter.load(mapping.image);
  model::Reference reference(graph);
  for (const auto& [name, values] : random_inputs(graph, seed)) {
    reference.set_input(name, values);
    const model::TensorId id = model::find_tensor(graph, name);
    const mapper::Location& location = mapping.tensors[id];
    ASSERT_EQ(location.place, mapper::Location::Place::kDram);
    const std::vector<std::uint8_t>& bytes = reference.bytes(id);
    const std::size_t row_bytes = bytes.size() / graph.tensors[id].rows;
    for (std::size_t row = 0; row < graph.tensors[id].rows; ++row) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(row * row_bytes);
      std::vector<std::uint8_t> stored(begin, begin + static_cast<std::ptrdiff_t>(row_bytes));
      if (location.int4) stored = ProgramInterpreter::in_pairs(stored);
      interpreter.dram.write(location.address + row * location.pitch, stored.data(), stored.size());
    }
  }
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const model::Tensor& tensor = graph.tensors[id];
    if (tensor.kind != model::Tensor::Kind::kState || !tensor.data.empty()) continue;
    // A state begins with zeros.
    const std::vector<std::uint8_t> zeros(tensor.bytes() / tensor.rows, 0);
    for (std::uint64_t row = 0; row < tensor.rows; ++row) {
      const mapper::Location& location = mapping.tensors[id];
      interpreter.dram.write(location.address + row * location.pitch, zeros.data(), zeros.size());
    }
  }
  reference.run();

  std::map<std::uint32_t, std::size_t> last;
  const auto& commands = mapping.program.commands;
  for (std::size_t i = 0; i + 1 < commands.size(); ++i) last[commands[i].op] = i;
  ASSERT_EQ(last.size(), mapping.program.operators.size()) << "an operator without commands";
  for (std::size_t i = 0; i < commands.size(); ++i) {
    interpreter.execute(commands[i]);
    if (i + 1 == commands.size() || last.at(commands[i].op) != i) continue;
    if (written_again(graph, mapping, commands[i].op)) continue;
    const hw::Operator& op = mapping.program.operators[commands[i].op];
    if (op.place == hw::Operator::Place::kRing) continue;  // its readers show whether it was right
    const model::View& view = mapping.groups[commands[i].op].written();
    const model::Tensor& tensor = graph.tensors[view.tensor];
    const std::size_t element = hw::bytes_of(op.type);
    const TrackedMemory& memory =
        op.place == hw::Operator::Place::kScratchpad ? interpreter.scratchpad : interpreter.dram;
    ASSERT_EQ(tensor.type, op.type);
    const std::uint32_t cols = op.section_cols(), sections = op.cols / cols;
    for (std::uint32_t place = 0; place < op.rows * sections; ++place) {
      const std::uint32_t row = place % op.rows, col = place / op.rows * cols;
      const std::size_t offset =
          (std::size_t{view.row + row} * tensor.cols + view.col + col) * element;
      const auto first = reference.bytes(view.tensor).begin() + static_cast<std::ptrdiff_t>(offset);
      std::vector<std::uint8_t> expected(first,
                                         first + static_cast<std::ptrdiff_t>(cols * element));
      if (op.int4) expected = ProgramInterpreter::in_pairs(expected);
      const std::uint8_t* found =
          memory.read(op.address + std::uint64_t{place} * op.pitch, expected.size());
      ASSERT_EQ(std::memcmp(found, expected.data(), expected.size()), 0)
          << op.name << ", row " << row;
    }
  }
}

}  // namespace systole::test

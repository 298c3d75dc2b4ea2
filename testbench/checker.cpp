#include "testbench/checker.h"

#include <algorithm>
#include <cstring>

#include "testbench/tensors.h"

namespace systole::testbench {

Checker::Checker(const model::Graph& graph, const mapper::Mapping& mapping,
                 tlm_model::System& system)
    : graph_(graph),
      mapping_(mapping),
      system_(system),
      reference_(graph, {graph_is_large(graph), false}) {}

void Checker::begin(const std::vector<std::uint8_t>& input) {
  const model::Tensor& tensor = graph_.tensors[input_tensor(graph_)];
  reference_.set_input(tensor.name, widen(input, tensor.type));
  reference_.run();
  ++inference_;
}

void Checker::on_operator(std::uint32_t op, [[maybe_unused]] std::uint64_t cycle) {
  const hw::Operator& result = mapping_.program.operators[op];
  const model::View& view = mapping_.groups[op].out;
  const model::Tensor& tensor = graph_.tensors[view.tensor];
  const std::size_t element = hw::bytes_of(result.type);
  const std::size_t row_bytes = result.cols * element;
  const std::vector<std::uint8_t>& expected = reference_.bytes(view.tensor);
  std::vector<std::uint8_t> found(row_bytes);
  for (std::uint32_t row = 0; row < result.rows; ++row) {
    const std::uint64_t at = result.address + std::uint64_t{row} * result.pitch;
    if (result.place == hw::Operator::Place::kScratchpad) {
      std::memcpy(found.data(), system_.core.memory.scratchpad.data() + at, row_bytes);
    } else {
      system_.peek(at, found.data(), row_bytes);
    }
    const std::size_t offset = (std::size_t{view.row + row} * tensor.cols + view.col) * element;
    compare(op, row, found.data(), &expected[offset], row_bytes);
  }
  ++result_.operators;
}

void Checker::compare(std::uint32_t op, std::uint32_t row, const std::uint8_t* found,
                      const std::uint8_t* expected, std::size_t bytes) {
  result_.bytes += bytes;
  if (std::memcmp(found, expected, bytes) == 0) return;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (found[i] == expected[i]) continue;
    if (result_.mismatches++ == 0) {
      result_.first = "inference " + std::to_string(inference_ - 1) + ", " +
                      mapping_.program.operators[op].name + ", row " + std::to_string(row) +
                      ", byte " + std::to_string(i) + ": found " + std::to_string(found[i]) +
                      ", expected " + std::to_string(expected[i]);
    }
  }
}

}  // namespace systole::testbench

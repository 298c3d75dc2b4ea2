#include "testbench/run/checker.h"

#include <algorithm>
#include <cstring>

#include "testbench/network/tensors.h"

namespace systole::testbench {

Checker::Checker(const model::Graph& graph, tlm_model::System& system)
    : graph_(graph), system_(system), reference_(graph, {graph_is_large(graph), false}) {}

void Checker::begin(const mapper::Mapping& mapping, const std::vector<std::uint8_t>& input,
                    const std::function<void(std::size_t nodes)>& progress) {
  mapping_ = &mapping;
  ring_rows_.assign(mapping.program.operators.size(), 0);
  left_.assign(mapping.program.operators.size(), 0);
  for (const hw::Command& command : mapping.program.commands) {
    if (command.opcode != hw::Opcode::kEnd) ++left_[command.op];
  }
  const model::Tensor& tensor = graph_.tensors[input_tensor(graph_)];
  reference_.set_input(tensor.name, widen(input, tensor.type));
  reference_.run(progress);
  ++inference_;
}

void Checker::on_command(const tlm_model::CommandTrace& trace) {
  const hw::Command& command = mapping_->program.commands[trace.index];
  if (--left_[command.op] == 0) ++result_.operators;
  const bool stays = command.opcode == hw::Opcode::kMove;
  const bool attends = command.opcode == hw::Opcode::kAttention;
  const bool hosts = command.opcode == hw::Opcode::kHost;
  const bool loops = command.opcode == hw::Opcode::kLoop && command.tensor != 0;
  if (!stays && !attends && !hosts && !loops && command.opcode != hw::Opcode::kStore) return;
  const hw::Operator& result = mapping_->program.operators[command.op];
  const model::View& view = mapping_->groups[command.op].written();
  const std::size_t element = hw::bytes_of(result.type);
  const std::size_t row_bytes = attends ? std::size_t{command.statistics} * command.n * element
                                : hosts ? command.n * element
                                        : hw::stored_row_bytes(command, mapping_->program);
  const std::size_t tensor_row_bytes = graph_.tensors[view.tensor].cols * element;
  const std::vector<std::uint8_t>& expected = reference_.bytes(view.tensor);
  std::vector<std::uint8_t> found(row_bytes);
  const std::uint64_t begin = stays                       ? command.b
                              : attends || hosts || loops ? command.tensor
                                                          : command.dram;
  const std::uint64_t rows =
      attends || hosts ? command.m : hw::stored_rows(command, mapping_->program);
  const auto first_of = [&](std::uint64_t at) {
    // A ring's first row tile need not have its lowest slot.
    const auto pitch = static_cast<std::int64_t>(result.pitch);
    const std::int64_t offset = static_cast<std::int64_t>(at - result.address) % pitch;
    return static_cast<std::uint64_t>(offset < 0 ? offset + pitch : offset);
  };
  // Rows of a ring arrive in order, from the first column on.
  const bool ring = result.place == hw::Operator::Place::kRing;
  std::uint64_t ring_row = 0;
  if (ring) {
    std::uint64_t& done = ring_rows_[command.op];
    if (first_of(begin) == 0) done += rows;
    ring_row = done - rows;
  }
  for (std::uint64_t i = 0; i < rows; ++i) {
    const std::uint64_t at = begin + i * result.pitch;
    if (stays) {
      std::memcpy(found.data(), system_.core.memory.scratchpad.data() + at, row_bytes);
    } else {
      system_.peek(at, found.data(), row_bytes);
    }
    const std::uint64_t row = ring ? ring_row + i : (at - result.address) / result.pitch;
    const std::uint64_t first = first_of(at);
    const std::size_t offset = (view.row + row) * tensor_row_bytes + view.col * element + first;
    compare(command.op, row, first, found.data(), &expected[offset], row_bytes);
  }
}

void Checker::compare(std::uint32_t op, std::uint64_t row, std::uint64_t first,
                      const std::uint8_t* found, const std::uint8_t* expected, std::size_t bytes) {
  result_.bytes += bytes;
  if (std::memcmp(found, expected, bytes) == 0) return;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (found[i] == expected[i]) continue;
    if (result_.mismatches++ == 0) {
      result_.first = "inference " + std::to_string(inference_ - 1) + ", " +
                      mapping_->program.operators[op].name + ", row " + std::to_string(row) +
                      ", byte " + std::to_string(first + i) + ": found " +
                      std::to_string(found[i]) + ", expected " + std::to_string(expected[i]);
    }
  }
}

}  // namespace systole::testbench

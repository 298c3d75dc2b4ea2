#include "testbench/run/run_checks.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "hw/number/int4.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {

void CheckResult::add(const CheckResult& other) {
  operators += other.operators;
  bytes += other.bytes;
  mismatches += other.mismatches;
  if (first.empty()) first = other.first;
}

void Checker::begin(const mapper::Mapping& mapping, const model::Reference& reference,
                    std::size_t inference) {
  mapping_ = &mapping;
  reference_ = &reference;
  inference_ = inference;
  left_.assign(mapping.program.operators.size(), 0);
  for (const hw::Command& command : mapping.program.commands) {
    if (command.opcode() != hw::Opcode::kEnd) ++left_[command.op];
  }
}

void Checker::end_command(std::uint32_t op) {
  if (--left_[op] == 0) ++result_.operators;
}

const std::uint8_t* Checker::expected(const WrittenRow& row) {
  if (origins_.empty()) return reference_->bytes(row.tensor).data() + row.offset;
  const TensorOrigin& origin = origins_[row.tensor];
  const std::uint8_t* const whole = reference_->bytes(origin.whole).data();
  if (origin.columns.empty()) return whole + row.offset;
  gathered_.resize(row.bytes.size());
  for (std::size_t i = 0; i < gathered_.size(); ++i) {
    gathered_[i] = whole[origin.place_of(row.offset + i)];
  }
  return gathered_.data();
}

void Checker::compare(const WrittenRow& row) {
  const std::size_t bytes = row.bytes.size();
  const std::uint8_t* const expected = this->expected(row);
  result_.bytes += bytes;
  if (std::memcmp(row.bytes.data(), expected, bytes) == 0) return;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (row.bytes[i] == expected[i]) continue;
    if (result_.mismatches++ == 0) {
      result_.first = "inference " + std::to_string(inference_) + ", " +
                      mapping_->program.operators[row.op].name + ", row " +
                      std::to_string(row.row) + ", byte " + std::to_string(row.first + i) +
                      ": found " + std::to_string(row.bytes[i]) + ", expected " +
                      std::to_string(expected[i]);
    }
  }
}

model::ReferenceOptions reference_options(const model::Graph& graph) {
  return {graph_is_large(graph), false};
}

void run_reference(model::Reference& reference, const model::Graph& graph,
                   const std::vector<std::uint8_t>& input,
                   const std::function<void(std::size_t nodes)>& progress) {
  const model::Tensor& tensor = graph.tensors[input_tensor(graph)];
  reference.set_input(tensor.name, widen(input, tensor.type));
  reference.run(progress);
}

Recorder::Recorder(const model::Graph& graph, const std::vector<model::TensorId>& tensors)
    : kept_(tensors.size()), index_(graph.tensors.size(), tensors.size()) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    index_.at(tensors[i]) = i;
    const model::Tensor& tensor = graph.tensors[tensors[i]];
    bytes_.push_back(std::size_t{tensor.rows} * tensor.cols * hw::bytes_of(tensor.type));
  }
}

void Recorder::begin() {
  for (std::size_t i = 0; i < kept_.size(); ++i) kept_[i].emplace_back(bytes_[i]);
}

void Recorder::keep(const WrittenRow& row) {
  const std::size_t i = index_[row.tensor];
  if (i == kept_.size()) return;
  std::copy(row.bytes.begin(), row.bytes.end(),
            kept_[i].back().begin() + static_cast<std::ptrdiff_t>(row.offset));
}

void CommandCount::reference(std::size_t done, std::size_t total) {
  now_.operators = done;
  now_.all_operators = total;
  if (progress_) progress_(now_);
  now_.all_operators = 0;
}

void CommandCount::end_command() {
  ++now_.commands;
  if (progress_) progress_(now_);
}

std::vector<tlm_model::Host::Buffer> host_buffers(const mapper::TensorPlace& place,
                                                  const std::vector<std::uint8_t>* bytes) {
  const std::size_t row_bytes = place.row_bytes();
  std::vector<tlm_model::Host::Buffer> buffers;
  for (std::uint32_t row = 0; row < place.rows; ++row) {
    std::vector<std::uint8_t> data(row_bytes);
    if (bytes != nullptr && place.int4) {
      hw::pack_int4(bytes->data() + std::size_t{row} * place.cols, place.cols, 1, place.cols, true,
                    data.data(), row_bytes);
    } else if (bytes != nullptr) {
      std::copy_n(bytes->data() + row * row_bytes, row_bytes, data.begin());
    }
    buffers.push_back({place.address + std::uint64_t{row} * place.pitch, std::move(data)});
  }
  return buffers;
}

std::vector<std::uint8_t> bytes_of(const std::vector<tlm_model::Host::Buffer>& buffers) {
  std::vector<std::uint8_t> bytes;
  for (const auto& buffer : buffers) {
    bytes.insert(bytes.end(), buffer.bytes.begin(), buffer.bytes.end());
  }
  return bytes;
}

}  // namespace systole::testbench

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/gemm.h"
#include "hw/postop.h"
#include "hw/row_kernels.h"
#include "mapper/fusion.h"
#include "model/graph.h"
#include "testbench/tensors.h"

namespace systole::bench {

/// The operators of a graph run natively: every group that the mapper fuses is one product of whole
/// tensors and one chain over all of its rows, with the functions that the simulated units call.
/// What is left of the simulator when tiles, memories and time are taken away.
class NativeEncoder {
 public:
  /// Both must outlive this object. All memory is allocated here.
  NativeEncoder(const model::Graph& graph, const std::vector<mapper::Group>& groups)
      : graph_(graph), groups_(groups), memory_(graph.tensors.size()) {
    for (std::size_t id = 0; id < memory_.size(); ++id) {
      const model::Tensor& tensor = graph.tensors[id];
      // What the chains fuse away never exists, and weights are used where they are.
      if (tensor.kind == model::Tensor::Kind::kConstant || !is_used(id)) continue;
      memory_[id] = tensor.data;
      memory_[id].resize(tensor.bytes());
    }
    std::size_t elements = 0;
    for (const mapper::Group& group : groups) {
      elements = std::max(elements, std::size_t{group.m()} * group.n());
    }
    accumulator_.resize(elements);
  }

  /// One inference. `input`: the bytes of the graph's input tensor. Returns those of its output.
  const std::vector<std::uint8_t>& run(const std::vector<std::uint8_t>& input) {
    memory_[testbench::input_tensor(graph_)] = input;
    for (const mapper::Group& group : groups_) {
      if (group.has_matmul) {
        multiply(group);
      } else {
        load(group);
      }
      apply_chain(group);
    }
    return memory_[testbench::output_tensor(graph_)];
  }

 private:
  [[nodiscard]] bool is_used(std::size_t id) const {
    return std::any_of(groups_.begin(), groups_.end(), [id](const mapper::Group& group) {
      return group.a.tensor == id || group.b.tensor == id || group.tensor.tensor == id ||
             group.out.tensor == id || group.statistics == id;
    });
  }

  [[nodiscard]] std::size_t pitch(const model::View& view) const {
    const model::Tensor& tensor = graph_.tensors[view.tensor];
    return tensor.cols * hw::bytes_of(tensor.type);
  }

  [[nodiscard]] std::size_t offset(const model::View& view) const {
    return view.row * pitch(view) + view.col * hw::bytes_of(graph_.tensors[view.tensor].type);
  }

  [[nodiscard]] const std::uint8_t* operand(const model::View& view) const {
    const model::Tensor& tensor = graph_.tensors[view.tensor];
    const bool constant = tensor.kind == model::Tensor::Kind::kConstant;
    return (constant ? tensor.data : memory_[view.tensor]).data() + offset(view);
  }

  void multiply(const mapper::Group& group) {
    hw::GemmArgs args;
    args.a = operand(group.a);
    args.lda = pitch(group.a);
    args.a_unsigned = group.a_unsigned;
    args.b = reinterpret_cast<const std::int8_t*>(operand(group.b));
    args.ldb = pitch(group.b);
    args.b_transposed = group.b_transposed;
    args.c = accumulator_.data();
    args.ldc = group.n();
    args.m = group.m();
    args.n = group.n();
    args.k = group.k();
    hw::gemm(args);
  }

  void load(const mapper::Group& group) {
    const std::uint8_t* const from = operand(group.a);
    for (std::size_t row = 0; row < group.m(); ++row) {
      hw::row::widen(from + row * pitch(group.a), graph_.tensors[group.a.tensor].type,
                     accumulator_.data() + row * group.n(), group.n());
    }
  }

  void apply_chain(const mapper::Group& group) {
    hw::ChainOperands operands;
    operands.accumulator = accumulator_.data();
    operands.accumulator_pitch = group.n();
    operands.parameters = group.parameters.data();
    if (group.tensor.tensor != model::kNoTensor) {
      operands.tensor = operand(group.tensor);
      operands.tensor_pitch = pitch(group.tensor);
    }
    if (group.statistics != model::kNoTensor) {
      operands.row_statistics = reinterpret_cast<std::uint32_t*>(memory_[group.statistics].data());
    }
    operands.out = memory_[group.out.tensor].data() + offset(group.out);
    operands.out_pitch = pitch(group.out);
    operands.rows = group.m();
    operands.cols = group.n();
    operands.kept = group.kept;
    hw::apply_chain(group.chain, operands);
  }

  const model::Graph& graph_;
  const std::vector<mapper::Group>& groups_;
  std::vector<std::vector<std::uint8_t>> memory_;  ///< per tensor
  std::vector<std::int32_t> accumulator_;
};

}  // namespace systole::bench

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/kernel/gemm.h"
#include "hw/kernel/row_kernels.h"
#include "hw/postop/postop.h"
#include "mapper/fuse/fusion.h"
#include "model/graph/graph.h"
#include "testbench/network/tensors.h"

namespace systole::bench {

/// The operators of a graph run natively: every group that the mapper fuses is one product of whole
/// tensors and one chain over all of its rows, and one before it, with the functions that the
/// simulated units call. What is left of the simulator when tiles, memories and time are taken
/// away.
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
    std::size_t elements = 0, staged = 0;
    for (const mapper::Group& group : groups) {
      elements = std::max(elements, std::size_t{group.m()} * group.n());
      if (group.pre) staged = std::max(staged, std::size_t{group.a.rows} * group.a.cols);
    }
    accumulator_.resize(elements);
    loaded_.resize(staged);
    staged_.resize(staged);
  }

  /// One inference. `input`: the bytes of the graph's input tensor. Returns those of its output.
  const std::vector<std::uint8_t>& run(const std::vector<std::uint8_t>& input) {
    memory_[testbench::input_tensor(graph_)] = input;
    for (const mapper::Group& group : groups_) {
      if (group.matmul() != nullptr) {
        multiply(group);
      } else {
        load(group);
      }
      apply(group, accumulator_.data(), group.n(),
            memory_[group.out.tensor].data() + offset(group.out), pitch(group.out), group.m(),
            group.n());
    }
    return memory_[testbench::output_tensor(graph_)];
  }

 private:
  [[nodiscard]] bool is_used(std::size_t id) const {
    return std::any_of(groups_.begin(), groups_.end(), [id](const mapper::Group& group) {
      const bool multiplied = group.matmul() != nullptr && group.matmul()->b.tensor == id;
      return group.a.tensor == id || multiplied || group.out.tensor == id || uses(group, id) ||
             (group.pre && uses(*group.pre, id));
    });
  }
  static bool uses(const mapper::BoundChain& chain, std::size_t id) {
    return chain.statistics == id ||
           std::any_of(chain.tensors.begin(), chain.tensors.end(),
                       [id](const model::View& view) { return view.tensor == id; });
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
    return (constant ? tensor.data.get() : memory_[view.tensor]).data() + offset(view);
  }

  void multiply(const mapper::Group& group) {
    hw::GemmArgs args;
    args.a = group.pre ? stage(group) : operand(group.a);
    args.lda = group.pre ? group.k() : pitch(group.a);
    args.a_unsigned = group.matmul()->a_unsigned;
    args.b = reinterpret_cast<const std::int8_t*>(operand(group.matmul()->b));
    args.ldb = pitch(group.matmul()->b);
    args.b_transposed = group.matmul()->b_transposed;
    args.c = accumulator_.data();
    args.ldc = group.n();
    args.m = group.m();
    args.n = group.n();
    args.k = group.k();
    hw::gemm(args);
  }

  void load(const mapper::Group& group) { widen(group, accumulator_.data()); }

  void widen(const mapper::Group& group, std::int32_t* to) const {
    const std::uint8_t* const from = operand(group.a);
    for (std::size_t row = 0; row < group.a.rows; ++row) {
      hw::row::widen(from + row * pitch(group.a), graph_.tensors[group.a.tensor].type,
                     to + row * group.a.cols, group.a.cols);
    }
  }

  /// A matmul's A after the stages before it.
  const std::uint8_t* stage(const mapper::Group& group) {
    widen(group, loaded_.data());
    apply(*group.pre, loaded_.data(), group.a.cols, staged_.data(), group.a.cols, group.a.rows,
          group.a.cols);
    return staged_.data();
  }

  void apply(const mapper::BoundChain& chain, const std::int32_t* from, std::size_t from_pitch,
             void* to, std::size_t to_pitch, std::size_t rows, std::size_t cols) {
    hw::ChainOperands operands;
    operands.accumulator = from;
    operands.accumulator_pitch = from_pitch;
    operands.parameters = chain.parameters.data();
    for (std::size_t i = 0; i < chain.tensors.size(); ++i) {
      operands.tensors.at(i) = {operand(chain.tensors[i]), pitch(chain.tensors[i])};
    }
    if (chain.statistics != model::kNoTensor) {
      operands.row_statistics = reinterpret_cast<std::uint32_t*>(memory_[chain.statistics].data());
    }
    operands.out = to;
    operands.out_pitch = to_pitch;
    operands.rows = rows;
    operands.cols = cols;
    operands.valid_cols = chain.valid_cols;
    hw::apply_chain(chain.chain, operands);
  }

  const model::Graph& graph_;
  const std::vector<mapper::Group>& groups_;
  std::vector<std::vector<std::uint8_t>> memory_;  ///< per tensor
  std::vector<std::int32_t> accumulator_;
  std::vector<std::int32_t> loaded_;  ///< an A before its stages
  std::vector<std::uint8_t> staged_;  ///< and after them
};

}  // namespace systole::bench

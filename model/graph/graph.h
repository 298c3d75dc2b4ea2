#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/host/host_function.h"
#include "hw/number/dtype.h"
#include "hw/postop/postop.h"

/// The operator graph of an integer network: tensors and the operators between them, in execution
/// order. An operator is a matmul, one post-op stage, or a function of the host
/// (model/build/host_operators.h); which of the former two run fused is the mapper's choice.
namespace systole::model {

using TensorId = std::uint32_t;
inline constexpr TensorId kNoTensor = 0xffffffff;

struct Tensor {
  enum class Kind : std::uint8_t {
    kInput,     ///< written by the host before each inference
    kConstant,  ///< weights and tables, part of the memory image
    kActivation,
    kOutput,  ///< read by the host after each inference
    kState,   ///< lasts from inference to inference; begins with `data`, without any as zeros
  };
  std::string name;
  std::uint32_t rows = 0, cols = 0;
  hw::DType type = hw::DType::kS8;
  Kind kind = Kind::kActivation;
  std::vector<std::uint8_t>
      data;            ///< constants (and rows of activations that never change): rows x
                       ///< cols elements, row-major, little endian; empty when shape only
  double scale = 0.0;  ///< real value of one unit, 0 when it has none
  [[nodiscard]] std::size_t bytes() const { return std::size_t{rows} * cols * hw::bytes_of(type); }
};

/// A rectangle of a tensor.
struct View {
  TensorId tensor = kNoTensor;
  std::uint32_t row = 0, col = 0, rows = 0, cols = 0;
};

[[nodiscard]] inline bool same(const View& a, const View& b) {
  return a.tensor == b.tensor && a.row == b.row && a.col == b.col && a.rows == b.rows &&
         a.cols == b.cols;
}

/// Whether two views share an element.
[[nodiscard]] inline bool overlap(const View& a, const View& b) {
  return a.tensor == b.tensor && a.row < b.row + b.rows && b.row < a.row + a.rows &&
         a.col < b.col + b.cols && b.col < a.col + a.cols;
}

struct Node {
  enum class Kind : std::uint8_t { kMatmul, kStage, kHost };
  Kind kind = Kind::kStage;
  std::string name;  ///< unique
  View in;           ///< kMatmul: A (m x k, s8 or u8); kStage, kHost: its input
  View b;            ///< kMatmul: B (k x n, or n x k when b_transposed)
  bool b_transposed = false;
  hw::Stage stage;                       ///< kStage
  std::vector<std::int32_t> parameters;  ///< kStage: [parameter_words(stage)][cols]
  hw::HostFunction host;                 ///< kHost
  View tensor;                           ///< a tensor operand, HostOp::kAdd: the other operand
  TensorId statistics = kNoTensor;       ///< row statistics that the stage reads or leaves
  /// Of a softmax or a causal mask: hw::ChainOperands::valid_cols.
  std::uint32_t valid_cols = 0;
  View out;
};

struct Graph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
};

}  // namespace systole::model

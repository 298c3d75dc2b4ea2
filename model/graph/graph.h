#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/shared_vector.h"
#include "hw/host/host_function.h"
#include "hw/number/dtype.h"
#include "hw/number/weight_groups.h"
#include "hw/postop/postop.h"
#include "hw/program/window.h"

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
  /// Constants (and rows of activations that never change): rows x cols elements, row-major,
  /// little endian; empty when shape only. Those of weights are made where they are wanted.
  hw::SharedVector<std::uint8_t> data;
  double scale = 0.0;  ///< real value of one unit, 0 when it has none
  /// Another than int8: weights [k x n] in groups, of which `data` is the expanded form; k is a
  /// multiple of hw::kGroupWeights. Else, as of a mere shape, `groups` is empty.
  hw::WeightFormat format = hw::WeightFormat::kInt8;
  hw::SharedVector<hw::WeightGroup> groups = {};  ///< [k / hw::kGroupWeights][n]
  /// Weights or activations of four bits, -8 to 7, which an array with a split multiplier
  /// multiplies as they are; `data` has a byte of each.
  bool int4 = false;
  [[nodiscard]] bool grouped() const { return format != hw::WeightFormat::kInt8; }
  [[nodiscard]] std::size_t bytes() const { return std::size_t{rows} * cols * hw::bytes_of(type); }
};

/// A rectangle of a tensor, or a part of one of its rows that is cut into rows.
struct View {
  TensorId tensor = kNoTensor;
  std::uint32_t row = 0, col = 0, rows = 0, cols = 0;
  /// The rows are stored one after the other in row `row` of the tensor, from column `col` on: the
  /// heads of a token that share keys are rows of one product.
  bool folded = false;

  /// Elements between rows, in a tensor whose own rows are `pitch` apart.
  [[nodiscard]] std::size_t pitch(std::size_t tensor_pitch) const {
    return folded ? cols : tensor_pitch;
  }
  /// The rectangle that it is.
  [[nodiscard]] View unfolded() const {
    return folded ? View{tensor, row, col, 1, rows * cols} : *this;
  }
};

[[nodiscard]] inline bool same(const View& a, const View& b) {
  return a.tensor == b.tensor && a.row == b.row && a.col == b.col && a.rows == b.rows &&
         a.cols == b.cols && a.folded == b.folded;
}

/// Whether two views share an element.
[[nodiscard]] inline bool overlap(const View& first, const View& second) {
  const View a = first.unfolded(), b = second.unfolded();
  return a.tensor == b.tensor && a.row < b.row + b.rows && b.row < a.row + a.rows &&
         a.col < b.col + b.cols && b.col < a.col + a.cols;
}

/// Node::in (m x k, s8 or u8) times B.
struct Product {
  View b;  ///< k x n, or n x k when transposed
  bool b_transposed = false;
  /// Groups of channels whose blocks on the diagonal of B are all of it that is not zero.
  std::uint32_t groups = 1;
};

/// A post-op stage on Node::in.
struct StageUse {
  hw::Stage stage;
  hw::SharedVector<std::int32_t> parameters;  ///< [parameter_words(stage)][cols]
  View tensor;                                ///< its tensor operand
  TensorId statistics = kNoTensor;            ///< row statistics that it reads or leaves
  /// Of a softmax or a causal mask: hw::ChainOperands::valid_cols.
  std::uint32_t valid_cols = 0;
};

/// A function of the host on Node::in.
struct HostUse {
  hw::HostFunction function;
  View tensor;                   ///< HostOp::kAdd: the other operand
  std::uint32_t valid_cols = 0;  ///< of a softmax, as in StageUse
};

struct Node {
  std::string name;  ///< unique
  View in, out;
  std::variant<StageUse, Product, HostUse> op;
  /// Through which a product or a stage reads `in`, a picture: what it works on are patches, maxima
  /// or sums.
  std::optional<hw::Window> window;

  /// Rows and columns of what the operator works on.
  [[nodiscard]] std::uint32_t in_rows() const {
    return window ? static_cast<std::uint32_t>(window->rows()) : in.rows;
  }
  [[nodiscard]] std::uint32_t in_cols() const {
    return window ? static_cast<std::uint32_t>(window->cols()) : in.cols;
  }
  /// Multiply-accumulates of a product; what is zero for its groups does not count.
  [[nodiscard]] std::uint64_t macs() const {
    return product() == nullptr
               ? 0
               : std::uint64_t{out.rows} * out.cols * in_cols() / product()->groups;
  }

  /// What the node does, if it is that; else null.
  [[nodiscard]] const StageUse* stage() const { return std::get_if<StageUse>(&op); }
  [[nodiscard]] StageUse* stage() { return std::get_if<StageUse>(&op); }
  [[nodiscard]] const Product* product() const { return std::get_if<Product>(&op); }
  [[nodiscard]] Product* product() { return std::get_if<Product>(&op); }
  [[nodiscard]] const HostUse* host() const { return std::get_if<HostUse>(&op); }
  [[nodiscard]] HostUse* host() { return std::get_if<HostUse>(&op); }

  [[nodiscard]] bool is(hw::StageOp stage_op) const {
    return stage() != nullptr && stage()->stage.op == stage_op;
  }
  /// B of a product, else a tensor operand; View{} where there is none.
  [[nodiscard]] View second() const {
    return product() != nullptr ? product()->b
           : stage() != nullptr ? stage()->tensor
                                : host()->tensor;
  }
  [[nodiscard]] TensorId statistics() const {
    return stage() != nullptr ? stage()->statistics : kNoTensor;
  }
  [[nodiscard]] std::uint32_t valid_cols() const {
    return stage() != nullptr ? stage()->valid_cols : host() != nullptr ? host()->valid_cols : 0;
  }
};

struct Graph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
};

}  // namespace systole::model

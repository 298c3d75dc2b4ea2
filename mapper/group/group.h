#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hw/host/host_function.h"
#include "hw/postop/postop.h"
#include "mapper/group/attention_group.h"
#include "mapper/group/head_mix_layer.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// A chain and what its stages work on.
struct BoundChain {
  hw::Chain chain;
  /// [parameter_words(chain)][cols], empty shape-only.
  hw::SharedVector<std::int32_t> parameters;
  std::vector<model::View> tensors;               ///< tensor operands, in the order of their stages
  model::TensorId statistics = model::kNoTensor;  ///< that it reads or leaves
  std::uint32_t valid_cols = 0;                   ///< model::Node::valid_cols
};

/// A tensor that is loaded into the accumulator.
struct LoadAnchor {};

/// A product of Group::a with B.
struct MatmulAnchor {
  model::View b;
  bool b_transposed = false;  ///< as in model::Node
  bool a_unsigned = false;
  std::uint32_t groups = 1;  ///< as in model::Product
};

/// Operators that run as one: an anchor, the chain of stages after it, and one before it. Tensors
/// between them never exist in memory.
struct Group : BoundChain {
  std::string name;                ///< of the anchor, or of the first stage when a load anchors it
  std::vector<std::size_t> nodes;  ///< indices into Graph::nodes, in order
  /// Attention has its own operands and chains; a host function reads `a`, and tensors[0] with two
  /// operands; the encoder's result comes from the stores of a group before.
  std::variant<LoadAnchor, MatmulAnchor, AttentionGroup, hw::HostFunction, HeadMixLayer> anchor;
  model::View a;                     ///< matmul: A; otherwise the tensor that is loaded
  std::optional<hw::Window> window;  ///< through which `a` is read
  std::uint32_t pads = 0;         ///< of `nodes` the first, whose zeros are padding of the window
  std::optional<BoundChain> pre;  ///< of `a`
  model::View out;
  /// Encoders of the result: each is one of the groups after this one, in this order.
  EncodedSections sections;

  /// The anchor, if it is one of this kind; else null.
  [[nodiscard]] const MatmulAnchor* matmul() const { return std::get_if<MatmulAnchor>(&anchor); }
  [[nodiscard]] const AttentionGroup* attention() const {
    return std::get_if<AttentionGroup>(&anchor);
  }
  [[nodiscard]] AttentionGroup* attention() { return std::get_if<AttentionGroup>(&anchor); }
  [[nodiscard]] const hw::HostFunction* host() const {
    return std::get_if<hw::HostFunction>(&anchor);
  }
  [[nodiscard]] const HeadMixLayer* encoder() const { return std::get_if<HeadMixLayer>(&anchor); }

  /// Whether tiles of it go through the array and the chain.
  [[nodiscard]] bool is_tiled() const {
    return matmul() != nullptr || std::holds_alternative<LoadAnchor>(anchor);
  }
  /// What resides in memory when the group is done.
  [[nodiscard]] const model::View& written() const {
    return sections.encoders.empty() ? out : sections.rest;
  }
  /// Columns of a section; 0: the result has none.
  [[nodiscard]] std::uint32_t section_cols() const {
    return sections.encoders.empty() ? 0 : sections.encoders.front().in.cols;
  }
  /// Rows and columns of the values that go through the chain.
  [[nodiscard]] std::uint32_t m() const { return hw::transposes(chain) ? out.cols : out.rows; }
  [[nodiscard]] std::uint32_t n() const { return hw::transposes(chain) ? out.rows : out.cols; }
  [[nodiscard]] std::uint32_t k() const {
    if (matmul() == nullptr) return 0;
    return window ? static_cast<std::uint32_t>(window->cols()) : a.cols;
  }
  /// Multiply-accumulates that count: see model::Node.
  [[nodiscard]] std::uint64_t macs() const {
    return matmul() == nullptr ? 0 : std::uint64_t{m()} * n() * k() / matmul()->groups;
  }
};

}  // namespace systole::mapper

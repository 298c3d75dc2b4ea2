#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
  std::vector<std::int32_t> parameters;  ///< [parameter_words(chain)][cols], empty shape-only
  std::vector<model::View> tensors;      ///< tensor operands, in the order of their stages
  model::TensorId statistics = model::kNoTensor;  ///< that it reads or leaves
  std::uint32_t valid_cols = 0;                   ///< model::Node::valid_cols
};

/// Operators that run as one: an anchor (a matmul, or a load of a tensor into the accumulator), the
/// chain of stages after it, and one before it, upstream of a matmul's A or of the
/// tensor that is loaded. Tensors between them never exist in memory.
struct Group : BoundChain {
  std::string name;                ///< of the anchor, or of the first stage when a load anchors it
  std::vector<std::size_t> nodes;  ///< indices into Graph::nodes, in order
  bool has_matmul = false;
  model::View a;  ///< matmul: A; otherwise the tensor that is loaded
  model::View b;
  bool a_unsigned = false;
  bool b_transposed = false;
  std::optional<BoundChain> pre;  ///< of `a`
  model::View out;
  std::optional<hw::HostFunction> host;  ///< of `a`, and of tensors[0] with two operands, to `out`
  std::optional<AttentionGroup> attention;  ///< then the rest of a matmul group is not used
  /// Encoders of the result: each is one of the groups after this one, in this order.
  EncodedSections sections;
  std::optional<HeadMixLayer> encoder;  ///< then the stores of a group before give `out`

  /// Whether tiles of it go through the array and the chain.
  [[nodiscard]] bool is_tiled() const { return !attention && !host && !encoder; }
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
  [[nodiscard]] std::uint32_t k() const { return has_matmul ? a.cols : 0; }
};

}  // namespace systole::mapper

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/host_function.h"
#include "hw/machine.h"
#include "hw/postop.h"
#include "mapper/attention_group.h"
#include "mapper/encoded_sections.h"
#include "mapper/mix_layer.h"
#include "model/graph.h"

namespace systole::mapper {

/// Operators that run as one: an anchor (a matmul, or a load of a tensor into the accumulator) and
/// the chain of stages behind it. Tensors between them never exist in memory.
struct Group {
  std::string name;                ///< of the anchor, or of the first stage when a load anchors it
  std::vector<std::size_t> nodes;  ///< indices into Graph::nodes, in order
  bool has_matmul = false;
  model::View a;  ///< matmul: A; otherwise the tensor that is loaded
  model::View b;
  bool a_unsigned = false;
  bool b_transposed = false;
  hw::Chain chain;
  std::vector<std::int32_t> parameters;  ///< [parameter_words(chain)][out.cols], empty shape-only
  model::View tensor;                    ///< operand of an add_tensor stage, if there is one
  model::TensorId statistics = model::kNoTensor;
  std::uint32_t kept = 0;  ///< of a softmax (model::Node::kept)
  model::View out;
  std::optional<hw::HostFunction> host;     ///< of `a`, and of `tensor` with two operands, to `out`
  std::optional<AttentionGroup> attention;  ///< then the rest of a matmul group is not used
  /// Encoders on the way out: each is one of the groups behind this one, in this order.
  EncodedSections sections;
  std::optional<MixLayer> encoder;  ///< then the stores of a group in front give `out`

  /// What stands in memory when the group is done.
  [[nodiscard]] const model::View& written() const {
    return sections.encoders.empty() ? out : sections.rest;
  }
  /// Columns of a section; 0: the result has none.
  [[nodiscard]] std::uint32_t section_cols() const {
    return sections.encoders.empty() ? 0 : sections.encoders.front().in.cols;
  }
  [[nodiscard]] std::uint32_t m() const { return out.rows; }
  [[nodiscard]] std::uint32_t n() const { return out.cols; }
  [[nodiscard]] std::uint32_t k() const { return has_matmul ? a.cols : 0; }
};

/// Groups the operators of a graph, greedily in order: a stage joins the group in front of it when
/// it is the only reader of that group's result and the chain stays legal (length, one row-wise
/// stage, one tensor operand, whole rows that fit half the accumulator). A row-wise stage joins a
/// matmul only where the tiler expects that to be faster than a pass of its own. The machine's
/// mapper.fusion leaves out stages that may not join at all.
/// On a machine with attention engines, the attention of a layer is one group, decoders of Q and K
/// included. Encoders of parts of a projection's result join its stores where the machine has
/// encoder lines and the tiler expects that to be faster: groups without commands of their own.
/// A function of the host is a group; what the host does is the graph's choice, not the mapper's.
/// Throws InputError when a row-wise operator cannot run on this machine at all.
[[nodiscard]] std::vector<Group> fuse(const model::Graph& graph, const hw::Machine& machine);

}  // namespace systole::mapper

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

/// A chain and what its stages work on.
struct BoundChain {
  hw::Chain chain;
  std::vector<std::int32_t> parameters;  ///< [parameter_words(chain)][cols], empty shape-only
  std::vector<model::View> tensors;      ///< tensor operands, in the order of their stages
  model::TensorId statistics = model::kNoTensor;  ///< that it reads or leaves
  std::uint32_t kept = 0;                         ///< model::Node::kept
};

/// Operators that run as one: an anchor (a matmul, or a load of a tensor into the accumulator), the
/// chain of stages behind it, and one in front of it, on the way in of a matmul's A or of the
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
  /// Rows and columns of the values that go through the chain.
  [[nodiscard]] std::uint32_t m() const { return hw::transposes(chain) ? out.cols : out.rows; }
  [[nodiscard]] std::uint32_t n() const { return hw::transposes(chain) ? out.rows : out.cols; }
  [[nodiscard]] std::uint32_t k() const { return has_matmul ? a.cols : 0; }
};

/// What became of an operator of the graph, and why.
struct FusionDecision {
  enum class Role : std::uint8_t {
    kAnchor,  ///< begins a group
    kPost,    ///< runs in the chain behind the anchor of its group
    kPre,     ///< runs in the chain in front of it
    kInside,  ///< of attention, an encoder or a decoder
  };
  std::size_t node = 0;   ///< index into Graph::nodes
  std::size_t group = 0;  ///< index into Fusion::groups
  Role role = Role::kAnchor;
  std::string why;  ///< of an anchor that is a stage: why it joined no other; else what decided
};

struct Fusion {
  std::vector<Group> groups;
  std::vector<FusionDecision> decisions;  ///< by node
};

/// Groups the operators of a graph, greedily in order: a stage joins the group in front of it when
/// it is the only reader of that group's result and the chain stays legal (mapper/fusion_rules.h).
/// A matmul's sums may be read again in its own chain, as the saved accumulator. A row-wise stage
/// joins a matmul only where the tiler expects that to be faster than a pass of its own. Then a
/// group without a matmul goes in front of the one matmul that reads its result, where that is
/// legal, nothing that it reads is written in between (mapper/memory_use.h), and it is expected to
/// be no slower. A chain that is too long goes on in the next group; one on a
/// loaded tensor first in front and then behind. The machine's mapper.fusion leaves out stages that
/// may not join at all. On a machine with attention engines, the attention of a layer is one group,
/// decoders of Q and K included. Encoders of parts of a projection's result join its stores where
/// the machine has encoder lines and the tiler expects that to be faster: groups without commands
/// of their own. A function of the host is a group; what the host does is the graph's choice, not
/// the mapper's. Throws InputError when a row-wise operator cannot run on this machine at all.
[[nodiscard]] Fusion fuse(const model::Graph& graph, const hw::Machine& machine);

}  // namespace systole::mapper

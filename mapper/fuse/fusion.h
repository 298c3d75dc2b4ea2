#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/group/group.h"
#include "mapper/tile/tiling.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// What became of an operator of the graph, and why.
struct FusionDecision {
  enum class Role : std::uint8_t {
    kAnchor,  ///< begins a group
    kPost,    ///< runs in the chain after the anchor of its group
    kPre,     ///< runs in the chain before it
    kInside,  ///< of attention, an encoder or a decoder
  };
  std::size_t node = 0;   ///< index into Graph::nodes
  std::size_t group = 0;  ///< index into Fusion::groups
  Role role = Role::kAnchor;
  std::string why;  ///< of an anchor that is a stage: why it joined no other; else what decided
};

/// Whether a row-wise stage runs in the chain of the matmul before it where the expected costs of
/// both are within a quarter of each other: the model does not know which is faster in the end.
enum class CloseCalls : std::uint8_t { kByCost, kTogether, kApart };

struct Fusion {
  std::vector<Group> groups;
  std::vector<FusionDecision> decisions;  ///< by node
};

/// Groups the operators of a graph, greedily in order: a stage joins the group before it when
/// it is the only reader of that group's result and the chain stays legal
/// (mapper/group/fusion_rules.h). A matmul's sums may be read again in its own chain, as the saved
/// accumulator. A row-wise stage joins a matmul only where the tiler expects that to be faster than
/// a separate pass, or as `close_calls` says. Then a group without a matmul goes before the
/// one matmul that reads its result, where that is legal, nothing that it reads is written in
/// between (mapper/group/memory_use.h), and it is expected to be no slower. A chain that is too
/// long goes on in the next group; one on a loaded tensor first before and then after. The
/// machine's mapper.fusion leaves out stages that may not join at all. On a machine with attention
/// engines, the attention of a layer is one group. Decoders of Q and K join it, and encoders of
/// parts of a projection's result the projection's stores where the machine has encoder lines, as
/// groups without commands: layer by layer where that is expected to be faster, or as the machine's
/// mapper.head_mix says. A function of the host is a
/// group; what the host does is the graph's choice, not the mapper's. Throws InputError when a
/// row-wise operator cannot run on this machine at all.
[[nodiscard]] Fusion fuse(const model::Graph& graph, const hw::Machine& machine,
                          CloseCalls close_calls = CloseCalls::kByCost);
/// The same with what `tiler` knows: one of kBestAlone and of that machine, but for mapper.fusion.
[[nodiscard]] Fusion fuse(const model::Graph& graph, const hw::Machine& machine,
                          CloseCalls close_calls, Tiler& tiler);

}  // namespace systole::mapper

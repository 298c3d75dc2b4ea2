#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/group/group.h"
#include "mapper/tile/tiling.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// What the tiler expects of groups, whether fusing pays: as if nothing stayed on chip, but for
/// what would lie between two groups alone.
class FusionCost {
 public:
  /// Cycles, or what else the machine's mapper wants little of.
  struct Comparison {
    double together = 0, apart = 0;
    bool fits = false;  ///< together, on this machine
    [[nodiscard]] bool pays() const { return fits && together <= apart; }
  };

  /// All outlive this object. `tiler`: see fuse().
  FusionCost(const model::Graph& graph, const hw::Machine& machine, Tiler& tiler);

  /// A row-wise stage makes the matmul before it work on whole rows, which may cost more
  /// traffic than a separate pass. `alone`: the stage as a group.
  [[nodiscard]] Comparison after(const Group& fused, const Group& group, const Group& alone);
  /// `alone`, a group without a matmul, as stages upstream of `group`.
  [[nodiscard]] Comparison before(const Group& fused, const Group& alone, const Group& group);
  /// `alone` as stages upstream of attention, whose operands spend `stage_cycles` in them: as
  /// if the engines waited for all of it.
  [[nodiscard]] Comparison before_attention(std::uint64_t stage_cycles, const Group& alone);
  /// A group that encodes `sections` of its result, or a product for each of the encoders.
  [[nodiscard]] Comparison encoding(const Group& fused, const Group& group,
                                    const std::vector<Group>& products);
  /// Attention whose decoders are part of it, or a product for each of them before `apart`. Cycles
  /// by replay (mapper/replay/attention_replay.h), whatever else the mapper wants little of.
  [[nodiscard]] Comparison decoding(const AttentionGroup& together, const AttentionGroup& apart,
                                    const std::vector<Group>& products);

 private:
  /// Nothing if the group does not fit the machine.
  std::optional<Tiling> tiling(Group group, const Placement& placement);
  /// Until a pass that reads what another one writes has its first row: the last write, and its own
  /// first read.
  [[nodiscard]] double hand_over() const;
  /// What a separate pass of `alone` adds to the tiler's cycles. `on_chip`: its result stays
  /// there.
  [[nodiscard]] double pass_cycles(const Group& alone, bool on_chip);
  Comparison compare(const Group& fused, const std::vector<const Group*>& apart,
                     const Placement& when_apart, double extra_cycles);
  /// Where a tensor that only a matmul reads would be: on chip if it fits there.
  [[nodiscard]] Placement keeping(const model::View& between) const;

  const model::Graph& graph_;
  const hw::Machine& machine_;
  Placement placement_;
  Tiler& tiler_;
};

/// What the steps of fuse() share.
struct FusionState {
  /// All outlive this object.
  FusionState(const model::Graph& network, const hw::Machine& target, Tiler& tiler);

  /// A comparison as a decision's reason.
  [[nodiscard]] std::string reason(const FusionCost::Comparison& comparison) const;
  /// Why a tensor has to exist in memory, whoever reads it; empty if it has not.
  [[nodiscard]] std::string memory_obstacle(model::TensorId id) const;

  const model::Graph& graph;
  const hw::Machine& machine;
  const std::vector<unsigned> readers;  ///< by tensor: nodes that read it
  FusionCost cost;
  std::vector<std::string> why;  ///< by node: FusionDecision::why
};

/// Passes that add zeros around a picture become the padding of the windows that read it, where all
/// of these count padding as zeros.
void fuse_pads(FusionState& state, std::vector<Group>& groups);

/// Puts groups that a load anchors before the matmul or the attention that reads their result,
/// where that is legal and expected to be no slower.
void fuse_upstream(FusionState& state, std::vector<Group>& groups);

}  // namespace systole::mapper

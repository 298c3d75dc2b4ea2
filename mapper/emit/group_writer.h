#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "mapper/group/group.h"
#include "mapper/place/constant_image.h"
#include "mapper/place/placement.h"
#include "mapper/tile/stream_plan.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// Where commands go, and what they refer to. All must outlive it.
struct EmitTarget {
  const model::Graph& graph;
  const hw::Machine& machine;
  const Placement& placement;
  ConstantImage& constants;
  hw::Program& program;

  [[nodiscard]] const Location& location(const model::View& view) const {
    return placement.tensors[view.tensor];
  }
  [[nodiscard]] bool is_weight(const model::View& view) const {
    return graph.tensors[view.tensor].kind == model::Tensor::Kind::kConstant;
  }
  /// Byte address of an element of a view.
  [[nodiscard]] std::uint64_t address(const model::View& view, std::uint32_t row,
                                      std::uint32_t col) const;
  /// Bytes between the rows of a view.
  [[nodiscard]] std::uint32_t pitch(const model::View& view) const;
  [[nodiscard]] hw::DramTile dram_tile(const model::View& view, std::uint32_t row = 0,
                                       std::uint32_t col = 0) const {
    return {address(view, row, col), pitch(view)};
  }
  /// Whether a tensor resides after what a group streams through.
  [[nodiscard]] bool is_after(const model::View& view, const Share& share) const {
    const Location& where = location(view);
    return where.place == Location::Place::kScratchpad && where.address >= share.stream_end;
  }
  /// `tile` of the view, if it begins below 4 GiB. Else InputError.
  [[nodiscard]] hw::DramTile near(const model::View& view, const hw::DramTile& tile) const;
  /// Gives a group its operator, whose index is the result.
  std::uint32_t add_operator(const Group& group, std::uint64_t macs) const;
};

/// Attention, functions of the host and encoders, which have no tiles. Throws InputError if an
/// operand that has to be below 4 GiB is not.
void emit_whole(const EmitTarget& to, const Group& group);

/// Writes the commands of one group: gives it chains, mixes and an operator, and knows what every
/// command says of them.
class GroupWriter {
 public:
  GroupWriter(const EmitTarget& to, const Group& group, std::uint64_t macs);

  [[nodiscard]] const Group& group() const { return *group_; }
  [[nodiscard]] std::uint16_t chain() const { return chain_; }
  /// Its operator.
  [[nodiscard]] std::uint32_t op() const { return op_; }

  /// Adds a command.
  template <typename Work>
  void add(const Work& work) const {
    to_->program.commands.push_back({work, op_});
  }
  /// Sends a tile of sums through the chain to where the result resides; `parameters`: where their
  /// block resides in the scratchpad.
  void add_result(const Tile& tile, const hw::LocalTile& sums, std::uint32_t parameters);

  /// What a command says of the group's chain, or of the one before the anchor, for a tile;
  /// without parameters.
  [[nodiscard]] hw::ChainUse use(bool pre, const Tile& tile);
  /// Lets a load read a tile of A, or of the tensor that is loaded, from memory.
  void read_tile(std::uint32_t row, std::uint32_t col, hw::cmd::Load& load) const;
  /// The load of the parameters of a tile's columns, to address 0: a block for each `cols` of them,
  /// one after the other.
  [[nodiscard]] hw::cmd::Load parameter_load(bool pre, const Tile& tile, std::uint32_t cols);

 private:
  const EmitTarget* to_;
  const Group* group_;
  std::uint32_t op_ = 0;
  std::uint16_t chain_ = 0;
  std::uint16_t pre_chain_ = 0;  ///< the chain before the anchor, if any
  std::uint16_t first_mix_ = 0;  ///< of its encoders
  std::map<std::pair<bool, std::uint32_t>, std::uint64_t> known_parameters_;
};

}  // namespace systole::mapper

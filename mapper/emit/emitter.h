#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "mapper/group/group.h"
#include "mapper/place/constant_image.h"
#include "mapper/place/placement.h"
#include "mapper/tile/stream_plan.h"
#include "mapper/tile/tiling.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// A group and how it is cut into tiles.
struct TiledGroup {
  const Group* group;
  Tiling tiling;
  TilingProblem problem;  ///< that of the tiling
  Share share;

  /// How many commands it takes, roughly.
  [[nodiscard]] std::uint64_t commands() const;
};

/// The groups of a pipeline; none where it has no tiles.
struct TiledPipeline {
  const Pipeline* pipeline;
  std::vector<TiledGroup> groups;
};

/// Writes the commands of one group after another, or tiles of a pipeline's groups in turn. Tiles
/// of an operand take its slots in turn (mapper/tile/stream_plan.h), accumulator tiles alternate
/// between its halves: that is all the double buffering there is, the hazards of the machine do the
/// rest.
class Emitter {
 public:
  Emitter(const model::Graph& graph, const hw::Machine& machine, const Placement& placement,
          ConstantImage& constants, hw::Program& program);
  /// Goes on after what `other` has emitted, into another program.
  Emitter(const Emitter& other, ConstantImage& constants, hw::Program& program);

  /// First free byte after all constants so far.
  [[nodiscard]] std::uint64_t constants_end() const noexcept { return constants_.end(); }

  /// The groups of a pipeline.
  void emit(const Pipeline& pipeline, const std::vector<TiledGroup>& groups);
  /// Throws InputError if its operands do not lie in the first 4 GiB.
  void emit_attention(const Group& group);
  /// Throws InputError if a second operand does not lie in the first 4 GiB.
  void emit_host(const Group& group);
  /// Its stores were those of the group that it encodes for: gives them their operator.
  void emit_encoder(const Group& group) { add_operator(group, group.encoder->macs()); }

 private:
  /// A group that is being emitted.
  struct Work {
    const Group* group = nullptr;
    const Tiling* tiling = nullptr;
    Share share;
    std::uint32_t op = 0;
    std::uint16_t chain = 0;      ///< the chain before the anchor, if any, is the next one
    std::uint16_t first_mix = 0;  ///< of its encoders
    bool has_weights = false;     ///< B was loaded as a whole
    std::uint32_t level = 0;      ///< in its pipeline
    StreamRings rings;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> known_tiles;
    std::map<std::pair<bool, std::uint32_t>, std::uint64_t> known_parameters;
  };

  /// Gives the group its chains, its mixes and an operator.
  [[nodiscard]] Work begin(const Group& group, std::uint64_t macs);
  void add_operator(const Group& group, std::uint64_t macs);
  /// The section's encoder, if the tile is one of an encoded section; else null.
  [[nodiscard]] const HeadMixLayer* encoder_of(const Tile& tile) const;
  /// Gives the tiles of a group their slots, all of which are empty.
  void place_slots(const TiledGroup& group, Work& work) const;
  [[nodiscard]] static std::vector<Tile> tiles_of(const Group& group, const Tiling& tiling);
  void emit_tile(const Tile& tile);
  /// Loads all of B of the current group if it stays and has not been loaded; whether it did.
  bool load_weights();
  void emit_matmuls(const Tile& tile, std::uint32_t c, std::uint32_t c_pitch);
  void emit_matmul(const Tile& part, std::uint32_t k0, std::uint32_t ks, std::uint32_t c,
                   std::uint32_t c_pitch);
  void emit_accumulator_load(const Tile& tile, std::uint32_t c, std::uint32_t c_pitch);
  /// `parameters`: where its block resides in the scratchpad.
  void emit_result(const Tile& tile, std::uint32_t c, std::uint32_t c_pitch,
                   std::uint32_t parameters);

  // As a loop unroller runs them (mapper/emit/emitter_loop.cpp).
  /// One loop: C tile (+)= A[.., k0 .. k0 + ks] B[k0 .. k0 + ks, ..].
  struct Loop {
    Tile tile;
    std::uint32_t k0, ks;
    std::uint32_t c, c_pitch;
    std::uint32_t begin, end;  ///< its half of the scratchpad: A from the begin, B up to the end
    std::uint32_t chunk;       ///< columns of A that a load brings
  };
  /// The group without a bias at the begin of its chain, which then resides in memory at bias_; as
  /// it is if the accumulator cannot take the bias without changing a value.
  const Group& without_bias(const Group& group);
  void emit_loops(const Group& group);
  void load_bias(const Loop& loop);
  /// Whether the machine's unroller can run the group's loops.
  [[nodiscard]] bool unrolls(const Group& group) const;
  /// Of constants that the host's library reads.
  [[nodiscard]] std::uint64_t operand_alignment() const;
  void emit_unrolled(const Group& group);
  void emit_loop(const Loop& loop);
  void emit_last_step(const Loop& loop, hw::cmd::Matmul matmul,
                      const std::optional<hw::cmd::Load>& parameters, bool late);
  void load_chunk_of_rows(const Loop& loop, const model::View& view, std::uint32_t row,
                          std::uint32_t rows, std::uint32_t k, std::uint32_t to);
  [[nodiscard]] hw::DramTile row_major(const model::View& view, std::uint32_t row,
                                       std::uint32_t col);
  [[nodiscard]] hw::cmd::Load parameter_load(const Tile& tile);
  /// The load of the parameters of columns `col` on of a chain on rows of `width` columns. `pre`:
  /// that before the anchor.
  [[nodiscard]] hw::cmd::Load parameter_load(const BoundChain& chain, bool pre, std::uint32_t width,
                                             std::uint32_t col, std::uint32_t cols);
  /// Loads the parameters of a tile's columns if they are not there; their address.
  std::uint32_t stream_parameters(const BoundChain& chain, bool pre, std::uint32_t width,
                                  const Tile& tile);
  /// What a command says of chain `index` and its operands for a tile.
  [[nodiscard]] hw::ChainUse use(const BoundChain& chain, std::uint16_t index, const Tile& tile);

  [[nodiscard]] bool is_weight(const model::View& view) const {
    return graph_.tensors[view.tensor].kind == model::Tensor::Kind::kConstant;
  }
  /// Finds the tile on chip or loads it.
  hw::LocalTile operand_a(std::uint32_t row, std::uint32_t rows, std::uint32_t k0,
                          std::uint32_t ks);
  hw::LocalTile operand_b(std::uint32_t k0, std::uint32_t ks, std::uint32_t col,
                          std::uint32_t cols);
  [[nodiscard]] std::uint64_t weight_tile(std::uint32_t k0, std::uint32_t ks, std::uint32_t col,
                                          std::uint32_t cols, std::uint32_t pitch);
  std::uint32_t parameters(const Tile& tile);
  /// Stages before the anchor, of a load of a tile of A or of the tensor that is loaded.
  void add_pre(const Tile& tile, hw::cmd::Load& load);
  [[nodiscard]] std::uint32_t accumulator_half();
  [[nodiscard]] const Location& location(const model::View& view) const {
    return placement_.tensors[view.tensor];
  }
  [[nodiscard]] hw::DramTile dram_tile(const model::View& view, std::uint32_t row = 0,
                                       std::uint32_t col = 0) const {
    return {address(view, row, col), location(view).pitch};
  }
  /// `tile` of the view, if it begins below 4 GiB. Else InputError.
  [[nodiscard]] hw::DramTile near(const model::View& view, const hw::DramTile& tile) const;
  /// Byte address of an element of a view.
  [[nodiscard]] std::uint64_t address(const model::View& view, std::uint32_t row,
                                      std::uint32_t col) const;
  /// Adds a command of the current operator.
  template <typename Work>
  void add(const Work& work) {
    program_.commands.push_back({work, work_->op});
  }

  const model::Graph& graph_;
  const hw::Machine& machine_;
  const Placement& placement_;
  ConstantImage& constants_;
  hw::Program& program_;
  std::map<model::TensorId, std::uint64_t> whole_weights_;  ///< row-major
  Group unrolled_;                     ///< what a loop unroller makes of the current group
  std::optional<std::uint64_t> bias_;  ///< address of its row of int32, or of a row for each result
  Work* work_ = nullptr;
  std::vector<Span> busy_;    ///< operands of the last matmul
  std::vector<bool> halves_;  ///< by level: whether the second half of the accumulator is next
  bool second_scratchpad_ = false;  ///< half of the scratchpad that the next loop takes
};

}  // namespace systole::mapper

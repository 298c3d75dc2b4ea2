#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "mapper/emit/group_writer.h"
#include "mapper/emit/loop_emitter.h"
#include "mapper/tile/stream_plan.h"
#include "mapper/tile/tiling.h"

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
  explicit Emitter(const EmitTarget& to) : to_(to), loops_(to_) {}
  /// Goes on after what `other` has emitted, into another program.
  Emitter(const Emitter& other, ConstantImage& constants, hw::Program& program);
  Emitter(const Emitter&) = delete;

  [[nodiscard]] const EmitTarget& target() const noexcept { return to_; }
  /// Whether the next C tile goes to the second half of the accumulator. What is emitted next
  /// depends on this and on the commands so far.
  [[nodiscard]] bool second_half() const noexcept {
    return !turns_.empty() && turns_.back().second;
  }

  /// The groups of a pipeline; of their commands no more than the first `most`, at least one, which
  /// is enough to see when they can begin. What is emitted after a part makes no program.
  void emit(const Pipeline& pipeline, const std::vector<TiledGroup>& groups,
            std::size_t most = SIZE_MAX);

 private:
  /// A group that is being emitted.
  struct Work : GroupWriter {
    using GroupWriter::GroupWriter;
    const Tiling* tiling = nullptr;
    Share share;
    bool has_weights = false;       ///< B was loaded as a whole
    std::uint32_t level = 0;        ///< in its pipeline
    std::uint32_t result_cols = 0;  ///< of each command for results
    std::uint32_t parts = 0;        ///< places of parts of C tiles; 0: C tiles have one as a whole
    std::uint32_t next_part = 0;    ///< the place of the next one
    bool backwards = false;         ///< through k, in the next sweep
    StreamRings rings;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> known_tiles;
  };

  /// The groups of a pipeline, and which of them has the slots, by level.
  struct Works {
    const std::vector<TiledGroup>& tiled;
    std::vector<Work> groups{};
    std::vector<std::size_t> last_of{};
  };
  /// A group whose slots are its own: those of a level use the same ones, and what another group
  /// has loaded there since is lost.
  Work& with_slots(std::size_t group, Works& works) const;

  /// Loads of weights of later groups that are written between the tiles of a pipeline, so many
  /// turns after each other.
  struct AheadLoads {
    std::vector<hw::Command> loads;
    std::size_t next = 0, done = 0;  ///< load, turns
    std::size_t turns = 0;           ///< after which all are written
  };
  [[nodiscard]] AheadLoads ahead_loads(const Pipeline& pipeline, std::size_t turns,
                                       const Work& first);
  /// Writes what is due after the next turn.
  void load_ahead(AheadLoads& ahead);
  void emit_loops(const TiledGroup& group);
  void emit_tiles(const Pipeline& pipeline, const std::vector<TiledGroup>& groups,
                  std::size_t most);
  /// Gives the tiles of a group their slots, all of which are empty.
  void place_slots(const TiledGroup& group, Work& work) const;
  [[nodiscard]] static std::vector<Tile> tiles_of(const Group& group, const Tiling& tiling);
  [[nodiscard]] static std::vector<Tile> strips_of(const std::vector<Tile>& tiles,
                                                   std::uint32_t rows);
  void emit_tile(const Tile& tile, Work& work);
  /// A product of a C tile: from column `col` of the tile and row `k0` of B on.
  struct Product {
    std::uint32_t col, k0;
    bool is_first, is_last;  ///< of its sums
  };
  /// Calls visit() for the products of a tile, in their order.
  template <typename Visit>
  static void for_products(const Tile& tile, Work& work, const Visit& visit);
  void multiply(const Tile& tile, const std::vector<hw::LocalTile>& c, const Product& product,
                Work& work);
  /// A C tile whose results leave in strips. Its products are written between the strips of the
  /// tile before, so that its operands come in meanwhile.
  struct StripTile {
    std::size_t group = 0;
    Tile tile{};
    std::vector<hw::LocalTile> c{};
    std::vector<Product> products{};
    std::size_t done = 0;  ///< products that are written
  };
  /// Those of a pipeline, and how many of them have left.
  struct StripTiles {
    std::vector<StripTile> tiles;
    std::size_t left = 0;
  };
  void emit_strip(const Tile& strip, StripTiles& all, Works& works);
  /// Loads all of B if it stays and has not been loaded; whether it did.
  bool load_weights(Work& work);
  /// The places of a C tile, one for each n of its columns.
  [[nodiscard]] std::vector<hw::LocalTile> take_sums(const Tile& tile, Work& work);
  /// The results of a part of a C tile.
  void emit_results(const Tile& part, const hw::LocalTile& c, const Tile& tile, Work& work);
  void emit_matmul(const Tile& part, std::uint32_t k0, bool accumulate, const hw::LocalTile& c,
                   Work& work);
  void emit_accumulator_load(const Tile& tile, const hw::LocalTile& c, Work& work) const;
  /// Loads the parameters of a tile's columns if they are not on chip; their address.
  static std::uint32_t stream_parameters(bool pre, const Tile& tile, std::uint32_t cols,
                                         Work& work);
  /// Loads a tile of A, or of what the stages of a group without a product work on, through the
  /// stages before it if it has some.
  template <typename Load>
  void add_rows(const Tile& tile, Load load, Work& work) const;
  /// Finds the tile on chip or loads it.
  [[nodiscard]] hw::LocalTile operand_a(const Tile& tile, Work& work) const;
  hw::LocalTile operand_b(std::uint32_t k0, std::uint32_t ks, std::uint32_t col, std::uint32_t cols,
                          Work& work) const;
  /// Stores weights in their groups; the address.
  [[nodiscard]] std::uint64_t packed_tile(const model::Tensor& weight, std::uint32_t row,
                                          std::uint32_t rows, std::uint32_t col,
                                          std::uint32_t cols) const;
  /// Weights of a product, as they are stored in the graph.
  struct StoredWeights {
    std::uint32_t rows, cols;
    bool transposed, int4;
    /// On chip and in memory.
    [[nodiscard]] hw::StoredShape shape() const {
      return hw::stored_shape(rows, cols, transposed, int4);
    }
  };
  /// Stores weights that begin so many bytes after the tensor's, int4 in pairs; the address.
  [[nodiscard]] std::uint64_t add_weights(const model::Tensor& weight, std::size_t first,
                                          const StoredWeights& of, std::uint32_t pitch) const;
  [[nodiscard]] std::uint64_t weight_tile(std::uint32_t k0, std::uint32_t ks, std::uint32_t col,
                                          std::uint32_t cols, std::uint32_t pitch,
                                          Work& work) const;

  EmitTarget to_;
  LoopEmitter loops_;
  std::vector<Span> busy_;              ///< operands of the last matmul
  std::vector<AccumulatorTurn> turns_;  ///< by level
};

}  // namespace systole::mapper

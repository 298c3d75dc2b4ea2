#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/group/group.h"
#include "model/graph/graph.h"

/// Which operators run as a pipeline of row tiles: while one passes the post-op unit, the array
/// multiplies for the next.
namespace systole::mapper {

/// Consecutive groups whose tiles are issued in turns. Groups of one level follow each other;
/// those of the next level read their rows as soon as these are done.
struct Pipeline {
  std::size_t first = 0;
  std::vector<std::uint32_t> levels{};  ///< by group
  /// Rows of every tile, of scores of every strip; 0: each group has its own.
  std::uint32_t row_tile = 0;
  /// Tiles of a ring that the scratchpad holds; those before them have been read.
  std::uint32_t slots = 0;
  /// What passes through a ring after the contexts, if there is room.
  std::vector<model::TensorId> passing{};
  /// Pairs of scores and context, after the product that they read if there is one.
  std::uint32_t heads = 0;
  /// Columns of a head's operand in the result of the first group, a product that all heads read;
  /// 0: the heads come first. Its tiles are issued in the order in which the heads read them.
  std::uint32_t section = 0;
  /// By section of that result: which of the groups after the first one is the first to read it.
  std::vector<std::uint32_t> read_by{};
  /// A row tile passes all heads and the groups after them before the next one follows; else head
  /// follows head.
  bool by_rows = false;
  /// Strips of a C tile of scores, which the accumulator holds where the scratchpad holds `slots`
  /// of them: one after the other passes the post-op unit and is multiplied, so that keys come
  /// in once for all strips.
  std::uint32_t strips = 1;

  [[nodiscard]] std::size_t end() const { return first + levels.size(); }
  [[nodiscard]] bool is_single() const { return levels.size() == 1; }
  /// The level of the scores: that of the context is the next one.
  [[nodiscard]] std::uint32_t scores_level() const { return section == 0 ? 0 : 1; }
  /// Whether groups of a level are scores or contexts of heads.
  [[nodiscard]] bool is_of_heads(std::uint32_t level) const {
    return heads != 0 && level >= scores_level() && level < scores_level() + 2;
  }
  /// Head after head, with nothing after them.
  [[nodiscard]] bool is_heads_alone() const { return heads != 0 && !by_rows; }
  [[nodiscard]] bool operator==(const Pipeline& other) const {
    return first == other.first && levels == other.levels && row_tile == other.row_tile &&
           by_rows == other.by_rows && strips == other.strips && section == other.section;
  }
  /// Rows of the C tiles of a level, of the last one perhaps fewer; 0: each group has its own.
  [[nodiscard]] std::uint32_t tile_rows(std::uint32_t level) const {
    if (level < scores_level()) return 0;
    return level == scores_level() ? row_tile * strips : row_tile;
  }
  /// The first group of a level, counted from the pipeline's first.
  [[nodiscard]] std::size_t first_of(std::uint32_t level) const {
    const bool is_after = heads != 0 && level >= scores_level() + 2;
    return is_after ? level + 2 * (heads - std::size_t{1}) : level;
  }
  /// The last group that may have begun before group `step` has ended.
  [[nodiscard]] std::size_t last_beside(std::size_t step) const;
};

/// What the mapper may pipeline.
struct Pipelining {
  bool attention = false;  ///< the scores of a head with its context, head after head
  bool rows = false;       ///< other chains of operators, row by row
  /// All heads with the chain after them, in at least as many row tiles; 0: not at all.
  std::uint32_t joined = 0;
  bool strips = false;  ///< tiles of scores in strips, if the accumulator holds more than one
  /// Heads with the product before them that gives them queries, keys and values.
  bool projected = false;
};

/// All groups in order, most of them alone.
[[nodiscard]] std::vector<Pipeline> find_pipelines(const model::Graph& graph,
                                                   const std::vector<Group>& groups,
                                                   const hw::Machine& machine, Pipelining allowed);

/// A C tile of a group: rows [row, row + rows), columns [col, col + cols).
struct Tile {
  std::uint32_t row, col, rows, cols;
};

/// A tile of a pipeline's groups: the group counts from its first.
struct Turn {
  std::size_t group, tile;
};

/// The order in which a pipeline issues the tiles of its groups. Every group begins a tile one turn
/// after the last rows that it reads, so that the units do not wait for each other.
[[nodiscard]] std::vector<Turn> turns_of(const Pipeline& pipeline,
                                         const std::vector<std::vector<Tile>>& tiles);

}  // namespace systole::mapper

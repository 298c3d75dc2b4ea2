#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/tile/tiling.h"

/// How the tiles of one operator share the part of the scratchpad that streams: every operand has
/// slots of one size, filled in turn.
namespace systole::mapper {

struct Slots {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;  ///< of each
  [[nodiscard]] std::uint64_t all() const { return count * bytes; }
};

/// Two slots per operand, so that a tile comes in while another is in use, and more where there is
/// room (with `banks_apart`, in banks of their own); one if there is but one tile, or without
/// double buffers; all tiles of an operand that stays.
struct StreamPlan {
  Slots a, b;
  Slots parameters;  ///< of the chain after the anchor
  Slots pre;         ///< of the chain before it
  [[nodiscard]] std::uint64_t bytes() const {
    return a.all() + b.all() + parameters.all() + pre.all();
  }
};
[[nodiscard]] StreamPlan stream_plan(const hw::Machine& machine, const TilingProblem& problem,
                                     const Tiling& tiling);

/// Whether each operand has banks of its own among those that the problem's share holds whole, with
/// every tile in one of them, and two of them where there are enough: so that place_slots() lets no
/// tile come in where the array reads.
[[nodiscard]] bool has_banks_apart(const StreamPlan& plan, const hw::Machine& machine,
                                   const TilingProblem& problem);

/// Slots in the scratchpad, the least recently used tile the first to be overwritten.
class TileRing {
 public:
  /// A tile by its first row (or depth) and column.
  using Tile = std::pair<std::uint32_t, std::uint32_t>;
  struct Place {
    std::uint64_t address;
    bool is_new;  ///< the tile has to be loaded
  };

  TileRing() = default;
  /// The first tile takes a slot that touches none of `busy`, if there is one.
  TileRing(const std::vector<std::uint64_t>& addresses, std::uint64_t bytes,
           const std::vector<Span>& busy);

  [[nodiscard]] Place take(Tile tile);
  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }

 private:
  struct Slot {
    std::uint64_t address;
    Tile tile;
    std::uint64_t used;  ///< the greater the later; 0: never
  };
  std::vector<Slot> slots_;
  std::uint64_t uses_ = 0;
};

struct StreamRings {
  TileRing a, b, parameters, pre;
};
/// Places the slots of a plan in [begin, end), which it fits. A from the begin, B from the end, and
/// as far as there is room every tile in its own bank: what the array reads and what comes in
/// do not meet there.
/// With `spread`, tiles of both operands go round all banks instead, if there is room: what comes
/// in then does not meet the tile before it, of which the array may read as much in a cycle.
/// `b_first`: A resides after the end, so that without banks of its own B is best at the begin.
[[nodiscard]] StreamRings place_slots(const StreamPlan& plan, const hw::Machine& machine, Span free,
                                      bool spread, bool b_first, const std::vector<Span>& busy);

}  // namespace systole::mapper

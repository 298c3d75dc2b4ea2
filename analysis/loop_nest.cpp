#include "analysis/loop_nest.h"

#include <algorithm>
#include <stdexcept>

namespace systole::analysis {
namespace {

using Extents = std::array<std::uint64_t, kDims>;

std::size_t index(Dim dim) { return static_cast<std::size_t>(dim); }

/// Counts what passes one boundary of the hierarchy for one operand.
class Counter {
 public:
  /// Loops before `boundary` bring tiles, those after it are inside of a tile. `held`: a tile
  /// stays as long as no other one is needed.
  Counter(const LoopNest& nest, std::size_t boundary, Operand operand, bool held, bool copies)
      : loops_(nest.loops), boundary_(boundary), operand_(operand), held_(held), copies_(copies) {}

  /// Elements moved by the loops from number `at` on, which share out `extents`.
  [[nodiscard]] std::uint64_t count(std::size_t at, Extents extents) const {
    if (at == boundary_) return footprint(extents);
    const Loop& loop = loops_[at];
    std::uint64_t& extent = extents[index(loop.dim)];
    const std::uint64_t whole = extent / loop.step, rest = extent % loop.step;
    if (!has(operand_, loop.dim) && held_ && is_single(at + 1, extents)) {
      extent = std::min(extent, loop.step);
      return count(at + 1, extents);
    }
    std::uint64_t sum = 0;
    if (whole > 0) {
      extent = loop.step;
      sum += whole * count(at + 1, extents);
    }
    if (rest > 0) {
      extent = rest;
      sum += count(at + 1, extents);
    }
    return sum;
  }

 private:
  /// The loops from number `at` to the boundary need a single tile.
  [[nodiscard]] bool is_single(std::size_t at, const Extents& extents) const {
    return std::all_of(loops_.begin() + static_cast<std::ptrdiff_t>(at),
                       loops_.begin() + static_cast<std::ptrdiff_t>(boundary_),
                       [&](const Loop& loop) {
                         return !has(operand_, loop.dim) || extents[index(loop.dim)] <= loop.step;
                       });
  }

  /// Elements of a tile, or of all its copies in the PEs.
  [[nodiscard]] std::uint64_t footprint(const Extents& extents) const {
    std::uint64_t elements = 1;
    for (const Dim dim : {Dim::kM, Dim::kN, Dim::kK}) {
      const std::uint64_t extent = extents[index(dim)];
      if (has(operand_, dim)) {
        elements *= extent;
      } else if (copies_) {
        elements *= pes(boundary_, dim, extent);
      }
    }
    return elements;
  }

  /// PEs that the spatial loops from number `at` on share `extent` of a dimension out to.
  [[nodiscard]] std::uint64_t pes(std::size_t at, Dim dim, std::uint64_t extent) const {
    if (extent == 0) return 0;
    while (at < loops_.size() && loops_[at].level == Level::kSpatial && loops_[at].dim != dim) ++at;
    if (at == loops_.size() || loops_[at].level != Level::kSpatial) return 1;
    const std::uint64_t step = loops_[at].step;
    const std::uint64_t whole = extent / step;
    return (whole == 0 ? 0 : whole * pes(at + 1, dim, step)) + pes(at + 1, dim, extent % step);
  }

  const std::vector<Loop>& loops_;
  const std::size_t boundary_;
  const Operand operand_;
  const bool held_, copies_;
};

void check(const LoopNest& nest) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("loop nest: ") + what);
  };
  Extents step = nest.size;
  Level level = Level::kDram;
  for (const Loop& loop : nest.loops) {
    require(loop.step >= 1, "a step of 0");
    require(loop.level >= level, "levels out of order");
    level = loop.level;
    step[index(loop.dim)] = std::min(step[index(loop.dim)], loop.step);
  }
  for (const std::uint64_t last : step) require(last == 1, "a dimension that no loop ends");
}

/// The first loop of `level` or one further inside.
std::size_t boundary_of(const LoopNest& nest, Level level) {
  const auto at = std::find_if(nest.loops.begin(), nest.loops.end(),
                               [&](const Loop& loop) { return loop.level >= level; });
  return static_cast<std::size_t>(at - nest.loops.begin());
}

std::uint64_t elements(const LoopNest& nest, Operand operand) {
  std::uint64_t count = 1;
  for (const Dim dim : {Dim::kM, Dim::kN, Dim::kK}) {
    if (has(operand, dim)) count *= nest.size[index(dim)];
  }
  return count;
}

constexpr std::array<const char*, kDims> kDimNames = {"m", "n", "k"};

}  // namespace

std::array<OperandAccesses, kOperands> count_accesses(const LoopNest& nest) {
  check(nest);
  const std::size_t chip = boundary_of(nest, Level::kBuffer);
  const std::size_t array = boundary_of(nest, Level::kSpatial);
  std::array<OperandAccesses, kOperands> accesses;
  for (std::size_t i = 0; i < kOperands; ++i) {
    const auto operand = static_cast<Operand>(i);
    const bool held = nest.held[i];
    accesses[i].dram_tiles = nest.stays[i]
                                 ? elements(nest, operand)
                                 : Counter(nest, chip, operand, true, false).count(0, nest.size);
    accesses[i].buffer = Counter(nest, array, operand, held, false).count(0, nest.size);
    accesses[i].register_fills = Counter(nest, array, operand, held, true).count(0, nest.size);
  }
  return accesses;
}

std::string to_text(const LoopNest& nest) {
  Extents extents = nest.size;
  std::string text, indent;
  Level level = Level::kRegister;
  for (const Loop& loop : nest.loops) {
    std::uint64_t& extent = extents[index(loop.dim)];
    const std::string name = kDimNames[index(loop.dim)];
    if (loop.level != level || text.empty()) {
      constexpr std::array<const char*, 4> kTitles = {
          "tiles from DRAM", "scratchpad and accumulator to PEs", "PEs side by side", "in a PE"};
      text += indent + "# " + kTitles[static_cast<std::size_t>(loop.level)] + "\n";
      level = loop.level;
    }
    const char* const kind = loop.level == Level::kSpatial ? "parallel " : "for ";
    text += indent + kind + name + " in " + std::to_string(extent);
    if (loop.step > 1) text += " by " + std::to_string(std::min(loop.step, extent));
    text += "\n";
    extent = std::min(extent, loop.step);
    indent += "  ";
  }
  return text + indent + "C[m, n] += A[m, k] * B[k, n]\n";
}

}  // namespace systole::analysis

#include "analysis/loop_nest.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/dataflow.h"
#include "hw/description/machine_file.h"

namespace systole::analysis {
namespace {

/// Part of a dimension: begin, end.
using Range = std::pair<std::uint64_t, std::uint64_t>;
using Ranges = std::array<Range, kDims>;
using Tile = std::vector<Range>;  ///< of the dimensions that an operand has

/// Runs a nest iteration by iteration and looks at every element that moves.
class Enumeration {
 public:
  explicit Enumeration(const LoopNest& nest) : nest_(nest) {
    walk(0, {Range{0, nest.size[0]}, Range{0, nest.size[1]}, Range{0, nest.size[2]}});
  }
  [[nodiscard]] const std::array<OperandAccesses, kOperands>& accesses() const { return accesses_; }
  [[nodiscard]] std::uint64_t macs() const { return macs_; }

 private:
  static Tile tile_of(Operand operand, const Ranges& ranges) {
    Tile tile;
    for (std::size_t d = 0; d < kDims; ++d) {
      if (has(operand, static_cast<Dim>(d))) tile.push_back(ranges[d]);
    }
    return tile;
  }
  static std::uint64_t elements(const Tile& tile) {
    std::uint64_t count = 1;
    for (const Range& range : tile) count *= range.second - range.first;
    return count;
  }

  template <typename Visit>
  static void iterate(const Loop& loop, const Ranges& ranges, Visit visit) {
    const auto d = static_cast<std::size_t>(loop.dim);
    for (std::uint64_t at = ranges[d].first; at < ranges[d].second; at += loop.step) {
      Ranges inner = ranges;
      inner[d] = {at, std::min(at + loop.step, ranges[d].second)};
      visit(inner);
    }
  }

  void walk(std::size_t at, const Ranges& ranges) {
    const bool on_chip = at == nest_.loops.size() || nest_.loops[at].level >= Level::kBuffer;
    const bool was_on_chip = at > 0 && nest_.loops[at - 1].level >= Level::kBuffer;
    if (on_chip && !was_on_chip) arrive(chip_, &OperandAccesses::dram_tiles, ranges);
    if (at == nest_.loops.size() || nest_.loops[at].level >= Level::kSpatial)
      return cycle(at, ranges);
    iterate(nest_.loops[at], ranges, [&](const Ranges& inner) { walk(at + 1, inner); });
  }

  void arrive(std::array<Tile, kOperands>& present, std::uint64_t OperandAccesses::*counter,
              const Ranges& ranges) {
    for (std::size_t i = 0; i < kOperands; ++i) {
      const Tile tile = tile_of(static_cast<Operand>(i), ranges);
      if (tile == present[i]) continue;
      present[i] = tile;
      accesses_[i].*counter += elements(tile);
    }
  }

  /// What all PEs do until the buffers are accessed again.
  void cycle(std::size_t at, const Ranges& ranges) {
    for (std::size_t i = 0; i < kOperands; ++i) {
      if (!nest_.held[i]) array_[i].clear();
    }
    const std::array<Tile, kOperands> before = array_;
    arrive(array_, &OperandAccesses::buffer, ranges);
    parallel(at, ranges, before);
  }

  void parallel(std::size_t at, const Ranges& ranges, const std::array<Tile, kOperands>& before) {
    if (at < nest_.loops.size() && nest_.loops[at].level == Level::kSpatial) {
      iterate(nest_.loops[at], ranges,
              [&](const Ranges& inner) { parallel(at + 1, inner, before); });
      return;
    }
    for (std::size_t i = 0; i < kOperands; ++i) {  // one PE
      if (array_[i] != before[i]) {
        accesses_[i].register_fills += elements(tile_of(static_cast<Operand>(i), ranges));
      }
    }
    within(at, ranges);
  }

  void within(std::size_t at, const Ranges& ranges) {
    if (at == nest_.loops.size()) {
      for (const Range& range : ranges) ASSERT_EQ(range.second, range.first + 1);
      ++macs_;
      return;
    }
    iterate(nest_.loops[at], ranges, [&](const Ranges& inner) { within(at + 1, inner); });
  }

  const LoopNest& nest_;
  std::array<Tile, kOperands> chip_, array_;  ///< what is there
  std::array<OperandAccesses, kOperands> accesses_;
  std::uint64_t macs_ = 0;
};

void expect_exact(const LoopNest& nest) {
  const Enumeration enumeration(nest);
  EXPECT_EQ(enumeration.macs(), nest.size[0] * nest.size[1] * nest.size[2]);
  const auto counted = count_accesses(nest);
  for (std::size_t i = 0; i < kOperands; ++i) {
    const OperandAccesses& expected = enumeration.accesses()[i];
    EXPECT_EQ(counted[i].dram_tiles, expected.dram_tiles) << i << "\n" << to_text(nest);
    EXPECT_EQ(counted[i].buffer, expected.buffer) << i << "\n" << to_text(nest);
    EXPECT_EQ(counted[i].register_fills, expected.register_fills) << i << "\n" << to_text(nest);
  }
}

TEST(LoopNest, CountsAreThoseOfAnEnumeration) {
  std::mt19937 random(1);
  const auto draw = [&](std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
  };
  for (int round = 0; round < 400; ++round) {
    LoopNest nest;
    std::array<std::uint64_t, kDims> step{};
    for (std::size_t d = 0; d < kDims; ++d) step[d] = nest.size[d] = draw(1, 13);
    for (const Level level : {Level::kDram, Level::kBuffer, Level::kSpatial, Level::kRegister}) {
      for (std::uint64_t loops = draw(0, 4); loops > 0; --loops) {
        const auto d = draw(0, kDims - 1);
        step[d] = draw(1, step[d]);
        nest.loops.push_back({static_cast<Dim>(d), step[d], level});
      }
    }
    for (std::size_t d = 0; d < kDims; ++d) {
      nest.loops.push_back({static_cast<Dim>(d), 1, Level::kRegister});
    }
    for (bool& held : nest.held) held = draw(0, 1) == 1;
    expect_exact(nest);
  }
}

TEST(LoopNest, DataflowsAreExactOnRaggedProducts) {
  const hw::Machine machine = hw::find_machine("tiny");
  for (const Stationary stationary : kStationaries) {
    for (const ProductShape& shape :
         {ProductShape{1, 1, 1}, {5, 7, 9}, {33, 18, 21}, {8, 70, 12}, {16, 16, 150}}) {
      const std::vector<Loop> loops = mapper_tiles(shape, machine).loops;
      expect_exact(make_nest(stationary, shape, machine.array, {loops, {}}));
    }
  }
}

TEST(LoopNest, RefusesWhatIsNoNest) {
  LoopNest nest;
  nest.size = {2, 2, 2};
  nest.loops = {{Dim::kM, 1, Level::kBuffer}, {Dim::kN, 1, Level::kBuffer}};
  EXPECT_THROW((void)count_accesses(nest), std::invalid_argument);  // k never ends
  nest.loops.push_back({Dim::kK, 1, Level::kDram});
  EXPECT_THROW((void)count_accesses(nest), std::invalid_argument);  // levels
  nest.loops.back() = {Dim::kK, 0, Level::kBuffer};
  EXPECT_THROW((void)count_accesses(nest), std::invalid_argument);
}

}  // namespace
}  // namespace systole::analysis

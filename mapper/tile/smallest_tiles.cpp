#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/round.h"
#include "hw/program/program.h"
#include "mapper/tile/stream_plan.h"
#include "mapper/tile/tiling_strategies.h"

namespace systole::mapper {
namespace {

constexpr std::uint64_t kSumBytes = 4;

/// The smaller one of a fold and all there is.
std::uint32_t fold(std::uint32_t unit, std::uint32_t all) { return std::min(unit, all); }

}  // namespace

SmallestTiles smallest_tiles(const hw::Machine& machine, const TilingProblem& given) {
  TilingProblem problem = given;
  problem.stream_bytes = 0;  // or slots are added as far as there is room
  const std::uint32_t cols = problem.section == 0 ? problem.n : problem.section;
  const bool whole = problem.row_wise || problem.section != 0;
  constexpr std::uint32_t kPair = 2;
  const std::uint32_t unit = problem.even_cols || problem.out_int4
                                 ? std::max(machine.array.cols, kPair)
                                 : machine.array.cols;
  Tiling t;
  t.m = problem.row_tile == 0 ? 1 : problem.row_tile;
  t.two_results = problem.in_turns;
  t.double_buffered = machine.mapper.strategy != hw::MappingStrategy::kSearch || problem.in_turns;
  constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  SmallestTiles least{kNone, kNone, kNone};
  // One tile of all needs no second slot, so that it may take less than two small ones.
  const auto take = [&](std::uint32_t c_cols, std::uint32_t n, std::uint32_t k) {
    t.c_cols = c_cols;
    t.n = k == 0 ? c_cols : n;
    t.k = k;
    const std::uint64_t sums = t.m * round_up(c_cols, machine.array.cols);
    const std::uint64_t after = std::uint64_t{c_cols} * problem.tensor_bytes;
    const std::uint64_t before = std::uint64_t{k == 0 ? c_cols : k} * problem.pre_tensor_bytes;
    least.scratchpad = std::min(least.scratchpad, stream_plan(machine, problem, t).bytes());
    least.accumulator = std::min(least.accumulator, kSumBytes * sums);
    least.operands = std::min(least.operands, hw::kOperandRows * std::max(after, before));
  };
  for (const std::uint32_t n : {fold(unit, cols), cols}) {
    for (const std::uint32_t k : {fold(k_unit(problem, machine), problem.k), problem.k}) {
      if (!whole) take(n, n, k);
      // With k outside, a C tile is as wide as it likes.
      if (whole || k < problem.k) take(cols, n, k);
    }
  }
  return least;
}

}  // namespace systole::mapper

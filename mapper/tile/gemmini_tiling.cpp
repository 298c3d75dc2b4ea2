#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/round.h"
#include "base/units.h"
#include "hw/program/program.h"
#include "mapper/tile/tiling_cost.h"
#include "mapper/tile/tiling_strategies.h"

namespace systole::mapper {
namespace {

/// Sizes in blocks: m and k of array.rows, n of array.cols.
struct Blocks {
  std::uint64_t m, n, k;
};

class Heuristic {
 public:
  Heuristic(const hw::Machine& machine, const TilingProblem& problem)
      : rows_(machine.array.rows),
        a_block_(rows_ * rows_),
        b_block_(rows_ * machine.array.cols),
        half_scratchpad_(problem.stream_bytes / 2),
        c_blocks_(std::uint64_t{machine.accumulator.kib} * 1024 / 4 / 2 / b_block_),
        parameters_(std::uint64_t{4} * problem.parameter_words * machine.array.cols),
        operand_bytes_(machine.postop.operand_kib * hw::kKib),
        problem_(problem),
        most_{ceil_div(problem.m, rows_), 0, ceil_div(problem.k, rows_)} {
    const std::uint32_t whole = problem.row_wise ? problem.n : problem.section;
    whole_rows_ = whole != 0;
    most_.n = ceil_div(whole_rows_ ? whole : problem.n, machine.array.cols);
  }

  /// Bytes of scratchpad and accumulator with one block of rows and of depth.
  [[nodiscard]] SmallestTiles smallest() const {
    const Blocks least{1, whole_rows_ ? most_.n : 1, 1};
    constexpr std::uint64_t kHalves = 2, kSumBytes = 4;
    return {kHalves * std::max(scratchpad(least), least.n * parameters_),
            kHalves * kSumBytes * least.n * b_block_, operands(least)};
  }

  [[nodiscard]] std::optional<Blocks> choose() const {
    Blocks blocks = first();
    while (blocks.n > 1 && !whole_rows_ && after(blocks) > operand_bytes_) --blocks.n;
    while (blocks.k > 1 && before(blocks) > operand_bytes_) --blocks.k;
    while (!fits(blocks)) {
      std::uint64_t& side = blocks.n > blocks.m && !whole_rows_ ? blocks.n : blocks.m;
      if (side > 1) {
        --side;
      } else if (blocks.k > 1) {
        --blocks.k;  // of arrays that are not square A may take more than B
      } else {
        return std::nullopt;
      }
    }
    for (bool grew = true; grew;) {
      grew = false;
      for (auto side : {&Blocks::n, &Blocks::m, &Blocks::k}) {
        Blocks larger = blocks;
        ++(larger.*side);
        if (larger.*side > most_.*side || !fits(larger)) continue;
        blocks = larger;
        grew = true;
      }
    }
    return blocks;
  }

 private:
  [[nodiscard]] std::uint64_t scratchpad(const Blocks& b) const {
    return b.k * (b.m * a_block_ + b.n * b_block_);
  }
  /// Bytes of 16 rows of tensor operands: of stages after the anchor, and of those before it.
  [[nodiscard]] std::uint64_t after(const Blocks& b) const {
    return hw::kOperandRows * problem_.tensor_bytes *
           std::min<std::uint64_t>(b.n * (b_block_ / rows_), problem_.n);
  }
  [[nodiscard]] std::uint64_t before(const Blocks& b) const {
    return hw::kOperandRows * problem_.pre_tensor_bytes *
           std::min<std::uint64_t>(b.k * rows_, problem_.k);
  }
  [[nodiscard]] std::uint64_t operands(const Blocks& b) const {
    return std::max(after(b), before(b));
  }
  [[nodiscard]] bool fits(const Blocks& b) const {
    return operands(b) <= operand_bytes_ && scratchpad(b) <= half_scratchpad_ &&
           b.m * b.n <= c_blocks_ && b.n * parameters_ <= half_scratchpad_;
  }
  [[nodiscard]] Blocks first() const {
    if (whole_rows_) return {1, most_.n, 1};
    const auto side = std::max<std::uint64_t>(
        static_cast<std::uint64_t>(std::sqrt(static_cast<double>(c_blocks_))), 1);
    const std::uint64_t depth = std::max<std::uint64_t>(half_scratchpad_ / 2 / b_block_ / side, 1);
    return {std::min(side, most_.m), std::min(side, most_.n), std::min(depth, most_.k)};
  }

  std::uint64_t rows_;
  std::uint64_t a_block_, b_block_;  ///< bytes
  std::uint64_t half_scratchpad_;    ///< bytes
  std::uint64_t c_blocks_;           ///< that fit half the accumulator
  std::uint64_t parameters_;         ///< bytes for a block of columns
  std::uint64_t operand_bytes_;      ///< that the operands of 16 rows may take
  const TilingProblem& problem_;
  Blocks most_;
  bool whole_rows_ = false;
};

}  // namespace

std::vector<Tiling> gemmini_tilings(const hw::Machine& machine, const TilingProblem& problem) {
  if (problem.k == 0) {
    std::vector<Tiling> best = cost_tilings(machine, problem);
    if (best.size() > 1) best.resize(1);
    return best;
  }
  const std::optional<Blocks> blocks = Heuristic(machine, problem).choose();
  if (!blocks) return {};
  Tiling t;
  t.unrolled = true;
  t.m = std::min(narrow(blocks->m * machine.array.rows), problem.m);
  t.n = t.c_cols = std::min(narrow(blocks->n * machine.array.cols),
                            problem.section == 0 ? problem.n : problem.section);
  t.k = std::min(narrow(blocks->k * machine.array.rows), problem.k);
  TilingCost(machine, problem).evaluate(t);
  return {t};
}

SmallestTiles smallest_gemmini_tiles(const hw::Machine& machine, const TilingProblem& problem) {
  return problem.k == 0 ? smallest_tiles(machine, problem) : Heuristic(machine, problem).smallest();
}

}  // namespace systole::mapper

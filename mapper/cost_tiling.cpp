#include <algorithm>
#include <vector>

#include "mapper/round.h"
#include "mapper/tiling_cost.h"
#include "mapper/tiling_strategies.h"

namespace systole::mapper {
namespace {

/// Pieces that a dimension may be cut into. More never pays: beyond it the pieces hardly change.
constexpr std::uint32_t kMostPieces = 64;

/// Sizes of the balanced cuts of `extent` into 1, 2, 3 ... pieces, multiples of `unit`, largest
/// first, none twice.
std::vector<std::uint32_t> balanced_cuts(std::uint32_t extent, std::uint32_t unit) {
  std::vector<std::uint32_t> sizes;
  const auto most = std::min<std::uint64_t>(ceil_div(extent, unit), kMostPieces);
  for (std::uint32_t pieces = 1; pieces <= most; ++pieces) {
    const auto size = static_cast<std::uint32_t>(round_up(ceil_div(extent, pieces), unit));
    if (sizes.empty() || size < sizes.back()) sizes.push_back(size);
  }
  // The smallest piece there is must be among them, or a small memory may find nothing.
  if (sizes.back() > unit) sizes.push_back(unit);
  return sizes;
}

}  // namespace

std::optional<Tiling> cost_tiling(const hw::Machine& machine, const TilingProblem& problem) {
  const TilingCost cost(machine, problem);
  std::optional<Tiling> best;
  const auto consider = [&](Tiling t) {
    if (!cost.fits(t)) return;
    cost.evaluate(t);
    if (!best || t.cycles < best->cycles ||
        (t.cycles == best->cycles && t.load_bytes < best->load_bytes)) {
      best = t;
    }
  };
  const auto k_cuts =
      problem.k == 0 ? std::vector<std::uint32_t>{0} : balanced_cuts(problem.k, machine.array.rows);
  const std::uint32_t most_cols = problem.section == 0 ? problem.n : problem.section;
  for (const std::uint32_t m : balanced_cuts(problem.m, 1)) {
    for (const std::uint32_t n : balanced_cuts(most_cols, machine.array.cols)) {
      for (const std::uint32_t k : k_cuts) {
        Tiling t;
        t.m = m;
        t.n = std::min(n, most_cols);
        t.c_cols = problem.row_wise || problem.section != 0 ? most_cols : t.n;
        t.k = std::min(k, problem.k);
        if (problem.k == 0) t.n = t.c_cols;
        for (unsigned variant = 0; variant < 32; ++variant) {
          t.m_outer = (variant & 16U) == 0;
          t.b_stays = (variant & 8U) != 0;
          t.a_stays = (variant & 4U) != 0;
          t.k_outer = (variant & 2U) != 0;
          t.two_results = (variant & 1U) == 0;
          consider(t);
        }
      }
    }
  }
  return best;
}

}  // namespace systole::mapper

#include <algorithm>
#include <array>
#include <boost/container_hash/hash.hpp>
#include <cstddef>
#include <cstdint>
#include <random>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/round.h"
#include "mapper/tile/objective.h"
#include "mapper/tile/tiling_cost.h"
#include "mapper/tile/tiling_energy.h"
#include "mapper/tile/tiling_strategies.h"

namespace systole::mapper {
namespace {

/// As many tilings are all compared; of more, as many are drawn at random.
constexpr std::uint64_t kExhaustive = 1 << 19;
constexpr int kDrawn = 4096;
/// Tilings that a local search starts from.
constexpr std::size_t kStarts = 8;
constexpr std::uint64_t kSeed = 1;

/// Sizes of one dimension of a tile: multiples of `unit` and, last, the whole extent.
class Sizes {
 public:
  Sizes(std::uint32_t extent, std::uint32_t unit)
      : extent_(extent), unit_(unit), count_(extent == 0 ? 1 : ceil_div(extent, unit)) {}

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint32_t at(std::uint64_t index) const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(extent_, (index + 1) * unit_));
  }
  [[nodiscard]] std::uint64_t index(std::uint32_t size) const {
    return size == 0 ? 0 : ceil_div(size, unit_) - 1;
  }

 private:
  std::uint32_t extent_, unit_;
  std::uint64_t count_;
};

class Search {
 public:
  Search(const hw::Machine& machine, const TilingProblem& problem)
      : machine_(machine),
        problem_(problem),
        cost_(machine, problem),
        most_cols_(problem.section == 0 ? problem.n : problem.section),
        m_(problem.row_tile == 0 ? Sizes(problem.m, 1) : Sizes(problem.row_tile, problem.row_tile)),
        n_(problem.k == 0 && problem.row_wise ? Sizes(most_cols_, most_cols_)
                                              : Sizes(most_cols_, machine.array.cols)),
        k_(problem.k, k_unit(problem, machine)) {}

  std::vector<Tiling> run() {
    for (const Tiling& start : cost_tilings(machine_, problem_)) keep(place(start), start);
    if (m_.count() * n_.count() * k_.count() * kVariants <= kExhaustive) {
      for (std::uint64_t m = 0; m < m_.count(); ++m) {
        for (std::uint64_t n = 0; n < n_.count(); ++n) {
          for (std::uint64_t k = 0; k < k_.count(); ++k) {
            for (std::uint64_t v = 0; v < kVariants; ++v) consider({m, n, k, v});
          }
        }
      }
    } else {
      for (std::uint64_t v = 0; v < kVariants; ++v) consider_new({0, 0, 0, v});  // the smallest
      std::mt19937_64 random(kSeed);
      // Small sizes more often: most large ones do not fit.
      const auto below = [&](std::uint64_t count) { return random() % (1 + random() % count); };
      for (int i = 0; i < kDrawn; ++i) {
        const std::uint64_t m = below(m_.count()), n = below(n_.count()), k = below(k_.count());
        consider_new({m, n, k, random() % kVariants});
      }
      improve();
    }
    std::vector<Tiling> best;
    for (const Found& found : best_) {
      best.push_back(found.tiling);
      best.back().tried = tried_;
    }
    return best;
  }

 private:
  static constexpr std::size_t kSizes = 3;
  /// Orders of the loops, operands that stay, single and double buffers of operands and results.
  static constexpr std::uint64_t kVariants = 128;
  /// Indices of sizes m, n and k, and variant.
  using Point = std::array<std::uint64_t, kSizes + 1>;
  using Points = std::unordered_set<Point, boost::hash<Point>>;
  struct Found {
    double value;
    std::uint64_t load_bytes;
    Point point;
    Tiling tiling;

    bool operator<(const Found& other) const {
      return std::tie(value, load_bytes, point) <
             std::tie(other.value, other.load_bytes, other.point);
    }
  };

  [[nodiscard]] Tiling tiling(const Point& point) const {
    Tiling t;
    t.m = m_.at(point[0]);
    t.n = n_.at(point[1]);
    t.c_cols = problem_.row_wise || problem_.section != 0 ? most_cols_ : t.n;
    t.k = problem_.k == 0 ? 0 : k_.at(point[2]);
    if (problem_.k == 0) t.n = t.c_cols;
    t.m_outer = (point[3] & 1U) == 0;
    t.double_buffered = (point[3] & 2U) == 0;
    t.a_stays = (point[3] & 4U) != 0;
    t.b_stays = (point[3] & 8U) != 0;
    t.k_outer = (point[3] & 16U) != 0;
    t.two_results = t.double_buffered && (point[3] & 32U) == 0;
    t.far_ahead = (point[3] & 64U) != 0;
    return t;
  }
  [[nodiscard]] Point place(const Tiling& t) const {
    const unsigned variant = (t.m_outer ? 0U : 1U) | (t.a_stays ? 4U : 0U) | (t.b_stays ? 8U : 0U) |
                             (t.k_outer ? 16U : 0U) | (t.two_results ? 0U : 32U) |
                             (t.far_ahead ? 64U : 0U);
    return {m_.index(t.m), n_.index(t.n), k_.index(t.k), variant};
  }

  /// Of a point that may have been considered before.
  bool consider_new(const Point& point) { return seen_.insert(point).second && consider(point); }
  /// Keeps it if it is one of the best.
  bool consider(const Point& point) {
    ++tried_;
    Tiling t = tiling(point);
    if (!cost_.evaluate_if_fits(t)) return false;
    return keep(point, t);
  }
  bool keep(const Point& point, Tiling t) {
    t.energy = tiling_energy(machine_, problem_, t);
    const double value = objective_of(machine_.mapper, static_cast<double>(t.cycles), t.energy);
    Found found{value, t.load_bytes, point, t};
    if (best_.size() == kStarts && !(found < best_.back())) return false;
    best_.insert(std::upper_bound(best_.begin(), best_.end(), found), std::move(found));
    if (best_.size() > kStarts) best_.pop_back();
    return true;
  }

  /// Steps from the best ones to whatever is better, until nothing around them is.
  void improve() {
    Points expanded;
    for (bool found = true; found;) {
      found = false;
      const std::vector<Found> starts = best_;
      for (const Found& start : starts) {
        if (!expanded.insert(start.point).second) continue;
        for (const Point& next : neighbours(start.point)) found = consider_new(next) || found;
      }
    }
  }

  /// One or two dimensions a step, a doubling, a halving or a balanced cut away, in any variant.
  [[nodiscard]] std::vector<Point> neighbours(Point point) const {
    std::vector<Point> points;
    for (point[kSizes] = 0; point[kSizes] < kVariants; ++point[kSizes]) {
      points.push_back(point);
      for (std::size_t d = 0; d < kSizes; ++d) {
        for (const Point& moved : moves(point, d)) {
          points.push_back(moved);
          for (std::size_t other = d + 1; other < kSizes; ++other) {
            const std::vector<Point> both = moves(moved, other);
            points.insert(points.end(), both.begin(), both.end());
          }
        }
      }
    }
    return points;
  }
  [[nodiscard]] std::vector<Point> moves(const Point& point, std::size_t d) const {
    const std::uint64_t count = std::array{m_.count(), n_.count(), k_.count()}[d];
    const std::uint64_t at = point[d], size = at + 1, pieces = ceil_div(count, size);
    std::vector<Point> points;
    for (const std::uint64_t next : {at - 1, at + 1, 2 * size - 1, size / 2 - 1,
                                     ceil_div(count, pieces) - 1, ceil_div(count, pieces + 1) - 1,
                                     ceil_div(count, std::max<std::uint64_t>(pieces, 2) - 1) - 1}) {
      if (next >= count || next == at) continue;  // below 0 is large
      points.push_back(point);
      points.back()[d] = next;
    }
    return points;
  }

  const hw::Machine& machine_;
  const TilingProblem& problem_;
  const TilingCost cost_;
  const std::uint32_t most_cols_;
  const Sizes m_, n_, k_;
  Points seen_;  ///< none where all are compared: each of them is met once
  std::uint64_t tried_ = 0;
  std::vector<Found> best_;  ///< at most kStarts, best first
};

}  // namespace

std::vector<Tiling> search_tilings(const hw::Machine& machine, const TilingProblem& problem) {
  return Search(machine, problem).run();
}

}  // namespace systole::mapper

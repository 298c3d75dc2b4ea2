#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "base/round.h"
#include "mapper/tile/stream_plan.h"
#include "mapper/tile/tiling_cost.h"
#include "mapper/tile/tiling_strategies.h"

namespace systole::mapper {
namespace {

/// Sizes of the balanced cuts of `extent` into 1, 2, 3 ... pieces, multiples of `unit`, largest
/// first, none twice, down to the unit. Of many pieces not every number is tried: their sizes
/// hardly differ. With steps of a third of their number, in place of a quarter, from eight on,
/// BERT-Base at 512 is mapped in half the time.
std::vector<std::uint32_t> balanced_cuts(std::uint32_t extent, std::uint32_t unit) {
  constexpr std::uint64_t kFew = 8, kStepOfFew = 4, kStepOfMany = 3;
  std::vector<std::uint32_t> sizes;
  const std::uint64_t most = ceil_div(extent, unit);
  for (std::uint64_t pieces = 1; pieces <= most;
       pieces += ceil_div(pieces, pieces < kFew ? kStepOfFew : kStepOfMany)) {
    const std::uint64_t size = round_up(ceil_div(extent, pieces), unit);
    if (sizes.empty() || size < sizes.back()) sizes.push_back(static_cast<std::uint32_t>(size));
  }
  // The smallest piece there is must be among them, or a small memory may find nothing.
  if (sizes.back() > unit) sizes.push_back(unit);
  return sizes;
}

/// Depths of tiles, multiples of `unit` before those that are not.
std::vector<std::uint32_t> cuts_of_k(std::uint32_t k, std::uint32_t unit, bool shallow) {
  if (k == 0) return {0};
  constexpr std::uint32_t kLeast = 32, kPieces = 4;
  std::vector<std::uint32_t> cuts = balanced_cuts(k, unit);
  for (std::uint32_t pieces = 2; shallow && pieces <= kPieces; pieces *= 2) {
    if (unit / pieces >= kLeast && unit / pieces < k) cuts.push_back(unit / pieces);
  }
  return cuts;
}

/// Orders of the loops, operands that stay, room for results and for what comes in next: a bit
/// each.
constexpr unsigned kVariants = 64;
constexpr unsigned kMInside = 1, kOneResult = 2, kKOuter = 4, kAStays = 8, kBStays = 16,
                   kFarAhead = 32;

void set_variant(Tiling& t, unsigned variant) {
  t.m_outer = (variant & kMInside) == 0;
  t.two_results = (variant & kOneResult) == 0;
  t.k_outer = (variant & kKOuter) != 0;
  t.a_stays = (variant & kAStays) != 0;
  t.b_stays = (variant & kBStays) != 0;
  t.far_ahead = (variant & kFarAhead) != 0;
}

/// The variants that differ for tiles of one size, in rising order.
struct Variants {
  std::array<std::uint8_t, kVariants> of{};
  std::size_t count = 0;

  [[nodiscard]] const std::uint8_t* begin() const { return of.data(); }
  [[nodiscard]] const std::uint8_t* end() const { return of.data() + count; }
};

/// Of tiles of the size of `t`, in so many parts: each bit means something or not whatever the
/// others are.
Variants variants_of(Tiling t, std::uint32_t parts, const TilingCost& cost) {
  unsigned bits = kOneResult;
  for (const unsigned bit : {kMInside, kKOuter, kAStays, kBStays, kFarAhead}) {
    set_variant(t, bit);
    if (cost.is_distinct(t)) bits |= bit;
  }
  Variants variants;
  unsigned variant = 0;
  do {
    if (parts == 1 || (variant & kKOuter) != 0) {
      variants.of[variants.count++] = static_cast<std::uint8_t>(variant);
    }
    variant = ((variant | ~bits) + 1) & bits;
  } while (variant != 0);
  return variants;
}

/// Variants of tiles of one size that differ in their commands: what may stay or come in early
/// makes no difference where there is room for it anyway.
class Different {
 public:
  /// False if another one gives the same commands.
  bool add(const Tiling& t, const StreamPlan& plan) {
    const Key key{t.m_outer, t.k_outer, t.two_results, t.b_stays, plan.a.count, plan.b.count};
    const auto end = known_.begin() + count_;
    if (std::find(known_.begin(), end, key) != end) return false;
    known_[count_++] = key;
    return true;
  }

 private:
  using Key = std::tuple<bool, bool, bool, bool, std::uint64_t, std::uint64_t>;
  std::array<Key, kVariants> known_;
  std::size_t count_ = 0;
};

bool cheaper(const Tiling& a, const Tiling& b) {
  return a.cycles != b.cycles ? a.cycles < b.cycles : a.load_bytes < b.load_bytes;
}

/// The best tilings of each variant.
class Best {
 public:
  explicit Best(std::size_t most) : most_(most) {}

  /// What is slower than this is no candidate, whatever else is found.
  [[nodiscard]] double worst() const { return kWorst * least_; }
  /// Nor is what is slower than this: so many others are not that one will stay one.
  [[nodiscard]] double limit() const { return limit_; }
  /// The same for a variant.
  [[nodiscard]] double limit(unsigned variant) const {
    const std::vector<Tiling>& all = best_[variant];
    return all.size() < kEach ? limit_ : std::min(limit_, static_cast<double>(all.back().cycles));
  }
  void add(const Tiling& t, unsigned variant) {
    if (static_cast<double>(t.cycles) > limit(variant)) return;
    least_ = std::min(least_, static_cast<double>(t.cycles));
    std::vector<Tiling>& all = best_[variant];
    if (all.size() == kEach && !cheaper(t, all.back())) return;
    all.insert(std::upper_bound(all.begin(), all.end(), t, cheaper), t);
    if (all.size() > kEach) all.pop_back();
    find_limit();
  }
  /// The cheapest of all variants, the cheapest first.
  [[nodiscard]] std::vector<Tiling> all() const {
    std::vector<Tiling> result;
    for (const std::vector<Tiling>& some : best_) {
      result.insert(result.end(), some.begin(), some.end());
    }
    std::stable_sort(result.begin(), result.end(), cheaper);
    if (result.size() > most_) result.resize(most_);
    return result;
  }

 private:
  static constexpr std::size_t kEach = 2;
  static constexpr double kWorst = 1.5;

  // A tiling only gives way to a cheaper one: there will always be as many that are no slower than
  // these.
  void find_limit() {
    limit_ = worst();
    std::array<std::uint64_t, kVariants * kEach> cycles;
    std::size_t count = 0;
    for (const std::vector<Tiling>& some : best_) {
      for (const Tiling& t : some) cycles[count++] = t.cycles;
    }
    if (count < most_) return;
    const auto last = cycles.begin() + most_ - 1;
    std::nth_element(cycles.begin(), last, cycles.begin() + count);
    limit_ = std::min(limit_, static_cast<double>(*last));
  }

  const std::size_t most_;
  double least_ = std::numeric_limits<double>::max() / kWorst;
  double limit_ = std::numeric_limits<double>::max();
  std::array<std::vector<Tiling>, kVariants> best_;
};

/// The cheapest tilings by some cycles; of each width only the cheapest one, if they are to differ.
class Few {
 public:
  Few(std::size_t most, std::uint64_t Tiling::*cycles, bool differ = false)
      : most_(most), cycles_(cycles), differ_(differ) {}

  /// What is slower than this is none of them.
  [[nodiscard]] double limit() const {
    if (most_ == 0) return 0;
    return few_.size() < most_ ? std::numeric_limits<double>::max()
                               : static_cast<double>(few_.back().*cycles_);
  }
  void add(const Tiling& t) {
    const auto before = [&](const Tiling& a, const Tiling& b) {
      return a.*cycles_ != b.*cycles_ ? a.*cycles_ < b.*cycles_ : a.load_bytes < b.load_bytes;
    };
    if (most_ == 0 || (few_.size() == most_ && !before(t, few_.back()))) return;
    if (differ_) {
      const auto same = std::find_if(few_.begin(), few_.end(), [&](const Tiling& other) {
        return other.c_cols == t.c_cols && other.n == t.n;
      });
      if (same != few_.end() && !before(t, *same)) return;
      if (same != few_.end()) few_.erase(same);
    }
    few_.insert(std::upper_bound(few_.begin(), few_.end(), t, before), t);
    if (few_.size() > most_) few_.pop_back();
  }
  /// Those that are not in `all` yet, and load fewer bytes than `limit`.
  void append_to(std::vector<Tiling>& all, std::uint64_t limit = UINT64_MAX) const {
    for (const Tiling& t : few_) {
      if (t.load_bytes >= limit) continue;
      const auto is_same = [&](const Tiling& other) { return same_tiles(other, t); };
      if (std::none_of(all.begin(), all.end(), is_same)) all.push_back(t);
    }
  }

 private:
  const std::size_t most_;
  std::uint64_t Tiling::*const cycles_;
  const bool differ_;
  std::vector<Tiling> few_;
};

/// Whether both operands are loaded a whole number of times: nothing of a sweep is found on chip.
bool is_whole(double a_loads, double b_loads) {
  return a_loads == std::floor(a_loads) && b_loads == std::floor(b_loads);
}

}  // namespace

std::vector<Tiling> cost_tilings(const hw::Machine& machine, const TilingProblem& problem,
                                 Wanted wanted) {
  const TilingCost cost(machine, problem);
  Best best(wanted.best);
  // Requests hide less latency than the model has it where tiles are small. What is best if half as
  // many are in flight is offered, too: it must not get lost once more of them may be.
  Few cautious(wanted.cautious, &Tiling::cautious_cycles);
  // Where results that leave by parts are better, a replay knows best.
  Few by_parts(wanted.by_parts, &Tiling::cycles);
  // The model knows no banks: what loads less is offered beside the others, not in their place.
  // Gemmini's library always begins with the first tile.
  const bool is_gemmini = machine.mapper.strategy == hw::MappingStrategy::kGemmini;
  Few by_sweeps(is_gemmini ? 0 : wanted.by_sweeps, &Tiling::cycles);
  const auto sweeps_limit = [&] { return std::min(by_sweeps.limit(), best.worst()); };
  // Where the scratchpad is small for the array, tiles of a half or a quarter of its rows leave
  // room for larger C tiles, which load less. What the array loses by them a replay knows best.
  const std::size_t most_shallow = is_gemmini ? 0 : wanted.shallow;
  Few shallow(most_shallow, &Tiling::cycles);
  // Where tiles come in beside those that the array reads, what loads less may cost more.
  const bool wanted_banks = !is_gemmini && wanted.by_banks != 0;
  Few by_banks(wanted_banks ? wanted.by_banks : 0, &Tiling::cycles);
  // Those that are expected to be best may all be much alike.
  Few by_width(wanted_banks ? wanted.by_width : 0, &Tiling::cycles, true);
  const auto banks_limit = [&] {
    return std::min(std::max(by_banks.limit(), by_width.limit()), best.worst());
  };
  const std::uint32_t unit = problem.k == 0 ? 1 : k_unit(problem, machine);
  const auto k_cuts = cuts_of_k(problem.k, unit, most_shallow != 0);
  const std::uint32_t most_cols = problem.section == 0 ? problem.n : problem.section;
  const auto m_cuts = problem.row_tile == 0 ? balanced_cuts(problem.m, 1)
                                            : std::vector<std::uint32_t>{problem.row_tile};
  const auto n_cuts = balanced_cuts(most_cols, machine.array.cols);
  for (const std::uint32_t m : m_cuts) {
    for (const std::uint32_t n : n_cuts) {
      for (const std::uint32_t k : k_cuts) {
        Tiling t;
        t.m = m;
        t.n = std::min(n, most_cols);
        t.k = std::min(k, problem.k);
        const bool whole = problem.row_wise || problem.section != 0;
        // With k outside, A comes in once for all parts of a C tile, however narrow they are.
        const std::uint32_t most_parts =
            whole || problem.k == 0 ? 1 : narrow(ceil_div(most_cols, t.n));
        for (std::uint32_t parts = 1; parts <= most_parts; parts += (parts + 3) / 4) {
          t.c_cols = whole ? most_cols : std::min(parts * t.n, most_cols);
          if (problem.k == 0) t.n = t.c_cols;
          // Rings that are fed row tile by row tile take parts of whole rows alone.
          if (problem.by_rows && parts != 1 && t.c_cols < problem.n) continue;
          if (!cost.may_fit_twice(t)) continue;
          const std::uint64_t array_cycles = cost.array_cycles(t);
          if (static_cast<double>(array_cycles) > best.worst()) continue;
          const TilingCost::Shape shape = cost.shape(t, array_cycles);
          if (t.k < unit && t.k < problem.k) {
            for (const std::uint8_t variant : variants_of(t, parts, cost)) {
              set_variant(t, variant);
              if (shape.loading.least_of(t) > std::min(shallow.limit(), best.worst())) continue;
              if (cost.least_of(t, shape).cycles > shallow.limit()) continue;
              if (cost.evaluate_if_fits(t, shape)) shallow.add(t);
            }
            continue;
          }
          if (shape.loading.least >
                  std::max({best.limit(), by_parts.limit(), sweeps_limit(), banks_limit()}) &&
              shape.cautious.least > cautious.limit()) {
            continue;
          }
          Different different;
          for (const std::uint8_t variant : variants_of(t, parts, cost)) {
            set_variant(t, variant);
            if (problem.may_leave_in_parts(t) && shape.loading.least <= by_parts.limit()) {
              Tiling in_parts = t;
              in_parts.in_parts = true;
              const bool may_be_one = cost.least_of(in_parts, shape).cycles <= by_parts.limit();
              if (may_be_one && cost.evaluate_if_fits(in_parts, shape)) by_parts.add(in_parts);
            }
            if (t.k < problem.k && shape.loading.least_of(t) <= sweeps_limit()) {
              Tiling swept = t;
              swept.back_and_forth = true;
              const bool fits = cost.evaluate_if_fits(swept, shape);
              if (fits && !is_whole(swept.a_loads, swept.b_loads)) by_sweeps.add(swept);
            }
            const TilingCost::Least least = cost.least_of(t, shape);
            const bool may_be_best =
                least.cycles <= best.limit(variant) || least.cautious <= cautious.limit();
            const bool may_be_apart = wanted_banks && least.cycles <= banks_limit();
            if (!may_be_best && !may_be_apart) continue;
            const std::optional<StreamPlan> plan = cost.plan(t);
            if (!plan || !different.add(t, *plan)) continue;
            if (may_be_apart) {
              Tiling apart = t;
              apart.banks_apart = true;
              const std::optional<StreamPlan> own = cost.plan(apart);
              if (own && has_banks_apart(*own, machine, problem)) {
                cost.evaluate(apart, *own, shape);
                by_banks.add(apart);
                by_width.add(apart);
              }
            }
            if (!may_be_best) continue;
            cost.evaluate(t, *plan, shape);
            best.add(t, variant);
            cautious.add(t);
          }
        }
      }
    }
  }
  std::vector<Tiling> all = best.all();
  cautious.append_to(all);
  by_parts.append_to(all);
  by_banks.append_to(all);
  by_width.append_to(all);
  if (all.empty()) return all;
  // Where the fastest loads no more, there is nothing to find on chip.
  const std::uint64_t limit = all.front().load_bytes;
  by_sweeps.append_to(all, limit);
  shallow.append_to(all, limit);
  return all;
}

}  // namespace systole::mapper

#include "hw/attention/timing/global_columns.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "hw/attention/sparse_head.h"
#include "hw/attention/timing/attention_cycles.h"

namespace systole::hw {
namespace {

/// Cycles that a number of global columns cannot beat, and that number.
using Candidate = std::pair<std::uint64_t, std::size_t>;

/// Counts the scores that follow each other on the lines of the sparser engine at the least, while
/// columns are added to it in the order of growing `ranked`.
class LeastScores {
 public:
  LeastScores(const std::vector<std::uint64_t>& ranked, SparserMapping mapping)
      : ranked_(ranked), mapping_(mapping) {}

  /// With the columns from `first` on, one more than before, and `lines` lines.
  std::uint64_t with_column(std::size_t first, std::uint32_t lines) {
    if (lines == 0) return 0;
    if (mapping_ == SparserMapping::kColumnPerLine) return ranked_[first];
    // Fewer columns never get more lines: that many new sums at most, not one for each column.
    const std::size_t counted_from = lines == lines_ ? first + 1 : ranked_.size();
    if (lines != lines_) scores_ = 0;
    for (std::size_t c = first; c < counted_from; ++c) scores_ += (ranked_[c] + lines - 1) / lines;
    lines_ = lines;
    return scores_;
  }

 private:
  const std::vector<std::uint64_t>& ranked_;
  SparserMapping mapping_;
  std::uint32_t lines_ = 0;
  std::uint64_t scores_ = 0;
};

/// `ranked`: kept cells of the columns, falling. [keys + 1] candidates.
std::vector<Candidate> candidates(const std::vector<std::uint64_t>& ranked, std::size_t queries,
                                  std::size_t dim, const Machine::Attention& array) {
  // Lines that share all kept cells as if these were one column lose nothing to imbalance.
  Machine::Attention balanced = array;
  balanced.mapping = SparserMapping::kBroadcast;
  LeastScores least(ranked, array.mapping);
  std::size_t global = ranked.size();
  SddmmWork work{queries, global, {0}};
  std::vector<Candidate> found{{sddmm_cycles(work, dim, balanced).total(), global}};
  while (global > 0) {
    work.dense_columns = --global;
    work.sparse_column_kept.front() += ranked[global];
    const PhaseCycles phase = sddmm_cycles(work, dim, balanced);
    const std::uint64_t scores = least.with_column(global, phase.split.sparse);
    found.emplace_back(std::max(phase.total(), scores * line_passes(dim, array)), global);
  }
  return found;
}

}  // namespace

GlobalColumns best_global_columns(const std::vector<std::uint32_t>& column_kept,
                                  std::size_t queries, std::size_t dim,
                                  const Machine::Attention& array) {
  const std::size_t keys = column_kept.size();
  if (keys > kMaxSparseTokens || queries > kMaxSparseTokens) {
    throw std::invalid_argument("global columns: expected at most 65535 keys and queries");
  }
  std::vector<std::uint16_t> order(keys);
  std::iota(order.begin(), order.end(), std::uint16_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::uint16_t a, std::uint16_t b) {
    return column_kept[a] > column_kept[b];
  });
  std::vector<std::uint64_t> ranked(keys);
  for (std::size_t i = 0; i < keys; ++i) ranked[i] = column_kept[order[i]];

  std::vector<Candidate> by_bound = candidates(ranked, queries, dim, array);
  std::sort(by_bound.begin(), by_bound.end());
  Candidate best{~std::uint64_t{0}, 0};  // cycles, global columns
  for (const auto& [bound, global] : by_bound) {
    if (Candidate{bound, global} > best) break;  // as are all after it
    const auto first = ranked.begin() + static_cast<std::ptrdiff_t>(global);
    const SddmmWork work{queries, global, {first, ranked.end()}};
    best = std::min(best, Candidate{sddmm_cycles(work, dim, array).total(), global});
  }
  order.resize(best.second);
  std::sort(order.begin(), order.end());
  return {order, best.first};
}

}  // namespace systole::hw

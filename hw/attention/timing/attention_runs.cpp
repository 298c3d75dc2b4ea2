#include "hw/attention/timing/attention_runs.h"

#include <algorithm>

#include "hw/attention/timing/attention_cycles.h"
#include "hw/attention/timing/line_schedule.h"
#include "hw/number/unit_depths.h"

namespace systole::hw {
namespace {

/// Items of a deal to `lines` lines that go to line number `line`.
std::uint64_t dealt(std::uint64_t items, std::uint64_t line, std::uint64_t lines) {
  return (items + lines - 1 - line) / lines;
}

LineRuns no_runs(const SparseHead& head, const Machine::Attention& attention) {
  return {allocate_lines(head, attention), std::vector<std::vector<LineRun>>(attention.lines)};
}

// A block of queries meets all columns before the next block comes, so that a Q row passes once.
void share_dense_columns(const SparseHead& head, LineRuns& runs) {
  const std::size_t columns = head.dense_columns.size();
  for (std::size_t query = 0; columns != 0 && query < head.queries; ++query) {
    std::vector<LineRun>& line = runs.lines[query % runs.split.dense];
    for (std::size_t column = 0; column < columns; ++column) {
      line.push_back({query / runs.split.dense * columns + column, 1, column,
                      column * head.queries + query, 1});
    }
  }
}

void share_sparse_columns(const SparseHead& head, LineRuns& runs) {
  const std::uint32_t lines = runs.split.sparse;
  std::uint64_t start = 0;
  for (std::size_t column = 0; column < head.sparse_columns.size(); ++column) {
    const std::size_t kept = head.column_kept(column);
    if (kept == 0) continue;
    for (std::uint32_t line = 0; line < std::min<std::size_t>(lines, kept); ++line) {
      runs.lines[runs.split.dense + line].push_back(
          {start, dealt(kept, line, lines), column, head.column_pointers[column] + line, lines});
    }
    start += dealt(kept, 0, lines);
  }
}

/// The items of a schedule, `pointers` naming their cells: item i has those of entry i / parts.
void place_sparse_items(const LineSchedule& schedule, const std::vector<std::uint32_t>& pointers,
                        std::size_t parts, LineRuns& runs) {
  for (std::size_t line = 0; line < schedule.items.size(); ++line) {
    std::uint64_t start = 0;
    for (const std::uint32_t item : schedule.items[line]) {
      const std::uint32_t first = pointers[item / parts];
      const std::uint64_t count = pointers[item / parts + 1] - first;
      runs.lines[runs.split.dense + line].push_back({start, count, item, first, 1});
      start += count;
    }
  }
}

void share_dense_groups(const SparseHead& head, std::size_t groups, LineRuns& runs) {
  const std::size_t columns = head.dense_columns.size();
  const std::uint32_t lines = runs.split.dense;
  if (lines == 0) return;
  for (std::size_t item = 0; item < head.queries * groups; ++item) {
    runs.lines[item % lines].push_back(
        {item / lines * columns, columns, item, item / groups, head.queries});
  }
}

}  // namespace

std::uint64_t LineRuns::steps() const {
  std::uint64_t steps = 0;
  for (const std::vector<LineRun>& line : lines) {
    if (!line.empty()) steps = std::max(steps, line.back().end());
  }
  return steps;
}

std::uint64_t line_cycles(const std::vector<LineRun>& runs, std::uint64_t step_cycles) {
  std::uint64_t steps = 0;
  for (const LineRun& run : runs) steps += run.count;
  return steps == 0 ? 0 : steps * step_cycles + unit_depth::kWalk + unit_depth::kMac;
}

LineRuns sddmm_runs(const SparseHead& head, std::size_t dim, const Machine::Attention& attention) {
  LineRuns runs = no_runs(head, attention);
  share_dense_columns(head, runs);
  if (attention.mapping == SparserMapping::kColumnPerLine) {
    place_sparse_items(sddmm_column_schedule(head, dim, attention), head.column_pointers, 1, runs);
  } else {
    share_sparse_columns(head, runs);
  }
  return runs;
}

LineRuns spmm_runs(const SparseHead& head, const SparseRows& rows, std::size_t value_dim,
                   const Machine::Attention& attention) {
  const std::size_t groups = line_passes(value_dim, attention);
  LineRuns runs = no_runs(head, attention);
  share_dense_groups(head, groups, runs);
  place_sparse_items(spmm_group_schedule(head, value_dim, attention), rows.pointers, groups, runs);
  return runs;
}

}  // namespace systole::hw

#include "hw/attention/timing/attention_cycles.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace systole::hw {
namespace {

/// `items` of equal cost dealt out in turn to the lines [begin, begin + lines) of `busy`. Returns
/// the cycles until the lines, which start the next deal together, are done. Work needs a line.
std::uint64_t deal(std::uint64_t items, std::uint64_t cost, std::uint32_t begin,
                   std::uint32_t lines, std::vector<std::uint64_t>& busy) {
  if (items * cost == 0) return 0;
  for (std::uint32_t line = 0; line < lines; ++line) {
    busy[begin + line] += (items / lines + (line < items % lines ? 1 : 0)) * cost;
  }
  return (items + lines - 1) / lines * cost;
}

LineSplit allocate_lines(const SddmmWork& work, const Machine::Attention& array) {
  const auto& kept = work.sparse_column_kept;
  return split_lines(array.lines, work.queries * work.dense_columns,
                     std::accumulate(kept.begin(), kept.end(), std::uint64_t{0}));
}

LineSchedule schedule_columns(const SddmmWork& work, std::uint64_t score_cycles,
                              std::uint32_t lines) {
  std::vector<std::uint64_t> costs = work.sparse_column_kept;
  for (std::uint64_t& cost : costs) cost *= score_cycles;
  return schedule_longest_first(costs, lines);
}

LineSchedule schedule_groups(const SparseHead& head, std::uint64_t groups, std::uint32_t lines) {
  std::vector<std::uint64_t> row_kept(head.queries, 0);
  for (const std::uint16_t query : head.row_indices) ++row_kept[query];
  std::vector<std::uint64_t> costs;
  costs.reserve(head.queries * groups);
  for (const std::uint64_t kept : row_kept) costs.insert(costs.end(), groups, kept);
  return schedule_longest_first(costs, lines);
}

PhaseCycles idle_phase(LineSplit split, const Machine::Attention& array) {
  return {split, 0, 0, std::vector<std::uint64_t>(array.lines, 0)};
}

void add_sparser(const LineSchedule& schedule, PhaseCycles& phase) {
  phase.sparse = schedule.cycles();
  std::copy(schedule.busy.begin(), schedule.busy.end(), phase.busy.begin() + phase.split.dense);
}

}  // namespace

std::uint64_t PhaseCycles::busy_cycles() const {
  return std::accumulate(busy.begin(), busy.end(), std::uint64_t{0});
}

std::uint64_t line_passes(std::size_t features, const Machine::Attention& array) {
  check_attention(array);
  if (features == 0) throw std::invalid_argument("attention cycles: expected at least 1 feature");
  return (features + array.macs_per_line - 1) / array.macs_per_line;
}

LineSplit allocate_lines(const SparseHead& head, const Machine::Attention& array) {
  check_attention(array);
  return split_lines(array.lines, head.dense_cells(), head.sparse_kept());
}

SddmmWork sddmm_work(const SparseHead& head) {
  SddmmWork work{head.queries, head.dense_columns.size(), {}};
  for (std::size_t c = 0; c < head.sparse_columns.size(); ++c) {
    work.sparse_column_kept.push_back(head.column_kept(c));
  }
  return work;
}

PhaseCycles sddmm_cycles(const SddmmWork& work, std::size_t dim, const Machine::Attention& array) {
  const std::uint64_t score_cycles = line_passes(dim, array);
  const LineSplit split = allocate_lines(work, array);
  PhaseCycles phase = idle_phase(split, array);
  phase.dense = deal(work.queries, score_cycles * work.dense_columns, 0, split.dense, phase.busy);
  if (array.mapping == SparserMapping::kColumnPerLine) {
    add_sparser(schedule_columns(work, score_cycles, split.sparse), phase);
  } else {
    for (const std::uint64_t kept : work.sparse_column_kept) {
      phase.sparse += deal(kept, score_cycles, split.dense, split.sparse, phase.busy);
    }
  }
  return phase;
}

PhaseCycles sddmm_cycles(const SparseHead& head, std::size_t dim, const Machine::Attention& array) {
  return sddmm_cycles(sddmm_work(head), dim, array);
}

LineSchedule sddmm_column_schedule(const SparseHead& head, std::size_t dim,
                                   const Machine::Attention& array) {
  return schedule_columns(sddmm_work(head), line_passes(dim, array),
                          allocate_lines(head, array).sparse);
}

PhaseCycles spmm_cycles(const SparseHead& head, std::size_t value_dim,
                        const Machine::Attention& array) {
  const std::uint64_t groups = line_passes(value_dim, array);
  const LineSplit split = allocate_lines(head, array);
  PhaseCycles phase = idle_phase(split, array);
  phase.dense = deal(head.queries * groups, head.dense_columns.size(), 0, split.dense, phase.busy);
  add_sparser(schedule_groups(head, groups, split.sparse), phase);
  return phase;
}

LineSchedule spmm_group_schedule(const SparseHead& head, std::size_t value_dim,
                                 const Machine::Attention& array) {
  return schedule_groups(head, line_passes(value_dim, array), allocate_lines(head, array).sparse);
}

std::uint64_t score_latency(const Chain& chain) {
  return std::accumulate(
      chain.stages.begin(), chain.stages.end() - 1, std::uint64_t{0},
      [](std::uint64_t sum, const Stage& stage) { return sum + stage_latency(stage); });
}

std::uint64_t softmax_cycles(const SparseHead& head, const Machine::Attention& array) {
  check_attention(array);
  std::uint64_t cycles = 0;
  for (const std::uint64_t kept : row_kept(head)) {
    cycles += (kept + array.softmax_lanes - 1) / array.softmax_lanes;
  }
  return cycles;
}

}  // namespace systole::hw

#include "testbench/rtl/attention/line_work.h"

namespace systole::testbench {
namespace {

std::uint16_t narrow(std::size_t index) { return static_cast<std::uint16_t>(index); }

LineWork sparse_scores(const hw::SparseHead& head, const hw::AttentionOperands& operands,
                       const std::vector<hw::LineRun>& runs) {
  LineWork work;
  work.features = operands.dim;
  work.hold = {operands.k, operands.k_pitch, head.keys};
  work.stream = {operands.q, operands.q_pitch, head.queries};
  work.indices = head.row_indices.data();
  work.index_count = head.row_indices.size();
  work.cell_step = runs.front().cell_step;
  for (const hw::LineRun& run : runs) {
    const std::uint16_t key = head.sparse_columns[run.item];
    work.items.push_back(
        {key, 0, static_cast<std::uint32_t>(run.first_cell), head.column_pointers[run.item + 1]});
    for (std::size_t i = 0; i < run.count; ++i) {
      const std::size_t cell = run.first_cell + i * run.cell_step;
      work.steps.push_back({key, head.row_indices[cell], cell});
    }
  }
  return work;
}

LineWork dense_scores(const hw::SparseHead& head, const hw::AttentionOperands& operands,
                      const std::vector<hw::LineRun>& runs) {
  LineWork work;
  work.features = operands.dim;
  work.hold = {operands.q, operands.q_pitch, head.queries};
  work.stream = {operands.k, operands.k_pitch, head.dense_columns.size(),
                 head.dense_columns.data()};
  // One step a run: a query meets all columns before the line takes the next.
  for (const hw::LineRun& run : runs) {
    const std::uint16_t query = narrow(run.first_cell % head.queries);
    if (run.item == 0) work.items.push_back({query});
    work.steps.push_back({query, narrow(run.item), run.first_cell});
  }
  return work;
}

LineWork sparse_sums(const hw::SparseRows& rows, const std::vector<hw::LineRun>& runs,
                     std::size_t groups) {
  LineWork work;
  work.indices = rows.keys.data();
  work.index_count = rows.keys.size();
  for (const hw::LineRun& run : runs) {
    const std::uint16_t query = narrow(run.item / groups);
    work.items.push_back({query, narrow(run.item % groups),
                          static_cast<std::uint32_t>(run.first_cell), rows.pointers[query + 1]});
    for (std::size_t i = run.first_cell; i < run.first_cell + run.count; ++i) {
      work.steps.push_back({query, rows.keys[i], rows.cells[i]});
    }
  }
  return work;
}

LineWork dense_sums(const std::vector<hw::LineRun>& runs, std::size_t groups) {
  LineWork work;
  for (const hw::LineRun& run : runs) {
    const std::uint16_t query = narrow(run.item / groups);
    work.items.push_back({query, narrow(run.item % groups)});
    for (std::size_t i = 0; i < run.count; ++i) {
      work.steps.push_back({query, narrow(i), run.first_cell + i * run.cell_step});
    }
  }
  return work;
}

void add_walk(const hw::SparseHead& head, const hw::LineRuns& runs, LineWork& work) {
  work.columns = head.dense_columns.size();
  work.rows = head.queries;
  work.item_step = runs.split.dense;
}

}  // namespace

LineWork score_work(const hw::SparseHead& head, const hw::AttentionOperands& operands,
                    const hw::LineRuns& runs, std::size_t line) {
  if (line >= runs.split.dense) return sparse_scores(head, operands, runs.lines[line]);
  LineWork work = dense_scores(head, operands, runs.lines[line]);
  add_walk(head, runs, work);
  return work;
}

LineWork sum_work(const hw::SparseHead& head, const hw::SparseRows& rows,
                  const hw::AttentionOperands& operands, const hw::AttentionCodes& codes,
                  const hw::LineRuns& runs, std::size_t line, std::size_t macs) {
  const bool dense = line < runs.split.dense;
  const std::size_t groups = (operands.value_dim + macs - 1) / macs;
  LineWork work =
      dense ? dense_sums(runs.lines[line], groups) : sparse_sums(rows, runs.lines[line], groups);
  work.spmm = true;
  work.features = operands.value_dim;
  work.codes = dense ? codes.cells.dense.data() : codes.cells.sparse.data();
  work.stream = {operands.v, operands.v_pitch, head.keys};
  if (dense) {
    work.stream.count = head.dense_columns.size();
    work.stream.order = head.dense_columns.data();
    add_walk(head, runs, work);
  }
  return work;
}

}  // namespace systole::testbench

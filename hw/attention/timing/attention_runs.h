#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/attention/timing/attention_array.h"
#include "hw/machine/machine.h"

/// What each line of the attention engines does in which order: the work that the cycle contract of
/// hw/attention/timing/attention_cycles.h counts, as an explicit schedule.
namespace systole::hw {

/// One item of a line's work, a step after the other without a pause: scores of a column in the
/// SDDMM, keys of a group in the SpMM. Step i of the item works on cell first_cell + i * cell_step.
struct LineRun {
  std::uint64_t start = 0;  ///< step of the phase in which it begins
  std::uint64_t count = 0;  ///< steps, at least 1
  std::size_t item = 0;     ///< column of the engine, or query * groups + group
  std::size_t first_cell = 0;
  std::size_t cell_step = 1;

  [[nodiscard]] std::uint64_t end() const { return start + count; }
};

struct LineRuns {
  LineSplit split;
  std::vector<std::vector<LineRun>> lines;  ///< [lines] in order, denser engine first

  /// Steps until the last line is done.
  [[nodiscard]] std::uint64_t steps() const;
};

/// Cycles from a line's first item to its last result, its runs back to back: `step_cycles` for
/// each step and the depth of its pipeline. The phases of hw/attention/timing/attention_cycles.h do
/// not have that depth: a line walks to its first row, as buffers deliver it, before the phase, and
/// the last results leave while the lines go on. 0 for a line without work.
[[nodiscard]] std::uint64_t line_cycles(const std::vector<LineRun>& runs,
                                        std::uint64_t step_cycles);

/// SDDMM, a step being a score: ceil(dim / P) cycles. Cells of the denser engine are numbered as
/// SparseHead::dense_keep, those of the sparser engine as SparseHead::row_indices.
[[nodiscard]] LineRuns sddmm_runs(const SparseHead& head, std::size_t dim,
                                  const Machine::Attention& attention);

/// SpMM, a step being a cycle. Cells of the denser engine are numbered as SparseHead::dense_keep,
/// those of the sparser engine as SparseRows::cells.
[[nodiscard]] LineRuns spmm_runs(const SparseHead& head, const SparseRows& rows,
                                 std::size_t value_dim, const Machine::Attention& attention);

}  // namespace systole::hw

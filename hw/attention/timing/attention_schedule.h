#pragma once

#include <cstdint>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/attention/timing/attention_array.h"
#include "hw/machine/machine.h"

/// When the lines need which operands, with the banks of the buffers: the cycle contract of
/// hw/attention/timing/attention_cycles.h refined by what the buffers can deliver. All operands are
/// on chip here; a line that waits for memory holds up all others, so that a late row moves
/// everything after it.
///
/// The lines work in windows of line_rows * ceil(dim / P) cycles, counted in cycles of work: while
/// they work on one window, the buffers deliver the operands of the next. A buffer's bank serves
/// `ports` words of P bytes a cycle; what several lines, of one engine or of both, want in one
/// window is read once and broadcast. A window lasts as long as its most wanted bank needs, the
/// lines being idle (conflict) for the rest; a line whose work is over before a window is not held
/// up by it. The last window is as short as the work that remains. The delivery of the first
/// window falls before the phase.
///
/// | phase | buffer | bank of an operand, mod banks | words of an operand            |
/// |-------|--------|-------------------------------|--------------------------------|
/// | SDDMM | Q      | row                           | ceil(dim / P), one bank        |
/// | SDDMM | K      | row                           | ceil(dim / P), one bank        |
/// | SDDMM | scores | query + key                   | 1 for each score               |
/// | SpMM  | V      | row * groups + group          | 1 for each group of P features |
/// | SpMM  | scores | query + key                   | 1 for each code                |
///
/// A line wants Q rows, V words and codes in each window anew, but a K row only in the window in
/// which it begins a column: it holds that row until the column is done.
///
/// Banks are a power of two in number: halving them merges banks, so that fewer banks or ports
/// never make a phase shorter.
namespace systole::hw {

enum class AttentionOperand : std::uint8_t { kQuery, kKey, kValue };

/// A line begins to need a row in a window of a phase. Each row once per window and engine; those
/// of one window in the order of the lines and, for one line, of its work.
struct RowAccess {
  AttentionOperand operand;
  bool sparse;          ///< for the sparser engine
  std::uint16_t row;    ///< query or key
  std::uint64_t cycle;  ///< of the phase in which the window begins
  std::uint64_t end;    ///< of the phase in which the window has ended
};

/// The SpMM needs the softmax codes of a query from this cycle of the phase on: the first window in
/// which either engine works on the query, be it on a pruned cell of the dense block.
struct CodesNeed {
  std::uint16_t query;
  std::uint64_t cycle;
};

struct AttentionPhase {
  LineSplit split;
  std::uint64_t cycles = 0;
  std::vector<std::uint64_t> busy;      ///< [lines] cycles with active MACs, denser engine first
  std::vector<std::uint64_t> conflict;  ///< [lines] cycles lost to banks while there was work
  std::vector<RowAccess> accesses;      ///< ascending by cycle
  std::vector<CodesNeed> codes;         ///< SpMM: each query with kept cells once, ascending
  std::uint64_t operand_words = 0;      ///< of P bytes, read from the buffers of Q and K, or of V
  std::uint64_t score_words = 0;        ///< SDDMM: scores written; SpMM: codes read
  /// Line cycles by cause; busy + conflict + idle = lines * cycles.
  [[nodiscard]] std::uint64_t idle_cycles() const;
};

/// SDDMM of a head: `dim` features of Q and K. Both functions throw std::invalid_argument for a
/// dimension of 0 and an array that check_attention() refuses.
[[nodiscard]] AttentionPhase schedule_sddmm(const SparseHead& head, std::size_t dim,
                                            const Machine::Attention& attention);
/// SpMM of a head: `value_dim` features of V; `dim` sets the length of a window.
[[nodiscard]] AttentionPhase schedule_spmm(const SparseHead& head, std::size_t dim,
                                           std::size_t value_dim,
                                           const Machine::Attention& attention);

}  // namespace systole::hw

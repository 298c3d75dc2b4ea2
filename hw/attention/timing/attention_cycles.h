#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/attention/timing/attention_array.h"
#include "hw/attention/timing/line_schedule.h"
#include "hw/postop/postop.h"

/// Cycle contract of the attention engines, before any stall for memory.
///
/// The denser and the sparser engine run side by side on their shares of the lines
/// (allocate_lines()); a phase ends with the later one. A head has G global columns, n queries and,
/// outside its dense block, some kept cells. Wd and Ws lines work for the engines, P MACs a line.
///
/// | phase   | engine  | dataflow          | cycles                                             |
/// |---------|---------|-------------------|----------------------------------------------------|
/// | SDDMM   | denser  | K-stationary      | G ceil(n / Wd) ceil(d / P)                         |
/// | SDDMM   | sparser | a column per line | longest column first (schedule_longest_first())    |
/// | SDDMM   | sparser | broadcast         | sum over columns of ceil(kept / Ws) ceil(d / P)    |
/// | softmax | both    | row by row        | sum over rows of ceil(kept / lanes)                |
/// | SpMM    | denser  | output-stationary | G ceil(n ceil(d_v / P) / Wd)                       |
/// | SpMM    | sparser | output-stationary | longest group first (schedule_longest_first())     |
///
/// SDDMM: the d features of a score are spread over the MACs of a line and reduced between them, so
/// a score leaves a line every ceil(d / P) cycles. The global columns stay in the K buffer while
/// the queries pass, Wd at a time, each line with its own query (query q on line q mod Wd) and
/// all of them at the same column; so every Q row is read once. One column per line would last n
/// ceil(d / P) cycles for a single global column. A line of the sparser engine holds a column of
/// its own and takes the queries that keep it; the longest columns are placed first. In the
/// broadcast mapping its lines share the kept queries of one column after the other.
///
/// SpMM: each MAC keeps one output element and adds one product per cycle, so a line holds a group
/// of P elements of one token's d_v. There are n ceil(d_v / P) groups. In the denser engine group i
/// (token i / groups of a token) goes to line i mod Wd, and the lines walk the G keys together. In
/// the sparser engine a group takes a cycle for each kept key of its token, and the longest groups
/// are placed first: a token that attends to every key does not hold up one line alone.
///
/// Softmax: row maxima are formed as scores arrive. The exponentials of a row need its maximum, so
/// lanes do not work on two rows at once. Stages of the scores are at the ends of the lines: a
/// score passes them as it leaves, and they take the next when the line has it, so that the scores
/// of a phase are complete score_latency() after its last cycle, and the softmax begins that much
/// later.
///
/// All functions throw std::invalid_argument for a dimension of 0 or an array that
/// check_attention() refuses.
namespace systole::hw {

/// Cycles of one phase of one head.
struct PhaseCycles {
  LineSplit split;
  std::uint64_t dense = 0;          ///< until the denser engine is done
  std::uint64_t sparse = 0;         ///< until the sparser engine is done
  std::vector<std::uint64_t> busy;  ///< [lines] cycles with active MACs, the denser engine's first

  [[nodiscard]] std::uint64_t total() const { return dense > sparse ? dense : sparse; }
  /// Line cycles with active MACs, and without: their sum is lines * total().
  [[nodiscard]] std::uint64_t busy_cycles() const;
  [[nodiscard]] std::uint64_t idle_cycles() const { return busy.size() * total() - busy_cycles(); }
};

/// Cycles a line takes for a score of `features`, and groups of a row of V: ceil(features / P).
[[nodiscard]] std::uint64_t line_passes(std::size_t features, const Machine::Attention& array);

/// split_lines() for the cells of a head.
[[nodiscard]] LineSplit allocate_lines(const SparseHead& head, const Machine::Attention& array);

/// The work of the SDDMM: what its cycles depend on.
struct SddmmWork {
  std::size_t queries = 0;
  std::size_t dense_columns = 0;
  std::vector<std::uint64_t> sparse_column_kept;  ///< kept cells of each other column
};

[[nodiscard]] SddmmWork sddmm_work(const SparseHead& head);

/// `dim`: features of Q and K, at least 1.
[[nodiscard]] PhaseCycles sddmm_cycles(const SddmmWork& work, std::size_t dim,
                                       const Machine::Attention& array);
[[nodiscard]] PhaseCycles sddmm_cycles(const SparseHead& head, std::size_t dim,
                                       const Machine::Attention& array);

/// The sparser engine's columns by line (mapping kColumnPerLine). Items are positions in
/// sparse_columns.
[[nodiscard]] LineSchedule sddmm_column_schedule(const SparseHead& head, std::size_t dim,
                                                 const Machine::Attention& array);

/// `value_dim`: features of V.
[[nodiscard]] PhaseCycles spmm_cycles(const SparseHead& head, std::size_t value_dim,
                                      const Machine::Attention& array);

/// The sparser engine's groups by line. Item i is group i mod ceil(value_dim / P) of token
/// i / ceil(value_dim / P).
[[nodiscard]] LineSchedule spmm_group_schedule(const SparseHead& head, std::size_t value_dim,
                                               const Machine::Attention& array);

/// Cycles in which a score passes the stages before the softmax, which is the last of a chain
/// that may be an attention command's softmax chain.
[[nodiscard]] std::uint64_t score_latency(const Chain& chain);

/// Exponential pass over the kept cells of both engines.
[[nodiscard]] std::uint64_t softmax_cycles(const SparseHead& head, const Machine::Attention& array);

}  // namespace systole::hw

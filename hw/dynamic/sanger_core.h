#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/dynamic/operand_stream.h"

namespace systole::hw::dynamic {

/// A score-stationary array with a mask that is predicted from 4-bit Q and K (Sanger, MICRO 2021,
/// and the Chisel sources that its authors released).
///
/// A head of n queries, m keys and d features passes four units:
///
/// | unit      | work                                                                          |
/// |-----------|-------------------------------------------------------------------------------|
/// | memory    | n + 2 m rows in, n out; two heads have room on chip                           |
/// | predictor | a tile of `rows` queries and `tile_keys` keys: d products, then a key a cycle |
/// |           | leaves through the exponential. The threshold needs a row's sum: a mask is    |
/// |           | known when all of its head's tiles have left                                  |
/// | packer    | a key column of `rows` queries a cycle                                        |
/// | array     | `rows` rows of `row_pes` elements, each of which holds a score; K streams     |
/// |           | through for the scores, then V for the outputs                                |
///
/// Packing: a query's kept cells of a key tile are split into rows of `row_pes`; rows without a
/// cell are skipped. A pass of the array has up to `rows` of them, all of one key tile.
///
/// Left out, in favour of it: latency of the memory, bank conflicts, division of the outputs.
struct SangerArray {
  std::uint32_t rows = 64;
  std::uint32_t row_pes = 16;
  std::uint32_t tile_keys = 64;
  /// An array of rows x tile_keys 4-bit MACs predicts the next head meanwhile; else the array's own
  /// MACs predict, each a product a cycle, before each head.
  bool own_predictor = true;
  /// Control as released: all rows change their phase together, so that each phase of a pass waits
  /// until the operands have crossed all rows and columns. Else each row changes by itself, and the
  /// skew is paid once a head.
  bool common_phases = false;

  [[nodiscard]] std::uint64_t macs() const { return std::uint64_t{rows} * row_pes; }
};

/// Exponential in a PE: cycles between the two phases of a pass, as the authors' test drives it.
inline constexpr std::uint64_t kSangerExpCycles = 3;

/// Where the time of a run went. A unit's cycles are those in which it works; units overlap.
struct SangerCycles {
  std::uint64_t total = 0;
  std::uint64_t memory = 0, prediction = 0, packing = 0;
  std::uint64_t scores = 0;   ///< the array, until all scores of a pass are exponentials
  std::uint64_t context = 0;  ///< the array, outputs
  std::uint64_t passes = 0;
  std::uint64_t slots = 0;        ///< rows x row_pes of all passes
  std::uint64_t kept = 0;         ///< of these, with a kept cell
  std::uint64_t products = 0;     ///< of kept cells, scores and outputs
  std::uint64_t predictions = 0;  ///< 4-bit products
  double moved_bytes = 0.0;       ///< by the memory
  double buffer_bytes = 0.0;      ///< written to and read from the buffers of Q, K, V and outputs

  /// Part of the array's elements that hold a kept cell.
  [[nodiscard]] double load() const {
    return slots == 0 ? 0.0 : static_cast<double>(kept) / static_cast<double>(slots);
  }
};

/// Runs heads one after the other; `dim`: features of Q, K and V. A head keeps what the prediction
/// found; it must not have global columns. Throws std::invalid_argument for one that has, for no
/// features, and for an array or a stream without elements.
[[nodiscard]] SangerCycles run_sanger(const std::vector<SparseHead>& heads, std::size_t dim,
                                      const SangerArray& array, const OperandStream& stream);

/// The cells that the prediction keeps, [queries][keys]: Q and K [tokens][dim] are rounded to 4
/// bits by their largest magnitude (-7 to 7), and kept is what the softmax of their scaled products
/// puts above `threshold`. A query keeps its largest cell at least.
[[nodiscard]] std::vector<std::uint8_t> predict_mask(const std::vector<double>& query,
                                                     const std::vector<double>& key,
                                                     std::size_t dim, double threshold);

}  // namespace systole::hw::dynamic

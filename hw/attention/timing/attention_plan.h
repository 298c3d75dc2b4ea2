#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/attention/timing/attention_batches.h"
#include "hw/attention/timing/attention_schedule.h"
#include "hw/machine/machine.h"

/// What the attention engines do for one layer, phase after phase, and which rows they bring in for
/// it: all that follows from mask and machine alone.
namespace systole::hw {

/// SDDMM or SpMM of a tile.
struct AttentionStep {
  HeadTile part;
  bool spmm;
  std::uint64_t kept;    ///< cells that the mask keeps
  AttentionPhase phase;  ///< queries are those of the tile, from 0
  /// SpMM: cycles after the softmax began with the tile at which it has the codes of
  /// phase.codes[i], rows one after the other in that order, `softmax_lanes` cells a cycle. The
  /// maxima are formed as the scores arrive.
  std::vector<std::uint64_t> codes_ready;
};

/// A row to bring in, in the order of need. Every buffer is walked over the whole layer, so that a
/// step's rows are loaded while the step before is still computed, as far as there is room.
struct AttentionFetch {
  AttentionOperand operand;
  std::size_t head;          ///< whose access it is
  std::size_t row;           ///< query or key
  std::size_t step, access;  ///< the access that needs it
  /// Accesses to this operand, of the layer, that must be over before the row has a place.
  std::uint64_t free_after;
  std::size_t kept;  ///< heads' rows of the token that take a place; 1 without an auto-encoder
};

struct AttentionPlan {
  std::vector<AttentionStep> steps;  ///< batch after batch (attention_batches.h)
  std::vector<AttentionFetch> fetches;
  /// Accesses of the sparser engine to Q rows that the denser engine had brought in.
  std::uint64_t forwarded = 0;
};

/// What a miss of Q or K brings in: the row of one head, or with an auto-encoder the whole token,
/// whose heads are decoded together. Of those the buffer keeps what
/// hw/attention/timing/row_buffer.h says.
enum class BufferedRow { kHead, kToken };

/// `heads`: of one layer, which passed check_sparse_head(). Throws InputError as query_tiles().
[[nodiscard]] AttentionPlan plan_attention(const std::vector<SparseHead>& heads, std::size_t dim,
                                           std::size_t value_dim, const Machine& machine,
                                           BufferedRow row = BufferedRow::kHead);

}  // namespace systole::hw

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/number/dtype.h"
#include "hw/postop/stage.h"

/// A chain: an ordered list of stages (hw/postop/stage.h) through which rows of values go. Before
/// an anchor it works between memory and local memory, after one it reads the accumulator. The
/// output saturates to Chain::out.
namespace systole::hw {

struct Chain {
  std::vector<Stage> stages;
  DType out = DType::kS8;

  [[nodiscard]] bool operator==(const Chain& other) const {
    return out == other.out && stages == other.stages;
  }
};

/// Of chains that are equal the same, and hardly ever of others.
[[nodiscard]] std::uint64_t chain_key(const Chain& chain);
[[nodiscard]] std::uint32_t parameter_words(const Chain& chain);
[[nodiscard]] bool has_stage(const Chain& chain, StageOp op);
[[nodiscard]] bool is_row_wise(const Chain& chain);
/// Stages with a tensor operand; they take the operands in their order.
[[nodiscard]] std::size_t tensor_operands(const Chain& chain);
/// Element types of the tensor operands, in order.
[[nodiscard]] std::vector<DType> tensor_types(const Chain& chain);
[[nodiscard]] bool writes_row_statistics(const Chain& chain);
[[nodiscard]] bool reads_row_statistics(const Chain& chain);
/// Words per row of the row statistics that the chain reads or writes; it does not do both.
[[nodiscard]] std::uint32_t statistics_words(const Chain& chain);
/// Whether some stage depends on ChainOperands::valid_cols: a softmax or a causal mask.
[[nodiscard]] bool uses_valid_cols(const Chain& chain);
[[nodiscard]] bool transposes(const Chain& chain);

/// Most tensor operands of one chain.
inline constexpr std::size_t kMaxTensorOperands = 8;

/// Rows of a tensor operand.
struct TensorRows {
  const void* data = nullptr;  ///< first element
  std::size_t pitch = 0;       ///< bytes between rows
};

/// Operands of one chain execution over a tile of `rows` x `cols` accumulators.
struct ChainOperands {
  const std::int32_t* accumulator = nullptr;             ///< first element
  std::size_t accumulator_pitch = 0;                     ///< elements between rows
  const std::int32_t* parameters = nullptr;              ///< [parameter_words][cols]
  std::array<TensorRows, kMaxTensorOperands> tensors{};  ///< in the order of their stages
  std::uint32_t* row_statistics = nullptr;               ///< [rows][statistics_words]
  /// A side output adds to what earlier tiles of the rows have left.
  bool accumulate_statistics = false;
  void* out = nullptr;  ///< first element of the result
  /// Bytes between rows of the result, of which a transposition has `cols`.
  std::size_t out_pitch = 0;
  std::size_t rows = 0;
  std::size_t cols = 0;
  /// Columns of the first row that take part in its softmax or pass its causal mask, one more in
  /// every later row. The others count neither for maximum nor sum, and their codes are 0.
  /// 0: all.
  std::size_t valid_cols = 0;

  /// Columns of row `row` that take part.
  [[nodiscard]] std::size_t valid_cols_in(std::size_t row) const {
    return valid_cols == 0 || valid_cols + row > cols ? cols : valid_cols + row;
  }
};

/// Computes a tile. The chain must have passed check_chain(); the operands may hold any values.
/// A per-channel shift counts modulo 64 and a per-channel multiplier of -2^31 as -2^31 + 1, what a
/// 6-bit shift field and a symmetric multiplier make of them. `out` overlaps no input.
void apply_chain(const Chain& chain, const ChainOperands& operands);

/// What a machine's pipeline can run.
struct ChainLimits {
  std::uint32_t max_stages = 8;
  std::uint32_t tensor_operands = kMaxTensorOperands;
  /// By StageUnit.
  std::array<bool, kStageUnits> units = {true, true, true, true, true, true, true};
};
[[nodiscard]] ChainLimits chain_limits(const Machine& machine);

/// Throws InputError that names the stage and the rule it breaks: unknown opcode, or one that the
/// machine has no unit for; an operand of a kind that the stage does not take; immediates out of
/// range; more than one row-wise stage or side output; statistics read and written in one chain; a
/// transposition that is not last; chain too long, or with too many tensor operands.
void check_chain(const Chain& chain, const ChainLimits& limits);

/// What a chain before an anchor may not be: row-wise, with a side output or a transposition.
/// Throws InputError.
void check_pre_chain(const Chain& chain);

/// Passes of a row-wise stage with two statistics, each in its own interval: no stage has more.
inline constexpr std::uint32_t kMostPasses = 3;

/// Cycle contract of the post-op pipeline for a tile of rows x cols, `lanes` elements per cycle.
///
/// A row of V = ceil(cols / lanes) vectors is read once for each statistic of a row-wise stage and
/// once for the output. Rows begin every I cycles, and total = latencies of all stages + L +
/// (rows - 1) I, where L is how long the only row of a tile would be read:
///
///   stage of the chain                  I                 L
///   none of the following               V                 V
///   softmax, deferred                   2V                2V
///   softmax, normalised                 max(3V, 17)       2I + 3V
///   layer_norm                          max(3V, V + 36)   2I + 3V
///   divide_row_sum, anywhere            15 or more        15 more
///   layer_norm_apply, rms_norm_apply    23, 16 or more    57, 32 more
///   quantise_row                        16 or more        the division of the first row
///
/// What serial units add to L they work while the first row is in the stages before theirs, and
/// nothing if one of these is row-wise.
///
/// With three passes every interval has a slot of V cycles for each: the first pass of row j, the
/// second of row j - 1, the last of row j - 2, so a row's serial division and root have an interval
/// while other rows stream. I is as long as the serial units need: 17 cycles for floor(2^32 / sum);
/// 4 for the last squares, 16 for the root and 16 for its reciprocal, which the divider must have
/// done before it begins with the next row's mean; 2 to read a row sum and 13 for its reciprocal;
/// 23 for mean and squares of a row that is parted, whose root and factor have units of their own
/// (factor_cycles()). Stages
/// before and after a row-wise one add their latency. A causal mask changes nothing: the masked
/// columns stream through with the others. A transposition collects `lanes` rows and lets their
/// columns go one per cycle while the next rows come in: `cols` cycles more. All other stages take
/// a vector per cycle: the inner loop of a chain is as long as its slowest stage's, whatever else
/// the chain contains.
struct ChainCycles {
  std::uint64_t fill = 0;     ///< everything but the intervals
  std::uint64_t lead = 0;     ///< of these, serial units that work before the first row comes
  std::uint64_t per_row = 0;  ///< interval between rows
  std::uint64_t reads = 0;    ///< accumulator vectors read, all passes
  [[nodiscard]] std::uint64_t total(std::uint64_t rows) const {
    return rows == 0 ? 0 : fill + rows * per_row;
  }
};
[[nodiscard]] ChainCycles chain_cycles(const Chain& chain, std::uint64_t rows, std::uint64_t cols,
                                       std::uint32_t lanes);

/// Cycles that a row of `cols` results takes beyond its interval, since each vector of `lanes` of
/// them leaves the pipeline in pieces of up to `piece` bytes, one a cycle, and the stages stand
/// still meanwhile (hw/dma/store_schedule.h). None of a chain that transposes.
[[nodiscard]] std::uint64_t piece_cycles(const Chain& chain, std::uint64_t cols,
                                         std::uint32_t lanes, std::uint64_t piece);

}  // namespace systole::hw

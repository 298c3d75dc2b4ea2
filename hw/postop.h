#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/dtype.h"
#include "hw/dyadic.h"

/// The post-op chain: what happens to accumulator rows on their way out. A chain is an ordered list
/// of stages; every stage has one value function and one cost here, and works behind every anchor.
///
/// Between stages a value is a 32-bit signed integer, and every stage saturates its result to that
/// width, so no order of legal stages can overflow. The output saturates to Chain::out.
namespace systole::hw {

/// The values are part of the program file: append only.
enum class StageOp : std::uint8_t {
  kBias = 0,        ///< x + bias[channel]
  kRequantise = 1,  ///< clamp(round(x * multiplier / 2^shift), lo, hi)
  kAddTensor = 2,   ///< x + clamp(round(t * multiplier / 2^shift), lo, hi); multiplier 0: x + t
  kClamp = 3,       ///< min(max(x, lo), hi)
  kRelu = 4,        ///< max(x, 0)
  kGelu = 5,        ///< i-GELU of an s16 (saturated) and its requantisation (hw/gelu.h)
  kSoftmax = 6,     ///< of a whole row (hw/softmax.h) or its kept columns (ChainOperands::kept),
                    ///< factor_bits 32; the deferred mode leaves the row sum in the row statistics
  kDivideRowSum = 7,  ///< x / row sum, 8 fraction bits: the late division of the deferred softmax
  kLayerNorm = 8,     ///< of a whole row of s24 (saturated), at most 65536 long (hw/layernorm.h)
};

inline constexpr std::uint8_t kStageOps = 9;
inline constexpr std::size_t kStageImmediates = 8;

/// One stage of a chain. `imm` holds the immediates in the order that stage_info() names them.
struct Stage {
  StageOp op = StageOp::kBias;
  bool per_channel = false;  ///< constants come from the parameter block, one set per column
  Rounding rounding = Rounding::kHalfUp;
  DType tensor = DType::kS16;  ///< element type of the tensor operand (kAddTensor only)
  std::array<std::int64_t, kStageImmediates> imm{};
};

struct Chain {
  std::vector<Stage> stages;
  DType out = DType::kS8;
};

/// What is fixed for an opcode, whatever its operands.
struct StageInfo {
  std::string_view name;
  std::array<std::string_view, kStageImmediates>
      imm;                   ///< names of the immediates, "" after the last
  bool row_wise;             ///< needs the whole row in one tile
  std::uint32_t passes;      ///< accumulator read passes before the output pass, at most
  std::uint32_t latency;     ///< pipeline depth, cycles
  std::uint32_t row_serial;  ///< cycles of the per-row divider and square root, at most
};

[[nodiscard]] const StageInfo& stage_info(StageOp op);

/// Read passes of one stage: those of stage_info(), except that the deferred softmax does without
/// the pass for the sum.
[[nodiscard]] std::uint32_t statistics_passes(const Stage& stage);

/// int32 words per column that the stage takes from the parameter block: bias 1; per-channel
/// requantise 2 (multiplier, shift); layer_norm 2 (multiplier, addend); otherwise 0.
[[nodiscard]] std::uint32_t parameter_words(const Stage& stage);
[[nodiscard]] std::uint32_t parameter_words(const Chain& chain);

[[nodiscard]] bool has_stage(const Chain& chain, StageOp op);
[[nodiscard]] bool is_row_wise(const Chain& chain);
[[nodiscard]] bool uses_tensor(const Chain& chain);
[[nodiscard]] bool writes_row_statistics(const Chain& chain);
[[nodiscard]] bool reads_row_statistics(const Chain& chain);

/// Operands of one chain execution over a tile of `rows` x `cols` accumulators.
struct ChainOperands {
  const std::int32_t* accumulator = nullptr;  ///< first element
  std::size_t accumulator_pitch = 0;          ///< elements between rows
  const std::int32_t* parameters = nullptr;   ///< [parameter_words][cols]; may be unaligned in
                                              ///< memory, hence passed as a copy
  const void* tensor = nullptr;               ///< tensor operand, first element
  std::size_t tensor_pitch = 0;               ///< bytes between rows
  std::uint32_t* row_statistics = nullptr;    ///< one entry per row
  void* out = nullptr;                        ///< first element of the result
  std::size_t out_pitch = 0;                  ///< bytes between rows
  std::size_t rows = 0;
  std::size_t cols = 0;
  /// Columns of the first row that take part in its softmax, and one more in every row behind it: a
  /// causal mask. The others count neither for maximum nor sum, and their codes are 0. 0: all.
  std::size_t kept = 0;

  /// Columns of row `row` that take part.
  [[nodiscard]] std::size_t kept_in(std::size_t row) const {
    return kept == 0 || kept + row > cols ? cols : kept + row;
  }
};

/// Computes a tile. The chain must have passed check_chain(); the operands may hold any values.
/// A per-channel shift counts modulo 64 and a per-channel multiplier of -2^31 as -2^31 + 1, what a
/// 6-bit shift field and a symmetric multiplier make of them. `out` overlaps no input.
void apply_chain(const Chain& chain, const ChainOperands& operands);

/// Throws InputError that names the stage and the rule it breaks: unknown opcode, immediates out of
/// range, more than one row-wise stage, statistics read and written in one chain, chain too long.
void check_chain(const Chain& chain, std::uint32_t max_stages);

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
///   divide_row_sum, anywhere            13 or more        13 more, if no row-wise stage precedes
///
/// With three passes every interval has a slot of V cycles for each: the first pass of row j, the
/// second of row j - 1, the last of row j - 2, so a row's serial division and root have an interval
/// while other rows stream. I is as long as the serial units need: 17 cycles for floor(2^32 / sum);
/// 4 for the last squares, 16 for the root and 16 for its reciprocal, which the divider must have
/// done before it begins with the next row's mean; 13 for the reciprocal of a row sum. Stages in
/// front of a row-wise one, and behind it, add their latency. A causal mask changes nothing: the
/// columns behind it stream through with the others.
struct ChainCycles {
  std::uint64_t fill = 0;     ///< everything but the intervals
  std::uint64_t per_row = 0;  ///< interval between rows
  std::uint64_t reads = 0;    ///< accumulator vectors read, all passes
  [[nodiscard]] std::uint64_t total(std::uint64_t rows) const {
    return rows == 0 ? 0 : fill + rows * per_row;
  }
};
[[nodiscard]] ChainCycles chain_cycles(const Chain& chain, std::uint64_t rows, std::uint64_t cols,
                                       std::uint32_t lanes);

}  // namespace systole::hw

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hw/number/dtype.h"
#include "hw/number/dyadic.h"

/// A stage: one operation on the values that enter or leave an anchor (a matmul, attention, or no
/// operator at all). Every stage has one value function and one cost, and works before and after
/// every anchor; hw/postop/postop.h has the chains of them.
///
/// Values between stages are 32-bit signed integers x, and every stage saturates its result to that
/// width, so no order of legal stages can overflow.
namespace systole::hw {

/// y is the stage's operand. The values are part of the program file: append only.
enum class StageOp : std::uint8_t {
  kAdd = 0,         ///< x + y: bias, residual addition
  kRequantise = 1,  ///< clamp(round(x * multiplier / 2^shift), lo, hi)
  kSub = 2,         ///< x - y
  kClamp = 3,       ///< min(max(x, lo), hi)
  kRelu = 4,        ///< max(x, 0)
  kGelu = 5,        ///< i-GELU of an s16 (saturated) and its requantisation (hw/function/gelu.h)
  kSoftmax = 6,  ///< of a whole row (softmax.h) or its valid columns (ChainOperands::valid_cols),
                 ///< factor_bits 32; the deferred mode leaves the row sum in the statistics
  kDivideRowSum = 7,  ///< x / y, 8 fraction bits: the late division of the deferred softmax
  kLayerNorm = 8,     ///< of a whole row of s24 (saturated), at most 65536 long (layernorm.h)
  kMul = 9,           ///< clamp(round(x * y / 2^shift), lo, hi): product of two tensors, scaling
  kMask = 10,         ///< y != 0 ? x : fill; without an operand causal (ChainOperands::valid_cols)
  kExp = 11,          ///< exponential of min(x, 0) (int_exp.h), scaled by a dyadic factor first
  kSilu = 12,         ///< x * sigmoid(x) of an s16 (saturated), requantised (hw/function/silu.h)
  kLayerNormApply = 13,  ///< kLayerNorm of a part of a row of `length`, from its sum of squares
  kRmsNormApply = 14,    ///< x over the root of its row's sum of squares (hw/function/rms_norm.h)
  kRope = 15,            ///< rotates pairs of columns; y = cosine, sine, cosine, sine ... (rope.h)
  kTranspose = 16,       ///< element (r, c) of the tile is written as (c, r); the last stage
  kQuantiseRow = 17,     ///< codes of the row, whose peak becomes `top` (hw/function/row_scale.h)
  kTanh = 18,            ///< tanh of an s16 (saturated), requantised (hw/function/tanh.h)
  kDivide = 19,          ///< clamp(round(x * 2^shift / y), lo, hi) (hw/function/divide.h)
};

inline constexpr std::uint8_t kStageOps = 20;
inline constexpr std::size_t kStageImmediates = 8;

/// Where a stage's operand y comes from, and how it is broadcast.
enum class Operand : std::uint8_t {
  kImmediate = 0,  ///< the immediate "value", or none: the same for all elements
  kChannel = 1,    ///< the parameter block: one word (or more) for a column, the same for all rows
  kRow = 2,        ///< the row statistics: one word for a row, the same for all columns
  kTensor = 3,     ///< memory: one element for each element of the tile
  kSaved = 4,      ///< the saved accumulator: the element before the chain
};
inline constexpr std::uint8_t kOperandKinds = 5;
[[nodiscard]] std::string_view name_of(Operand operand);

/// Side output: a reduction of a stage's results into the row statistics. Tiles of one row may
/// accumulate (ChainOperands::accumulate_statistics): no side output depends on the order of
/// elements.
enum class Reduction : std::uint8_t {
  kNone = 0,
  kRowMax = 1,      ///< one word
  kRowSum = 2,      ///< one word, modulo 2^32
  kSumSquares = 3,  ///< four words: s64 sum, u64 sum of squares, of the results saturated to s24
  kRowPeak = 4,     ///< one word: the largest magnitude, 0 to 2^31
};
inline constexpr std::uint8_t kReductions = 5;
[[nodiscard]] std::string_view name_of(Reduction reduction);

/// `imm` holds the immediates in the order that stage_info() names them.
struct Stage {
  StageOp op = StageOp::kAdd;
  Operand operand = Operand::kImmediate;
  Rounding rounding = Rounding::kHalfUp;
  DType tensor = DType::kS16;  ///< element type of a tensor operand
  Reduction side = Reduction::kNone;
  std::array<std::int64_t, kStageImmediates> imm{};

  [[nodiscard]] bool operator==(const Stage& other) const {
    return op == other.op && operand == other.operand && rounding == other.rounding &&
           tensor == other.tensor && side == other.side && imm == other.imm;
  }
};

/// A residual addition: a tensor is added.
[[nodiscard]] inline bool is_residual(const Stage& stage) {
  return stage.op == StageOp::kAdd && stage.operand == Operand::kTensor;
}

/// The functional unit of a lane that a machine may do without (postop.gelu, ...).
enum class StageUnit : std::uint8_t {
  kAlways,
  kGelu,
  kExponential,
  kNorm,
  kRope,
  kTransposer,
  kDivider
};
inline constexpr std::uint8_t kStageUnits = 7;
/// The machine key that says whether the machine has the unit, "" for kAlways.
[[nodiscard]] std::string_view key_of(StageUnit unit);

/// What is fixed for an opcode, whatever its operands.
struct StageInfo {
  std::string_view name;
  std::array<std::string_view, kStageImmediates> imm;  ///< their names, "" after the last
  std::uint8_t operands;  ///< bit 1 << Operand for each kind that the stage takes
  bool rounds;            ///< has a choice of rounding
  bool row_wise;          ///< needs the whole row in one tile
  std::uint32_t passes;   ///< accumulator read passes before the output pass, at most
  std::uint32_t latency;  ///< pipeline depth without an operand's scaling, cycles
  StageUnit unit;

  [[nodiscard]] bool takes(Operand operand) const {
    return (operands >> static_cast<unsigned>(operand) & 1U) != 0;
  }
};
[[nodiscard]] const StageInfo& stage_info(StageOp op);
/// A stage with the only operand that it takes, or else an immediate one, and zeros.
[[nodiscard]] Stage default_stage(StageOp op);

/// Whether the tensor operand, or another, is requantised first.
[[nodiscard]] bool scales_operand(const Stage& stage);

/// Whether all results of a stage are within `range`, by the limits "lo" and "hi" that it has.
[[nodiscard]] bool clamps_to(const Stage& stage, IntRange range);

/// A matmul's plain bias: a word per channel is added as it is, without a side output. Only
/// such a stage may be computed elsewhere than in a chain.
[[nodiscard]] inline bool is_bias(const Stage& stage) {
  return stage.op == StageOp::kAdd && stage.operand == Operand::kChannel &&
         !scales_operand(stage) && stage.side == Reduction::kNone;
}

/// Read passes of one stage: those of stage_info(), except that the deferred softmax does without
/// the pass for the sum.
[[nodiscard]] std::uint32_t statistics_passes(const Stage& stage);

/// int32 words per column that the stage takes from the parameter block.
[[nodiscard]] std::uint32_t parameter_words(const Stage& stage);
/// Words per row that the stage reads from the row statistics, and that it leaves there.
[[nodiscard]] std::uint32_t statistics_read(const Stage& stage);
[[nodiscard]] std::uint32_t statistics_written(const Stage& stage);

/// Cycles between a value and its result.
[[nodiscard]] std::uint32_t stage_latency(const Stage& stage);
/// Cycles that each of the serial units takes which make, ahead of the rows, what the stage needs
/// of each row from its statistics: the reciprocal by which it divides, or mean, root and factor of
/// a LayerNorm. Each works on another row. 0 after the last.
using FactorCycles = std::array<std::uint32_t, 3>;
[[nodiscard]] FactorCycles factor_cycles(const Stage& stage);
/// Shortest interval between rows of `vectors` vectors that the stage alone allows: its passes, or
/// its serial units.
[[nodiscard]] std::uint64_t stage_interval(const Stage& stage, std::uint64_t vectors);
/// Cycles before the stage can take the first row, once its operand is valid: a serial division or
/// root, which overlaps with other rows from then on.
[[nodiscard]] std::uint32_t stage_lead(const Stage& stage);

}  // namespace systole::hw

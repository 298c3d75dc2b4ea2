#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hw/number/half.h"

/// Instructions of a core of hw/machine/parameters.h. Registers are addressed by element: a vector
/// register holds `matrix.depth` FP16, and what a matrix instruction reads or a vector instruction
/// works on begins at one.
namespace systole::hw::dfx {

/// Scalar registers of a core.
inline constexpr std::size_t kScalars = 4096;

/// Three classes: compute (matrix, vector), dma, router.
enum class Opcode : std::uint8_t {
  kConv1d,       ///< dst = src W + bias, then `function`
  kMaskedMm,     ///< scores of a head: src K^T x constant, masked; maximum to scalar `result`
  kMm,           ///< dst = src W: scores times V, or the output vocabulary
  kLoad,         ///< dst = second
  kAdd,          ///< dst = src + second
  kSub,          ///< dst = src - second
  kMul,          ///< dst = src x second
  kExp,          ///< dst = e^src
  kAccum,        ///< result = sum of src, x constant
  kAbsMax,       ///< result = largest magnitude of src, x constant
  kQuantise,     ///< dst = src x scalar, rounded to integers of 8 bits
  kRotate,       ///< heads of src turned: src x cosines + src with pairs swapped x signed sines
  kRecip,        ///< result = 1 / scalar
  kRecipSqrt,    ///< result = 1 / sqrt(scalar + constant)
  kWriteKeys,    ///< rows of K to the cache
  kWriteValues,  ///< the same of V, transposed
  kSync,         ///< exchange with the other cores
};
inline constexpr std::size_t kOpcodes = 17;

/// Name in listings, "masked_mm".
[[nodiscard]] std::string_view name_of(Opcode op);

enum class Unit : std::uint8_t { kMatrix, kVector, kDma, kRouter };
inline constexpr std::size_t kUnits = 4;

/// Name in reports and waves, "matrix".
[[nodiscard]] std::string_view name_of(Unit unit);

[[nodiscard]] constexpr Unit unit_of(Opcode op) {
  if (op <= Opcode::kMm) return Unit::kMatrix;
  if (op <= Opcode::kRecipSqrt) return Unit::kVector;
  return op == Opcode::kSync ? Unit::kRouter : Unit::kDma;
}

/// What a layer's time is spent on.
enum class Phase : std::uint8_t {
  kEmbedding,
  kLayerNorm,
  kAttention,
  kFeedForward,
  kResidual,
  kSync,
  kLmHead,
};
inline constexpr std::size_t kPhases = 7;

/// Name in reports, "self-attention".
[[nodiscard]] std::string_view name_of(Phase phase);

/// Where the second operand of a vector instruction comes from.
enum class Second : std::uint8_t { kNone, kVector, kScalar, kConstant, kMemory };

/// What the table behind the sums of a matrix instruction makes of them.
enum class TableFunction : std::uint8_t { kNone, kGelu, kSilu };
inline constexpr std::size_t kTableFunctions = 3;

/// Name in listings, "gelu".
[[nodiscard]] std::string_view name_of(TableFunction function);

/// A product of a row of `k_tiles` x depth inputs with `slices` x lanes columns. Tiles of weights,
/// [lanes][depth] FP16 each, are stored in blocks of `block` slices (the last may be smaller); in a
/// block the slices of one K tile, then those of the next.
struct MatrixOperand {
  std::uint64_t address = 0;
  bool in_ddr = false;
  bool int8 = false;  ///< [lanes][depth] integers, with more lanes
  std::uint32_t k_tiles = 0;
  std::uint32_t slices = 0;
  std::uint32_t block = 0;
};

struct Instruction {
  Opcode op = Opcode::kAdd;
  Phase phase = Phase::kEmbedding;
  Second second = Second::kNone;
  TableFunction function = TableFunction::kNone;
  bool has_bias = false;       ///< at `memory`
  std::uint32_t rows = 1;      ///< of a Conv1d or an Mm: inputs that share the weights
  std::uint32_t pitch = 0;     ///< register elements between them
  std::uint32_t dst = 0;       ///< register element
  std::uint32_t src = 0;       ///< register element
  std::uint32_t other = 0;     ///< register element or scalar: the second operand; of an int8
                               ///< product: scalar, the scale of the first row
  std::uint32_t elements = 0;  ///< of a vector instruction; of one that turns or writes heads, of
                               ///< each; columns that count, of a masked product
  std::uint32_t result = 0;    ///< scalar
  std::uint32_t heads = 0;     ///< of a rotation, or rows of keys or values, one after the other
  std::uint32_t token = 0;     ///< place in the cache
  std::uint32_t exchange = 0;  ///< of the program's exchanges
  Half constant{0};
  std::uint64_t memory = 0;        ///< address in DDR of bias, second operand or an angle's cosines
                                   ///< and sines, in HBM of a cache
  std::uint64_t scales = 0;        ///< of an int8 product: of its columns, in DDR
  std::uint64_t head_bytes = 0;    ///< from a head's cache to the next one's
  bool finds_largest = false;      ///< of an Mm: value and place of the largest to `winner`
  std::uint32_t winner = 0;        ///< register element, of the first row
  std::uint32_t first_column = 0;  ///< of all cores' columns
  MatrixOperand weights;
};

}  // namespace systole::hw::dfx

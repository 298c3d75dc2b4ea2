#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "hw/postop/chain_frame.h"

/// What a stage reads beside its values, and what it leaves beside its results, composed.
namespace systole::hw {

/// A stage's operand for a block: `rows` rows of n elements use the same y.
struct OperandRows {
  const std::int32_t* y;
  std::size_t n;
  std::size_t rows;
};
using OperandSource = std::function<OperandRows(ChainKernel::Frame& frame)>;

/// y of stage `index`, which has an operand. `word`: where its parameters begin; `value`: which
/// immediate it may be.
[[nodiscard]] OperandSource operand_source(const Chain& chain, std::size_t index, std::size_t word,
                                           std::size_t value);
/// The operand behind its own requantisation, if the stage has one.
[[nodiscard]] OperandSource scaled(OperandSource source, const Stage& stage);

/// Sum and sum of squares of a row, as kSumSquares leaves them.
struct RowSums {
  std::int64_t sum;
  std::uint64_t squares;
};
[[nodiscard]] RowSums read_sums(const std::uint32_t* words);

/// Reduces the results of a block into the row statistics; empty for kNone.
[[nodiscard]] ChainKernel::Step side_output(Reduction reduction);

}  // namespace systole::hw

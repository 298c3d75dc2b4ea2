#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "hw/postop/chain_kernel.h"

namespace systole::hw {

/// Consecutive rows of a tile in flight through a chain, without gaps between them.
class ChainKernel::Frame {
 public:
  Frame(const Chain& chain, const ChainOperands& operands);

  /// Makes the rows from `first` on the block, which then holds their accumulators.
  void load(std::size_t first);
  /// Writes the block to the result.
  void store() const;

  [[nodiscard]] const ChainOperands& operands() const noexcept { return operands_; }
  [[nodiscard]] std::size_t block_rows() const noexcept { return block_rows_; }
  [[nodiscard]] std::size_t first_row() const noexcept { return first_row_; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t cols() const noexcept { return operands_.cols; }
  [[nodiscard]] std::size_t size() const noexcept { return rows_ * operands_.cols; }
  [[nodiscard]] std::int32_t* x() const noexcept { return values_.get(); }
  [[nodiscard]] std::int32_t* row(std::size_t i) const { return x() + i * operands_.cols; }

  /// A word of the parameter block: one element per column.
  [[nodiscard]] const std::int32_t* parameter(std::size_t word) const {
    return operands_.parameters + word * operands_.cols;
  }
  /// The statistics of a row of the block.
  [[nodiscard]] std::uint32_t* statistics(std::size_t i) const {
    return operands_.row_statistics + (first_row_ + i) * statistics_words_;
  }
  /// The block as it came in.
  [[nodiscard]] const std::int32_t* saved() const noexcept { return saved_.get(); }
  /// Room for an operand: as many elements as the block.
  [[nodiscard]] std::int32_t* scratch() const noexcept { return scratch_.get(); }
  /// Room for two words per column.
  [[nodiscard]] std::int32_t* columns() {
    columns_.resize(2 * operands_.cols);
    return columns_.data();
  }

 private:
  void store_transposed() const;

  const Chain& chain_;
  const ChainOperands& operands_;
  std::size_t block_rows_;
  std::size_t statistics_words_;
  std::unique_ptr<std::int32_t[]> values_, saved_, scratch_;
  std::vector<std::int32_t> columns_;
  std::size_t first_row_ = 0;
  std::size_t rows_ = 0;
};

// What a stage reads beside its values, and what it leaves beside its results: stage_operands.cpp.

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
/// The operand after its requantisation, if the stage has one.
[[nodiscard]] OperandSource scaled(OperandSource source, const Stage& stage);

/// Sum and sum of squares of a row, as kSumSquares leaves them.
struct RowSums {
  std::int64_t sum;
  std::uint64_t squares;
};
[[nodiscard]] RowSums read_sums(const std::uint32_t* words);

/// Reduces the results of a block into the row statistics; empty for kNone.
[[nodiscard]] ChainKernel::Step side_output(Reduction reduction);

/// The function of stage `index`, composed. `word`: where its parameters begin.
[[nodiscard]] ChainKernel::Step compose_stage(const Chain& chain, std::size_t index,
                                              std::size_t word);

}  // namespace systole::hw

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/kernel/row_kernels.h"
#include "hw/number/dtype.h"
#include "hw/postop/postop.h"

namespace systole::testbench {

/// What a stage of a chain takes from its operand stream: a word for each element of a tile.
class OperandWords {
 public:
  /// Of `stage`, whose words of the parameter block begin with number `word`, and whose tensor, if
  /// it has one, is number `tensor`. `operands` must outlive this.
  OperandWords(const hw::Stage& stage, const hw::ChainOperands& operands, std::size_t word,
               std::size_t tensor, std::size_t statistics_words) {
    const std::size_t cols = operands.cols;
    switch (stage.operand) {
      case hw::Operand::kImmediate:
        return;
      case hw::Operand::kChannel:
        words_.assign(operands.parameters + word * cols, operands.parameters + (word + 1) * cols);
        col_pitch_ = 1;
        if (hw::parameter_words(stage) == 2) shifts_ = operands.parameters + (word + 1) * cols;
        return;
      case hw::Operand::kRow:
        for (std::size_t row = 0; row < operands.rows; ++row) {
          words_.push_back(
              static_cast<std::int32_t>(operands.row_statistics[row * statistics_words]));
        }
        row_pitch_ = 1;
        return;
      case hw::Operand::kTensor: {
        const hw::TensorRows& rows = operands.tensors[tensor];
        fill(operands, [&](std::size_t row, std::int32_t* to) {
          hw::row::widen(static_cast<const unsigned char*>(rows.data) + row * rows.pitch,
                         stage.tensor, to, cols);
        });
        return;
      }
      case hw::Operand::kSaved:
        fill(operands, [&](std::size_t row, std::int32_t* to) {
          std::copy_n(operands.accumulator + row * operands.accumulator_pitch, cols, to);
        });
        return;
    }
  }

  [[nodiscard]] bool exist() const { return !words_.empty(); }
  [[nodiscard]] std::int32_t at(std::size_t row, std::size_t col) const {
    return words_[row * row_pitch_ + col * col_pitch_];
  }
  /// The second word of a channel, 0 if it has one only.
  [[nodiscard]] std::int32_t shift_at(std::size_t col) const {
    return shifts_ == nullptr ? 0 : shifts_[col];
  }

 private:
  template <typename Row>
  void fill(const hw::ChainOperands& operands, Row row) {
    words_.resize(operands.rows * operands.cols);
    for (std::size_t i = 0; i < operands.rows; ++i) row(i, words_.data() + i * operands.cols);
    row_pitch_ = operands.cols;
    col_pitch_ = 1;
  }

  std::vector<std::int32_t> words_;
  const std::int32_t* shifts_ = nullptr;
  std::size_t row_pitch_ = 0;
  std::size_t col_pitch_ = 0;
};

/// Those of all stages of a chain.
[[nodiscard]] inline std::vector<OperandWords> operand_words(const hw::Chain& chain,
                                                             const hw::ChainOperands& operands) {
  std::vector<OperandWords> all;
  std::size_t word = 0;
  std::size_t tensor = 0;
  for (const hw::Stage& stage : chain.stages) {
    all.emplace_back(stage, operands, word, tensor, hw::statistics_words(chain));
    word += hw::parameter_words(stage);
    tensor += stage.operand == hw::Operand::kTensor ? 1 : 0;
  }
  return all;
}

}  // namespace systole::testbench

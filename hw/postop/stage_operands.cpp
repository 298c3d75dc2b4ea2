#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "hw/function/row_scale.h"
#include "hw/kernel/row_kernels.h"
#include "hw/postop/chain_frame.h"
#include "hw/postop/stage_constants.h"

namespace systole::hw {
namespace {

using Frame = ChainKernel::Frame;

OperandRows whole_block(const Frame& frame, const std::int32_t* y) { return {y, frame.size(), 1}; }
OperandRows each_row(const Frame& frame, const std::int32_t* y) {
  return {y, frame.cols(), frame.rows()};
}

OperandSource immediate_operand(std::int32_t value) {
  return [value](Frame& frame) {
    std::fill_n(frame.scratch(), frame.cols(), value);
    return each_row(frame, frame.scratch());
  };
}

OperandSource row_operand() {
  return [](Frame& frame) {
    for (std::size_t i = 0; i < frame.rows(); ++i) {
      std::fill_n(frame.scratch() + i * frame.cols(), frame.cols(),
                  static_cast<std::int32_t>(*frame.statistics(i)));
    }
    return whole_block(frame, frame.scratch());
  };
}

OperandSource tensor_operand(DType type, std::size_t port) {
  return [type, port](Frame& frame) {
    const TensorRows& rows = frame.operands().tensors.at(port);
    const auto* source = static_cast<const unsigned char*>(rows.data);
    for (std::size_t i = 0; i < frame.rows(); ++i) {
      row::widen(source + (frame.first_row() + i) * rows.pitch, type,
                 frame.scratch() + i * frame.cols(), frame.cols());
    }
    return whole_block(frame, frame.scratch());
  };
}

void add_row_max(Frame& frame) {
  for (std::size_t i = 0; i < frame.rows(); ++i) {
    auto* const word = reinterpret_cast<std::int32_t*>(frame.statistics(i));
    const std::int32_t before =
        frame.operands().accumulate_statistics ? *word : std::numeric_limits<std::int32_t>::min();
    *word = std::max(before, row::maximum(frame.row(i), frame.cols()));
  }
}

void add_row_peak(Frame& frame) {
  for (std::size_t i = 0; i < frame.rows(); ++i) {
    std::uint32_t* const word = frame.statistics(i);
    std::uint32_t peak = frame.operands().accumulate_statistics ? *word : 0;
    const std::int32_t* const row = frame.row(i);
    for (std::size_t c = 0; c < frame.cols(); ++c) peak = std::max(peak, magnitude(row[c]));
    *word = peak;
  }
}

void add_row_sum(Frame& frame) {
  for (std::size_t i = 0; i < frame.rows(); ++i) {
    std::uint32_t* const word = frame.statistics(i);
    const std::uint32_t before = frame.operands().accumulate_statistics ? *word : 0;
    *word = before + static_cast<std::uint32_t>(row::sum(frame.row(i), frame.cols()));
  }
}

void add_sum_squares(Frame& frame) {
  for (std::size_t i = 0; i < frame.rows(); ++i) {
    std::int32_t* const inputs = frame.scratch();
    std::copy_n(frame.row(i), frame.cols(), inputs);
    row::clamp(inputs, frame.cols(), row::kLayerNormInputs);
    RowSums sums =
        frame.operands().accumulate_statistics ? read_sums(frame.statistics(i)) : RowSums{0, 0};
    // The words may hold anything: sums wrap.
    sums.sum =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(sums.sum) +
                                  static_cast<std::uint64_t>(row::sum(inputs, frame.cols())));
    sums.squares += row::sum_squares(inputs, frame.cols());
    std::memcpy(frame.statistics(i), &sums, sizeof sums);
  }
}

}  // namespace

OperandSource operand_source(const Chain& chain, std::size_t index, std::size_t word,
                             std::size_t value) {
  const Stage& stage = chain.stages[index];
  switch (stage.operand) {
    case Operand::kImmediate:
      return immediate_operand(imm32(stage, value));
    case Operand::kChannel:
      return [word](Frame& frame) { return each_row(frame, frame.parameter(word)); };
    case Operand::kRow:
      return row_operand();
    case Operand::kTensor: {
      std::size_t port = 0;
      for (std::size_t i = 0; i < index; ++i) {
        if (chain.stages[i].operand == Operand::kTensor) ++port;
      }
      return tensor_operand(stage.tensor, port);
    }
    case Operand::kSaved:
      return [](Frame& frame) { return whole_block(frame, frame.saved()); };
  }
  throw std::invalid_argument("unknown operand of a stage");
}

OperandSource scaled(OperandSource source, const Stage& stage) {
  if (!scales_operand(stage)) return source;
  return [source = std::move(source), factor = dyadic_at(stage, 0), rounding = stage.rounding,
          limits = limits_at(stage, 2)](Frame& frame) {
    const OperandRows operand = source(frame);
    if (operand.y != frame.scratch()) std::copy_n(operand.y, operand.n, frame.scratch());
    row::requantise(frame.scratch(), operand.n, factor, rounding, limits);
    return OperandRows{frame.scratch(), operand.n, operand.rows};
  };
}

RowSums read_sums(const std::uint32_t* words) {
  RowSums sums;
  std::memcpy(&sums, words, sizeof sums);
  return sums;
}

ChainKernel::Step side_output(Reduction reduction) {
  switch (reduction) {
    case Reduction::kNone:
      return nullptr;
    case Reduction::kRowMax:
      return add_row_max;
    case Reduction::kRowSum:
      return add_row_sum;
    case Reduction::kSumSquares:
      return add_sum_squares;
    case Reduction::kRowPeak:
      return add_row_peak;
  }
  return nullptr;
}

}  // namespace systole::hw

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "hw/function/divide.h"
#include "hw/function/rms_norm.h"
#include "hw/function/row_scale.h"
#include "hw/function/tanh.h"
#include "hw/kernel/row_kernels.h"
#include "hw/postop/chain_frame.h"
#include "hw/postop/stage_constants.h"

namespace systole::hw {
namespace {

using Frame = ChainKernel::Frame;
using Step = ChainKernel::Step;

constexpr std::int32_t kLowestInt32 = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kHighestInt32 = std::numeric_limits<std::int32_t>::max();
constexpr row::Clamp kAllInt32{kLowestInt32, kHighestInt32};

constexpr std::int32_t kTableLowest = -128;
constexpr std::size_t kTableEntries = 256;

Step sum(OperandSource source, bool subtracts) {
  const auto function = subtracts ? row::subtract : row::add;
  return [source = std::move(source), function](Frame& frame) {
    const OperandRows operand = source(frame);
    function(frame.x(), operand.y, operand.n, operand.rows);
  };
}

Step product(OperandSource source, const Stage& stage) {
  return [source = std::move(source), shift = static_cast<unsigned>(stage.imm[0]),
          rounding = stage.rounding, limits = limits_at(stage, 1)](Frame& frame) {
    const OperandRows operand = source(frame);
    row::multiply(frame.x(), operand.y, operand.n, operand.rows, shift, rounding, limits);
  };
}

Step quotient(OperandSource source, const Stage& stage) {
  return [source = std::move(source), shift = static_cast<unsigned>(stage.imm[0]),
          rounding = stage.rounding, limits = limits_at(stage, 1)](Frame& frame) {
    const OperandRows operand = source(frame);
    std::int32_t* x = frame.x();
    for (std::size_t row = 0; row < operand.rows; ++row) {
      for (std::size_t i = 0; i < operand.n; ++i, ++x) {
        *x = divide(*x, operand.y[i], shift, rounding, {limits.lo, limits.hi});
      }
    }
  };
}

Step mask(OperandSource source, const Stage& stage) {
  const std::int32_t fill = imm32(stage, 0);
  if (stage.operand == Operand::kImmediate) {
    return [fill](Frame& frame) {
      for (std::size_t i = 0; i < frame.rows(); ++i) {
        const std::size_t valid = frame.operands().valid_cols_in(frame.first_row() + i);
        std::fill(frame.row(i) + valid, frame.row(i) + frame.cols(), fill);
      }
    };
  }
  return [source = std::move(source), fill](Frame& frame) {
    const OperandRows operand = source(frame);
    row::select(frame.x(), operand.y, operand.n, operand.rows, fill);
  };
}

Step clamp(row::Clamp limits) {
  return [limits](Frame& frame) { row::clamp(frame.x(), frame.size(), limits); };
}

Step requantise(const Stage& stage, std::size_t word) {
  const row::Clamp limits = limits_at(stage, 2);
  if (stage.operand == Operand::kImmediate) {
    return [factor = dyadic_at(stage, 0), rounding = stage.rounding, limits](Frame& frame) {
      row::requantise(frame.x(), frame.size(), factor, rounding, limits);
    };
  }
  return [word, rounding = stage.rounding, limits](Frame& frame) {
    std::int32_t* const multipliers = frame.columns();
    std::int32_t* const shifts = multipliers + frame.cols();
    for (std::size_t i = 0; i < frame.cols(); ++i) {
      const Dyadic factor = channel_factor(frame.parameter(word)[i], frame.parameter(word + 1)[i]);
      multipliers[i] = factor.multiplier;
      shifts[i] = factor.shift;
    }
    row::requantise_channels(frame.x(), frame.cols(), frame.rows(), multipliers, shifts, rounding,
                             limits);
  };
}

/// Whether the stage leaves nothing but s8 values.
bool gives_s8(const Stage& stage) {
  const auto within = [&stage](std::size_t i) {
    return stage.imm[i] >= kTableLowest && stage.imm[i + 1] < -kTableLowest;
  };
  if (stage.op == StageOp::kClamp) return within(0);
  if (stage.op == StageOp::kMul || stage.op == StageOp::kDivide) return within(1);
  return stage.op == StageOp::kRequantise && within(2);
}

/// A function of one value; of all s8 inputs by a table, where only s8 values arrive.
Step unary(const Chain& chain, std::size_t index,
           std::function<void(std::int32_t* x, std::size_t n)> function) {
  if (index == 0 || !gives_s8(chain.stages[index - 1])) {
    return [function = std::move(function)](Frame& frame) { function(frame.x(), frame.size()); };
  }
  const auto table = std::make_shared<std::array<std::int32_t, kTableEntries>>();
  for (std::size_t i = 0; i < kTableEntries; ++i) {
    (*table)[i] = static_cast<std::int32_t>(i) + kTableLowest;
  }
  function(table->data(), kTableEntries);
  return [table](Frame& frame) {
    const std::int32_t* const centre = table->data() - kTableLowest;
    std::int32_t* const x = frame.x();
    for (std::size_t i = 0; i < frame.size(); ++i) x[i] = centre[x[i]];
  };
}

Step softmax(const SoftmaxConstants& constants) {
  return [constants](Frame& frame) {
    for (std::size_t i = 0; i < frame.rows(); ++i) {
      std::int32_t* x = frame.row(i);
      const std::size_t valid = frame.operands().valid_cols_in(frame.first_row() + i);
      row::exponentials(x, valid, row::maximum(x, valid), constants);
      const std::uint32_t sum = row::softmax_codes(x, valid, constants);
      std::fill(x + valid, x + frame.cols(), 0);
      if (constants.mode == SoftmaxMode::kDeferred) *frame.statistics(i) = sum;
    }
  };
}

Step divide_row_sum() {
  return [](Frame& frame) {
    for (std::size_t i = 0; i < frame.rows(); ++i) {
      const Dyadic reciprocal{static_cast<std::int32_t>((1U << kDeferredReciprocalBits) /
                                                        std::max(*frame.statistics(i), 1U)),
                              kDeferredReciprocalBits - kDeferredFractionBits};
      row::requantise(frame.row(i), frame.cols(), reciprocal, Rounding::kHalfUp, kAllInt32);
    }
  };
}

Step quantise_row(std::int32_t top) {
  return [top](Frame& frame) {
    for (std::size_t i = 0; i < frame.rows(); ++i) {
      row::requantise(frame.row(i), frame.cols(), row_code_factor(*frame.statistics(i), top),
                      Rounding::kHalfUp, {-top, top});
    }
  };
}

/// `statistics`: of a row of the frame. Of the whole row in the tile or from the words in the
/// row statistics.
template <typename Statistics>
Step layer_norm(const Stage& stage, std::size_t word, Statistics statistics) {
  return [stage, word, statistics](Frame& frame) {
    const row::LayerNormFactors factors =
        layer_norm_factors(stage, frame.parameter(word), frame.cols());
    row::clamp(frame.x(), frame.size(), row::kLayerNormInputs);
    for (std::size_t i = 0; i < frame.rows(); ++i) {
      row::layer_norm_output(frame.row(i), frame.cols(), statistics(frame, i), factors,
                             limits_at(stage, 2));
    }
  };
}

LayerNormStatistics statistics_of_row(const Frame& frame, std::size_t i) {
  return row::layer_norm_statistics(frame.row(i), frame.cols());
}

/// RMSNorm is a LayerNorm about zero without addends.
Step rms_norm(const Stage& stage, std::size_t word) {
  return [stage, word](Frame& frame) {
    row::LayerNormFactors factors = layer_norm_factors(stage, frame.parameter(word), frame.cols());
    factors.biases = nullptr;
    row::clamp(frame.x(), frame.size(), row::kLayerNormInputs);
    for (std::size_t i = 0; i < frame.rows(); ++i) {
      const std::uint64_t squares = read_sums(frame.statistics(i)).squares;
      row::layer_norm_output(frame.row(i), frame.cols(), rms_norm_statistics(squares), factors,
                             limits_at(stage, 2));
    }
  };
}

Step rope(OperandSource source, const Stage& stage) {
  return [source = std::move(source), shift = static_cast<unsigned>(stage.imm[0]),
          rounding = stage.rounding, limits = limits_at(stage, 1)](Frame& frame) {
    const OperandRows operand = source(frame);
    row::rope(frame.x(), operand.y, operand.n, shift, rounding, limits);
  };
}

Step stage_function(const Chain& chain, std::size_t index, std::size_t word) {
  const Stage& stage = chain.stages[index];
  const auto operand = [&](std::size_t value) { return operand_source(chain, index, word, value); };
  switch (stage.op) {
    case StageOp::kAdd:
    case StageOp::kSub:
      return sum(scaled(operand(4), stage), stage.op == StageOp::kSub);
    case StageOp::kMul:
      return product(operand(3), stage);
    case StageOp::kDivide:
      return quotient(operand(3), stage);
    case StageOp::kMask:
      return mask(operand(0), stage);
    case StageOp::kRequantise:
      return requantise(stage, word);
    case StageOp::kClamp:
      return clamp(limits_at(stage, 0));
    case StageOp::kRelu:
      return clamp({0, kHighestInt32});
    case StageOp::kGelu:
      return unary(chain, index,
                   [constants = gelu_constants(stage), limits = limits_at(stage, 5)](
                       std::int32_t* x, std::size_t n) { row::gelu(x, n, constants, limits); });
    case StageOp::kSilu:
      return unary(chain, index,
                   [constants = silu_constants(stage), limits = limits_at(stage, 5)](
                       std::int32_t* x, std::size_t n) { row::silu(x, n, constants, limits); });
    case StageOp::kTanh:
      return unary(chain, index,
                   [constants = tanh_constants(stage), limits = limits_at(stage, 5)](
                       std::int32_t* x, std::size_t n) {
                     for (std::size_t i = 0; i < n; ++i) {
                       x[i] = hw::tanh(x[i], constants, {limits.lo, limits.hi});
                     }
                   });
    case StageOp::kExp:
      return unary(chain, index,
                   [constants = exp_constants(stage)](std::int32_t* x, std::size_t n) {
                     row::clamp(x, n, {kLowestInt32, 0});
                     row::exponentials(x, n, 0, constants);
                   });
    case StageOp::kSoftmax:
      return softmax(softmax_constants(stage));
    case StageOp::kDivideRowSum:
      return divide_row_sum();
    case StageOp::kQuantiseRow:
      return quantise_row(imm32(stage, 0));
    case StageOp::kLayerNorm:
      return layer_norm(stage, word, statistics_of_row);
    case StageOp::kLayerNormApply:
      return layer_norm(
          stage, word,
          [length = static_cast<std::size_t>(stage.imm[4])](const Frame& frame, std::size_t i) {
            const RowSums sums = read_sums(frame.statistics(i));
            return layernorm_statistics_from_sums(sums.sum, sums.squares, length);
          });
    case StageOp::kRmsNormApply:
      return rms_norm(stage, word);
    case StageOp::kRope:
      return rope(operand(0), stage);
    case StageOp::kTranspose:
      return nullptr;  // ChainKernel::Frame::store() writes columns as rows
  }
  throw std::invalid_argument("unknown stage");
}

}  // namespace

ChainKernel::Step compose_stage(const Chain& chain, std::size_t index, std::size_t word) {
  Step function = stage_function(chain, index, word);
  Step side = side_output(chain.stages[index].side);
  if (!side) return function;
  if (!function) return side;
  return [function = std::move(function), side = std::move(side)](Frame& frame) {
    function(frame);
    side(frame);
  };
}

}  // namespace systole::hw

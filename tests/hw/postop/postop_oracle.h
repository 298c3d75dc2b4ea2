#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hw/function/gelu.h"
#include "hw/function/layernorm.h"
#include "hw/function/rms_norm.h"
#include "hw/function/silu.h"
#include "hw/function/softmax.h"
#include "hw/number/dtype.h"
#include "hw/number/dyadic.h"
#include "hw/postop/postop.h"
#include "tests/hw/postop/random_chain.h"

/// A chain executed element by element with the scalar functions.
namespace systole::hw::test {

inline IntRange range_of(DType type) {
  switch (type) {
    case DType::kS8:
      return full_range(8);
    case DType::kU8:
      return unsigned_range(8);
    case DType::kS16:
      return full_range(16);
    case DType::kU16:
      return unsigned_range(16);
    case DType::kS32:
      break;
  }
  return full_range(32);
}

inline std::int32_t saturate_to(std::int64_t x, unsigned bits) {
  return static_cast<std::int32_t>(saturate(x, full_range(bits)));
}

inline std::int32_t saturate32(std::int64_t x) { return saturate_to(x, 32); }

inline Dyadic dyadic(std::int64_t multiplier, std::int64_t shift) {
  return {static_cast<std::int32_t>(multiplier), static_cast<std::int8_t>(shift)};
}

/// What the stages of a row read beside its values, as plain integers, and what they leave.
struct OracleOperands {
  std::vector<std::int32_t> parameters;            ///< [words][cols]
  std::vector<std::vector<std::int32_t>> tensors;  ///< one row of each tensor operand
  std::vector<std::uint32_t> statistics;           ///< of this row: [statistics_words()]
  std::size_t kept = 0;    ///< columns of this row's softmax or causal mask; 0: all
  bool continues = false;  ///< the side output adds to `statistics`
};

/// A row on its way through a chain.
class OracleRow {
 public:
  OracleRow(const Chain& chain, OracleOperands& operands, std::vector<std::int32_t> values)
      : chain_(chain), operands_(operands), saved_(values), x_(std::move(values)) {}

  /// The result, saturated to the chain's type but still in int32.
  std::vector<std::int32_t> run() {
    for (const Stage& stage : chain_.stages) {
      for (std::size_t i = 0; i < x_.size(); ++i) column_ = i, x_[i] = element(stage, x_[i]);
      whole_row(stage);
      side_output(stage);
      word_ += parameter_words(stage);
      if (stage.operand == Operand::kTensor) ++port_;
    }
    for (std::int32_t& value : x_) {
      value = static_cast<std::int32_t>(saturate(value, range_of(chain_.out)));
    }
    return x_;
  }

 private:
  [[nodiscard]] std::int32_t parameter(std::size_t word) const {
    return operands_.parameters.at((word_ + word) * x_.size() + column_);
  }

  [[nodiscard]] std::int32_t operand(const Stage& stage, std::size_t value) const {
    switch (stage.operand) {
      case Operand::kImmediate:
        break;
      case Operand::kChannel:
        return parameter(0);
      case Operand::kRow:
        return static_cast<std::int32_t>(operands_.statistics.at(0));
      case Operand::kTensor:
        return operands_.tensors.at(port_).at(column_);
      case Operand::kSaved:
        return saved_[column_];
    }
    return static_cast<std::int32_t>(stage.imm[value]);
  }

  /// The operand of a sum, behind its own requantisation.
  [[nodiscard]] std::int64_t addend(const Stage& stage) const {
    const std::int32_t y = operand(stage, 4);
    if (stage.imm[0] == 0) return y;
    return requantise(y, dyadic(stage.imm[0], stage.imm[1]), stage.rounding, stage.imm[2],
                      stage.imm[3]);
  }

  [[nodiscard]] bool passes_mask(const Stage& stage) const {
    if (stage.operand != Operand::kImmediate) return operand(stage, 0) != 0;
    return operands_.kept == 0 || column_ < operands_.kept;
  }

  [[nodiscard]] Dyadic factor(const Stage& stage) const {
    if (stage.operand != Operand::kChannel) return dyadic(stage.imm[0], stage.imm[1]);
    return dyadic(std::max(parameter(0), -2147483647),
                  static_cast<std::uint32_t>(parameter(1)) % 64);
  }

  [[nodiscard]] std::int32_t normalised(const Stage& stage, const LayerNormStatistics& statistics,
                                        std::int32_t x) const {
    const std::int32_t norm =
        layernorm_normalise(saturate_to(x, 24), statistics, static_cast<unsigned>(stage.imm[0]));
    const std::int64_t bias = stage.op == StageOp::kRmsNormApply ? 0 : parameter(1);
    const std::int64_t sum = std::int64_t{norm} * parameter(0) + bias;
    return saturate32(
        saturate(shift_right(sum, static_cast<unsigned>(stage.imm[1]), Rounding::kHalfUp),
                 {stage.imm[2], stage.imm[3]}));
  }

  /// Two words of the row statistics as one.
  [[nodiscard]] std::uint64_t wide_statistic(std::size_t i) const {
    return std::uint64_t{operands_.statistics.at(i)} | std::uint64_t{operands_.statistics.at(i + 1)}
                                                           << 32;
  }

  [[nodiscard]] std::int32_t gelu(const Stage& stage, std::int32_t x) const {
    const auto& imm = stage.imm;
    const GeluConstants constants{imm[0], imm[1], imm[2], dyadic(imm[3], imm[4])};
    return saturate32(requantise(gelu_product(saturate_to(x, 16), constants), constants.output,
                                 Rounding::kHalfUp, imm[5], imm[6]));
  }

  [[nodiscard]] std::int32_t silu_of(const Stage& stage, std::int32_t x) const {
    const auto& imm = stage.imm;
    const SiluConstants constants{dyadic(imm[0], imm[1]),
                                  make_int_exp_constants(static_cast<unsigned>(imm[2])),
                                  dyadic(imm[3], imm[4])};
    return silu(x, constants, {imm[5], imm[6]});
  }

  /// Even columns are the cosine's, and read the odd one behind them before it changes.
  [[nodiscard]] std::int32_t rotated(const Stage& stage) {
    const std::vector<std::int32_t>& table = operands_.tensors.at(port_);
    const std::size_t even = column_ - column_ % 2;
    if (column_ == even) pair_ = {saturate_to(x_[even], 24), saturate_to(x_[even + 1], 24)};
    const auto [cosine, sine] = std::pair(std::int64_t{table[even]}, std::int64_t{table[even + 1]});
    const std::int64_t turned =
        column_ == even ? pair_[0] * cosine - pair_[1] * sine : pair_[0] * sine + pair_[1] * cosine;
    return saturate32(
        saturate(shift_right(turned, static_cast<unsigned>(stage.imm[0]), stage.rounding),
                 {stage.imm[1], stage.imm[2]}));
  }

  std::int32_t element(const Stage& stage, std::int32_t x) {
    const auto& imm = stage.imm;
    switch (stage.op) {
      case StageOp::kAdd:
        return saturate32(x + addend(stage));
      case StageOp::kSub:
        return saturate32(x - addend(stage));
      case StageOp::kMul:
        return saturate32(saturate(shift_right(std::int64_t{x} * operand(stage, 3),
                                               static_cast<unsigned>(imm[0]), stage.rounding),
                                   {imm[1], imm[2]}));
      case StageOp::kMask:
        return passes_mask(stage) ? x : static_cast<std::int32_t>(imm[0]);
      case StageOp::kRequantise:
        return saturate32(requantise(x, factor(stage), stage.rounding, imm[2], imm[3]));
      case StageOp::kClamp:
        return saturate32(saturate(x, {imm[0], imm[1]}));
      case StageOp::kRelu:
        return std::max(x, 0);
      case StageOp::kGelu:
        return gelu(stage, x);
      case StageOp::kSilu:
        return silu_of(stage, x);
      case StageOp::kExp:
        return static_cast<std::int32_t>(
            int_exp(scale(std::min(x, 0), dyadic(imm[0], imm[1]), Rounding::kHalfUp),
                    make_int_exp_constants(static_cast<unsigned>(imm[2]))));
      case StageOp::kDivideRowSum:
        return saturate32(deferred_divide(x, operands_.statistics.at(0)));
      case StageOp::kLayerNormApply:
        return normalised(
            stage,
            layernorm_statistics_from_sums(static_cast<std::int64_t>(wide_statistic(0)),
                                           wide_statistic(2), static_cast<std::size_t>(imm[4])),
            x);
      case StageOp::kRmsNormApply:
        return normalised(stage, rms_norm_statistics(wide_statistic(2)), x);
      case StageOp::kRope:
        return rotated(stage);
      case StageOp::kSoftmax:
      case StageOp::kLayerNorm:
      case StageOp::kTranspose:
        break;  // of the row or of the tile
    }
    return x;
  }

  void whole_row(const Stage& stage) {
    if (stage.op == StageOp::kSoftmax) softmax(stage.imm);
    if (stage.op != StageOp::kLayerNorm) return;
    for (std::int32_t& value : x_) value = saturate_to(value, 24);
    const LayerNormStatistics statistics = layernorm_statistics(x_.data(), x_.size());
    for (column_ = 0; column_ < x_.size(); ++column_) {
      x_[column_] = normalised(stage, statistics, x_[column_]);
    }
  }

  void softmax(const std::array<std::int64_t, kStageImmediates>& imm) {
    const SoftmaxConstants constants{static_cast<SoftmaxMode>(imm[0]),
                                     dyadic(imm[1], imm[2]),
                                     make_int_exp_constants(static_cast<unsigned>(imm[3])),
                                     dyadic(imm[4], imm[5]),
                                     static_cast<unsigned>(imm[6]),
                                     32};
    std::vector<std::uint32_t> codes(x_.size());
    std::vector<std::uint8_t> keep(x_.size(), 1);
    for (std::size_t i = operands_.kept; operands_.kept != 0 && i < keep.size(); ++i) keep[i] = 0;
    const std::uint32_t sum =
        softmax_row(x_.data(), keep.data(), x_.size(), constants, codes.data());
    if (constants.mode == SoftmaxMode::kDeferred) operands_.statistics = {sum};
    std::copy(codes.begin(), codes.end(), x_.begin());
  }

  void side_output(const Stage& stage) {
    if (stage.side == Reduction::kNone) return;
    std::vector<std::uint32_t>& words = operands_.statistics;
    if (!operands_.continues) {
      std::fill(words.begin(), words.end(), 0U);
      if (stage.side == Reduction::kRowMax) words.at(0) = 0x80000000U;
    }
    std::uint64_t sum = stage.side == Reduction::kSumSquares ? wide_statistic(0) : words.at(0);
    std::uint64_t squares = stage.side == Reduction::kSumSquares ? wide_statistic(2) : 0;
    std::int32_t highest = static_cast<std::int32_t>(words.at(0));
    for (const std::int32_t value : x_) {
      const std::int64_t input =
          stage.side == Reduction::kSumSquares ? saturate_to(value, 24) : value;
      sum += static_cast<std::uint64_t>(input);
      squares += static_cast<std::uint64_t>(input * input);
      highest = std::max(highest, value);
    }
    words.at(0) = static_cast<std::uint32_t>(
        stage.side == Reduction::kRowMax ? static_cast<std::uint32_t>(highest) : sum);
    if (stage.side != Reduction::kSumSquares) return;
    words.at(1) = static_cast<std::uint32_t>(sum >> 32);
    words.at(2) = static_cast<std::uint32_t>(squares);
    words.at(3) = static_cast<std::uint32_t>(squares >> 32);
  }

  const Chain& chain_;
  OracleOperands& operands_;
  std::vector<std::int32_t> saved_, x_;
  std::size_t column_ = 0;
  std::size_t word_ = 0;  ///< where the stage's parameters begin
  std::size_t port_ = 0;  ///< which tensor operand is the stage's
  std::array<std::int64_t, 2> pair_{};
};

/// Result of one row, saturated to the chain's type but still in int32. A transposition is the
/// caller's: it stores rows as columns.
inline std::vector<std::int32_t> apply_row(const Chain& chain, OracleOperands& operands,
                                           std::vector<std::int32_t> x) {
  return OracleRow(chain, operands, std::move(x)).run();
}

}  // namespace systole::hw::test

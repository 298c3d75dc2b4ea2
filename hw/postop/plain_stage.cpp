#include "hw/postop/plain_stage.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "hw/function/divide.h"
#include "hw/function/gelu.h"
#include "hw/function/layernorm.h"
#include "hw/function/rms_norm.h"
#include "hw/function/rope.h"
#include "hw/function/row_scale.h"
#include "hw/function/silu.h"
#include "hw/function/softmax.h"
#include "hw/function/tanh.h"
#include "hw/number/dyadic.h"
#include "hw/postop/stage_constants.h"

namespace systole::hw {
namespace {

std::int32_t saturate_bits(std::int64_t x, unsigned bits) {
  return static_cast<std::int32_t>(saturate(x, full_range(bits)));
}

/// Words i and i + 1 of the row statistics as one, the low word first.
std::uint64_t wide_word(const std::vector<std::uint32_t>& words, std::size_t i) {
  return std::uint64_t{words.at(i)} | std::uint64_t{words.at(i + 1)} << 32;
}

/// One stage of a chain on one row.
class PlainStage {
 public:
  /// The stage's parameters begin at word `word`; a tensor operand is number `port`.
  PlainStage(const Stage& stage, std::size_t word, std::size_t port,
             const std::vector<std::int32_t>& saved, PlainRow& row)
      : stage_(stage), word_(word), port_(port), saved_(saved), row_(row) {}

  void apply() {
    switch (stage_.op) {
      case StageOp::kAdd:
        return each([this](std::int64_t x, std::size_t c) { return x + addend(c); });
      case StageOp::kSub:
        return each([this](std::int64_t x, std::size_t c) { return x - addend(c); });
      case StageOp::kMul:
        return each([this](std::int64_t x, std::size_t c) {
          return saturate(shift_right(x * operand(c, 3), shift(0), stage_.rounding), limits(1));
        });
      case StageOp::kDivide:
        return each([this](std::int64_t x, std::size_t c) {
          return divide(static_cast<std::int32_t>(x), operand(c, 3), shift(0), stage_.rounding,
                        limits(1));
        });
      case StageOp::kMask:
        return each([this](std::int64_t x, std::size_t c) { return passes(c) ? x : value(0); });
      case StageOp::kRequantise:
        return each([this](std::int64_t x, std::size_t c) {
          return requantise(x, factor(c), stage_.rounding, limits(2));
        });
      case StageOp::kClamp:
        return each([this](std::int64_t x, std::size_t) { return saturate(x, limits(0)); });
      case StageOp::kRelu:
        return each([](std::int64_t x, std::size_t) { return std::max<std::int64_t>(x, 0); });
      case StageOp::kGelu:
        return each([this, constants = gelu_constants(stage_)](std::int64_t x, std::size_t) {
          return requantise(gelu_product(saturate_bits(x, 16), constants), constants.output,
                            Rounding::kHalfUp, limits(5));
        });
      case StageOp::kSilu:
        return each([this, constants = silu_constants(stage_)](std::int64_t x, std::size_t) {
          return silu(saturate_bits(x, 16), constants, limits(5));
        });
      case StageOp::kTanh:
        return each([this, constants = tanh_constants(stage_)](std::int64_t x, std::size_t) {
          return hw::tanh(saturate_bits(x, 16), constants, limits(5));
        });
      case StageOp::kExp:
        return exponential();
      case StageOp::kSoftmax:
        return softmax();
      case StageOp::kDivideRowSum:
        return each([this](std::int64_t x, std::size_t) {
          return deferred_divide(static_cast<std::int32_t>(x), row_.statistics[0]);
        });
      case StageOp::kQuantiseRow:
        return each([this](std::int64_t x, std::size_t) {
          return row_code(static_cast<std::int32_t>(x), row_.statistics[0], value(0));
        });
      case StageOp::kLayerNorm:
      case StageOp::kLayerNormApply:
      case StageOp::kRmsNormApply:
        return normalise();
      case StageOp::kRope:
        return rotate();
      case StageOp::kTranspose:
        return;
    }
    throw std::invalid_argument("unknown stage");
  }

  /// Leaves the stage's side output in the row statistics. Sums are modulo 2^32, those of
  /// kSumSquares modulo 2^64, of values saturated to s24.
  void leave_statistics() {
    std::vector<std::uint32_t>& words = row_.statistics;
    if (stage_.side == Reduction::kRowMax) {
      std::int32_t highest = row_.accumulate_statistics ? static_cast<std::int32_t>(words[0])
                                                        : std::numeric_limits<std::int32_t>::min();
      for (const std::int32_t x : row_.x) highest = std::max(highest, x);
      words[0] = static_cast<std::uint32_t>(highest);
    } else if (stage_.side == Reduction::kRowPeak) {
      std::uint32_t peak = row_.accumulate_statistics ? words[0] : 0;
      for (const std::int32_t x : row_.x) peak = std::max(peak, magnitude(x));
      words[0] = peak;
    } else if (stage_.side == Reduction::kRowSum) {
      std::uint32_t sum = row_.accumulate_statistics ? words[0] : 0;
      for (const std::int32_t x : row_.x) sum += static_cast<std::uint32_t>(x);
      words[0] = sum;
    } else if (stage_.side == Reduction::kSumSquares) {
      std::uint64_t sum = row_.accumulate_statistics ? wide_word(words, 0) : 0;
      std::uint64_t squares = row_.accumulate_statistics ? wide_word(words, 2) : 0;
      for (const std::int32_t x : row_.x) {
        const std::int64_t input = saturate_bits(x, kLayerNormMaxInputBits);
        sum += static_cast<std::uint64_t>(input);
        squares += static_cast<std::uint64_t>(input * input);
      }
      words = {static_cast<std::uint32_t>(sum), static_cast<std::uint32_t>(sum >> 32),
               static_cast<std::uint32_t>(squares), static_cast<std::uint32_t>(squares >> 32)};
    }
  }

 private:
  /// x = function(x, column), saturated to s32, for every column.
  template <typename Function>
  void each(Function function) {
    for (std::size_t c = 0; c < row_.x.size(); ++c) {
      row_.x[c] = saturate_bits(function(row_.x[c], c), 32);
    }
  }

  [[nodiscard]] std::int32_t value(std::size_t i) const { return imm32(stage_, i); }
  [[nodiscard]] unsigned shift(std::size_t i) const { return static_cast<unsigned>(stage_.imm[i]); }
  /// lo and hi, the immediates i and i + 1.
  [[nodiscard]] IntRange limits(std::size_t i) const { return {stage_.imm[i], stage_.imm[i + 1]}; }

  /// Word `word` of the stage's own parameters of column c.
  [[nodiscard]] std::int32_t parameter(std::size_t word, std::size_t c) const {
    return row_.parameters[(word_ + word) * row_.x.size() + c];
  }

  /// The operand y of column c; of a stage that takes an immediate it is the immediate i.
  [[nodiscard]] std::int32_t operand(std::size_t c, std::size_t i) const {
    switch (stage_.operand) {
      case Operand::kImmediate:
        break;
      case Operand::kChannel:
        return parameter(0, c);
      case Operand::kRow:
        return static_cast<std::int32_t>(row_.statistics[0]);
      case Operand::kTensor:
        return row_.tensors[port_][c];
      case Operand::kSaved:
        return saved_[c];
    }
    return value(i);
  }

  /// The second term of a sum: y, requantised first if the stage has a multiplier.
  [[nodiscard]] std::int64_t addend(std::size_t c) const {
    const std::int32_t y = operand(c, 4);
    if (!scales_operand(stage_)) return y;
    return requantise(y, dyadic_at(stage_, 0), stage_.rounding, limits(2));
  }

  /// Whether a mask lets column c through. Without an operand the mask is causal.
  [[nodiscard]] bool passes(std::size_t c) const {
    if (stage_.operand == Operand::kImmediate) return c < row_.valid_cols;
    return operand(c, 0) != 0;
  }

  /// The factor of a requantisation: one for all columns, or one for each.
  [[nodiscard]] Dyadic factor(std::size_t c) const {
    if (stage_.operand == Operand::kImmediate) return dyadic_at(stage_, 0);
    return channel_factor(parameter(0, c), parameter(1, c));
  }

  /// int_exp() of min(x, 0), scaled to its argument and rounded half up. The argument saturates at
  /// kIntExpLowestArgument.
  void exponential() {
    const IntExpConstants constants = make_int_exp_constants(shift(2));
    each([&](std::int64_t x, std::size_t) -> std::int64_t {
      const std::int64_t scaled =
          scale(std::min<std::int64_t>(x, 0), dyadic_at(stage_, 0), Rounding::kHalfUp);
      return int_exp(scaled, constants);
    });
  }

  /// softmax_row() of the first valid_cols columns; the codes of the others are 0. The deferred
  /// mode leaves its divisor, the sum of the codes, in the row statistics.
  void softmax() {
    const SoftmaxConstants constants = softmax_constants(stage_);
    std::vector<std::uint32_t> codes(row_.x.size());
    std::vector<std::uint8_t> keep(row_.x.size(), 0);
    std::fill_n(keep.begin(), std::min(row_.valid_cols, keep.size()), std::uint8_t{1});
    const std::uint32_t sum =
        softmax_row(row_.x.data(), keep.data(), codes.size(), constants, codes.data());
    std::copy(codes.begin(), codes.end(), row_.x.begin());
    if (constants.mode == SoftmaxMode::kDeferred) row_.statistics[0] = sum;
  }

  /// Mean, deviation and its reciprocal: of the row itself, whose values are within s24, or from
  /// the sum and the sum of squares in the row statistics.
  [[nodiscard]] LayerNormStatistics norm_statistics() const {
    if (stage_.op == StageOp::kLayerNorm) return layernorm_statistics(row_.x.data(), row_.x.size());
    const std::uint64_t squares = wide_word(row_.statistics, 2);
    if (stage_.op == StageOp::kRmsNormApply) return rms_norm_statistics(squares);
    return layernorm_statistics_from_sums(static_cast<std::int64_t>(wide_word(row_.statistics, 0)),
                                          squares, static_cast<std::size_t>(stage_.imm[4]));
  }

  /// (x - mean) / deviation, times the channel's multiplier, plus its addend. RMSNorm has neither
  /// mean nor addend.
  void normalise() {
    for (std::int32_t& x : row_.x) x = saturate_bits(x, kLayerNormMaxInputBits);
    const LayerNormStatistics statistics = norm_statistics();
    each([&](std::int64_t x, std::size_t c) {
      const std::int32_t norm =
          layernorm_normalise(static_cast<std::int32_t>(x), statistics, shift(0));
      const std::int32_t bias = stage_.op == StageOp::kRmsNormApply ? 0 : parameter(1, c);
      return norm_output(norm, parameter(0, c), bias, shift(1), limits(2));
    });
  }

  /// rope() of columns c and c + 1; y has the cosine and the sine of their angle.
  void rotate() {
    if (row_.x.size() % 2 != 0) throw std::invalid_argument("rope: an odd number of columns");
    for (std::size_t c = 0; c < row_.x.size(); c += 2) {
      const RopePair turned = rope({row_.x[c], row_.x[c + 1]}, {operand(c, 0), operand(c + 1, 0)},
                                   shift(0), stage_.rounding, limits(1));
      row_.x[c] = turned.even;
      row_.x[c + 1] = turned.odd;
    }
  }

  const Stage& stage_;
  std::size_t word_, port_;
  const std::vector<std::int32_t>& saved_;
  PlainRow& row_;
};

void check_operands(const Chain& chain, const PlainRow& row) {
  const std::size_t cols = row.x.size();
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("post-op row: ") + what);
  };
  require(cols <= kLayerNormMaxLength || !is_row_wise(chain), "longer than 65536 elements");
  require(row.parameters.size() == parameter_words(chain) * cols,
          "the parameters do not fill the columns");
  require(row.statistics.size() == statistics_words(chain), "row statistics of another length");
  require(row.tensors.size() == tensor_operands(chain), "another number of tensor operands");
  for (const std::vector<std::int32_t>& tensor : row.tensors) {
    require(tensor.size() == cols, "a tensor operand does not fill the columns");
  }
}

}  // namespace

void apply_plain_row(const Chain& chain, PlainRow& row) {
  check_operands(chain, row);
  if (row.x.empty()) return;
  const std::vector<std::int32_t> saved = row.x;
  std::size_t word = 0, port = 0;
  for (const Stage& stage : chain.stages) {
    PlainStage plain(stage, word, port, saved, row);
    plain.apply();
    plain.leave_statistics();
    word += parameter_words(stage);
    if (stage.operand == Operand::kTensor) ++port;
  }
  for (std::int32_t& x : row.x) x = static_cast<std::int32_t>(saturate(x, range_of(chain.out)));
}

}  // namespace systole::hw

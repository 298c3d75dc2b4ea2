#include <cstdint>
#include <limits>
#include <string>

#include "base/error.h"
#include "hw/function/divide.h"
#include "hw/function/gelu.h"
#include "hw/function/layernorm.h"
#include "hw/function/row_scale.h"
#include "hw/function/softmax.h"
#include "hw/number/int_exp.h"
#include "hw/number/integer.h"
#include "hw/postop/postop.h"

namespace systole::hw {
namespace {

constexpr std::int64_t kMaxMultiplier = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kLowestImmediate = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kHighestImmediate = std::numeric_limits<std::int32_t>::max();
/// The accumulator of the layer_norm output must hold product, addend and rounding half.
constexpr std::int64_t kMaxLayerNormShift = kMaxDyadicShift - 1;
/// The normalised value is a 32-bit operand of the channel multiplier.
constexpr std::int64_t kMaxLayerNormFraction = kLayerNormFactorBits - 1;
/// The clip point of GELU is an input of 16 bits, with the sign 17.
constexpr std::int64_t kMaxGeluClip = std::int64_t{1} << 16;
/// Bound on the polynomial constants; the product of the three terms is checked separately.
constexpr std::int64_t kMaxGeluConstant = std::int64_t{1} << 40;
constexpr std::int64_t kLargestGeluInput = std::int64_t{1} << 15;

class StageCheck {
 public:
  StageCheck(const Stage& stage, std::size_t index, const ChainLimits& limits)
      : stage_(stage), index_(index), limits_(limits) {}

  void run() const {
    if (static_cast<std::uint8_t>(stage_.op) >= kStageOps) {
      fail("opcode " + std::to_string(static_cast<int>(stage_.op)) + ", expected 0 to " +
           std::to_string(kStageOps - 1));
    }
    const auto unit = static_cast<std::size_t>(stage_info(stage_.op).unit);
    if (!limits_.units.at(unit)) {
      fail("the machine has no unit for it (" + std::string(key_of(stage_info(stage_.op).unit)) +
           " is 0)");
    }
    check_flags();
    check_operand();
    check_immediates();
    for (std::size_t i = 0; i < kStageImmediates; ++i) {
      if (name(i).empty() && stage_.imm[i] != 0) {
        fail("immediate " + std::to_string(i) + " is " + std::to_string(stage_.imm[i]) +
             ", expected 0: this stage does not use it");
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    std::string place = "stage " + std::to_string(index_);
    if (static_cast<std::uint8_t>(stage_.op) < kStageOps) {
      place += " (" + std::string(stage_info(stage_.op).name) + ")";
    }
    throw InputError(place + ": " + what);
  }

  [[nodiscard]] std::string_view name(std::size_t i) const { return stage_info(stage_.op).imm[i]; }

  void in_range(std::size_t i, std::int64_t lowest, std::int64_t highest) const {
    const std::int64_t value = stage_.imm[i];
    if (value < lowest || value > highest) {
      fail(std::string(name(i)) + " " + std::to_string(value) + ", expected " +
           std::to_string(lowest) + " to " + std::to_string(highest));
    }
  }

  /// lo and hi, the immediates i and i + 1.
  void clamp_range(std::size_t i) const {
    in_range(i, kLowestImmediate, kHighestImmediate);
    in_range(i + 1, stage_.imm[i], kHighestImmediate);
  }

  void dyadic(std::size_t i, std::int64_t lowest_multiplier) const {
    in_range(i, lowest_multiplier, kMaxMultiplier);
    in_range(i + 1, 0, kMaxDyadicShift);
  }

  void check_flags() const {
    const auto below = [this](const char* what, auto value, int end) {
      if (static_cast<int>(value) >= end) {
        fail(std::string(what) + " " + std::to_string(static_cast<int>(value)) +
             ", expected 0 to " + std::to_string(end - 1));
      }
    };
    below("rounding", stage_.rounding, 3);
    below("operand", stage_.operand, kOperandKinds);
    below("tensor type", stage_.tensor, kDTypes);
    below("side output", stage_.side, kReductions);
    if (!stage_info(stage_.op).rounds && stage_.rounding != Rounding::kHalfUp) {
      fail("rounding given, expected half_up: this stage has no other");
    }
    if (stage_.side != Reduction::kNone &&
        statistics_written({stage_.op, {}, {}, {}, {}, stage_.imm}) != 0) {
      fail("side output given, but it leaves its own row sum");
    }
  }

  void check_operand() const {
    const StageInfo& info = stage_info(stage_.op);
    if (info.takes(stage_.operand)) return;
    std::string expected;
    for (std::uint8_t i = 0; i < kOperandKinds; ++i) {
      const auto operand = static_cast<Operand>(i);
      if (info.takes(operand))
        expected += (expected.empty() ? "" : ", ") + std::string(name_of(operand));
    }
    fail("operand " + std::string(name_of(stage_.operand)) + ", expected " + expected);
  }

  void check_immediates() const {
    switch (stage_.op) {
      case StageOp::kRelu:
      case StageOp::kDivideRowSum:
      case StageOp::kTranspose:
        return;
      case StageOp::kRequantise:
        dyadic(0, -kMaxMultiplier);
        clamp_range(2);
        return;
      case StageOp::kAdd:
      case StageOp::kSub:
        dyadic(0, -kMaxMultiplier);
        clamp_range(2);
        check_value(4);
        return;
      case StageOp::kMul:
        in_range(0, 0, kMaxDyadicShift);
        clamp_range(1);
        check_value(3);
        return;
      case StageOp::kDivide:
        in_range(0, 0, kMaxDivideShift);
        clamp_range(1);
        check_value(3);
        if (stage_.operand == Operand::kImmediate && stage_.imm[3] == 0) {
          fail("value 0, expected a divisor that is not 0");
        }
        return;
      case StageOp::kMask:
        in_range(0, kLowestImmediate, kHighestImmediate);
        return;
      case StageOp::kExp:
        dyadic(0, 0);
        in_range(2, kMinExpFractionBits, kMaxExpFractionBits);
        return;
      case StageOp::kSilu:
      case StageOp::kTanh:
        dyadic(0, 0);
        in_range(2, kMinExpFractionBits, kMaxExpFractionBits);
        dyadic(3, -kMaxMultiplier);
        clamp_range(5);
        return;
      case StageOp::kLayerNormApply:
        in_range(4, 1, kLayerNormMaxLength);
        [[fallthrough]];
      case StageOp::kRmsNormApply:
        in_range(0, 1, kMaxLayerNormFraction);
        in_range(1, 0, kMaxLayerNormShift);
        clamp_range(2);
        return;
      case StageOp::kRope:
        in_range(0, 0, kMaxDyadicShift);
        clamp_range(1);
        return;
      case StageOp::kClamp:
        clamp_range(0);
        return;
      case StageOp::kQuantiseRow:
        in_range(0, 1, (1 << kRowCodeBits) - 1);
        return;
      case StageOp::kGelu:
        check_gelu();
        return;
      case StageOp::kSoftmax:
        in_range(0, 0, static_cast<std::int64_t>(SoftmaxMode::kNormalisedRound));
        dyadic(1, 0);
        in_range(3, kMinExpFractionBits, kMaxExpFractionBits);
        dyadic(4, 0);
        in_range(6, 1, 16);
        return;
      case StageOp::kLayerNorm:
        in_range(0, 1, kMaxLayerNormFraction);
        in_range(1, 0, kMaxLayerNormShift);
        clamp_range(2);
        return;
    }
  }

  /// The operand itself, the immediate i.
  void check_value(std::size_t i) const {
    in_range(i, kLowestImmediate, kHighestImmediate);
    if (stage_.operand != Operand::kImmediate && stage_.imm[i] != 0) {
      fail("value " + std::to_string(stage_.imm[i]) + ", expected 0: its operand is another");
    }
  }

  void check_gelu() const {
    in_range(0, -kMaxGeluClip, 0);
    in_range(1, -kMaxGeluConstant, kMaxGeluConstant);
    in_range(2, -kMaxGeluConstant, kMaxGeluConstant);
    dyadic(3, -kMaxMultiplier);
    clamp_range(5);
    const auto magnitude = [this](std::size_t i) {
      return Int128{stage_.imm[i] < 0 ? -stage_.imm[i] : stage_.imm[i]};
    };
    const Int128 erf = magnitude(0) * magnitude(0) + magnitude(1) + magnitude(2);
    if (kLargestGeluInput * erf * magnitude(3) >= Int128{1} << 62) {
      fail("b, c, one and multiplier together need a product of more than 63 bits");
    }
  }

  const Stage& stage_;
  std::size_t index_;
  const ChainLimits& limits_;
};

void at_most(std::size_t found, std::size_t highest, const char* what) {
  if (found <= highest) return;
  throw InputError(std::to_string(found) + " " + what + ", expected at most " +
                   std::to_string(highest));
}

}  // namespace

ChainLimits chain_limits(const Machine& machine) {
  const Machine::Postop& postop = machine.postop;
  return {postop.max_stages,
          postop.tensor_operands,
          {true, postop.gelu != 0, postop.exponential != 0, postop.norm != 0, postop.rope != 0,
           postop.transposer != 0, postop.divider != 0}};
}

void check_chain(const Chain& chain, const ChainLimits& limits) {
  at_most(chain.stages.size(), limits.max_stages, "stages");
  if (static_cast<std::uint8_t>(chain.out) >= kDTypes) {
    throw InputError("output type " + std::to_string(static_cast<int>(chain.out)) +
                     ", expected 0 to " + std::to_string(kDTypes - 1));
  }
  std::size_t row_wise = 0;
  std::size_t side_outputs = 0;
  for (std::size_t i = 0; i < chain.stages.size(); ++i) {
    const Stage& stage = chain.stages[i];
    StageCheck(stage, i, limits).run();
    if (stage_info(stage.op).row_wise) ++row_wise;
    if (statistics_written(stage) != 0) ++side_outputs;
    if (stage.op == StageOp::kTranspose && i + 1 != chain.stages.size()) {
      throw InputError("stage " + std::to_string(i) + " (transpose): expected it to be the last");
    }
  }
  at_most(row_wise, 1, "row-wise stages");
  at_most(side_outputs, 1, "side outputs");
  at_most(tensor_operands(chain), limits.tensor_operands, "tensor operands");
  if (writes_row_statistics(chain) && reads_row_statistics(chain)) {
    throw InputError("one stage writes the row statistics and another reads them");
  }
  for (const Stage& stage : chain.stages) {
    const std::uint32_t words = statistics_read(stage);
    if (words != 0 && words != statistics_words(chain)) {
      throw InputError("stages read row statistics of " + std::to_string(words) + " and " +
                       std::to_string(statistics_words(chain)) + " words");
    }
  }
}

void check_pre_chain(const Chain& chain) {
  if (is_row_wise(chain)) throw InputError("works on whole rows");
  if (writes_row_statistics(chain)) throw InputError("writes row statistics");
  if (transposes(chain)) throw InputError("transposes");
}

}  // namespace systole::hw

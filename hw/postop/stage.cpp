#include "hw/postop/stage.h"

#include <algorithm>
#include <numeric>

#include "hw/function/divide.h"
#include "hw/function/layernorm.h"
#include "hw/function/rope.h"
#include "hw/function/row_scale.h"
#include "hw/function/silu.h"
#include "hw/function/softmax.h"
#include "hw/function/tanh.h"
#include "hw/number/int_exp.h"
#include "hw/number/isqrt.h"
#include "hw/number/serial_unit.h"
#include "hw/number/unit_depths.h"

namespace systole::hw {
namespace {

using unit_depth::kAdd;
using unit_depth::kClamp;
using unit_depth::kMultiply;
using unit_depth::kRequantise;
using unit_depth::kShift;

/// floor(2^32 / sum of exponentials).
constexpr std::uint32_t kSoftmaxSerial = serial_cycles(33);
/// floor(2^24 / sum of codes).
constexpr std::uint32_t kDivideSerial = serial_cycles(kDeferredReciprocalBits + 1);
/// Until the words of a row's statistics are there.
constexpr std::uint32_t kStatisticsRead = 2;
/// Mean of s24 inputs; floor(2^31 / deviation), which is 2^31 for a deviation of 1.
constexpr std::uint32_t kMeanSerial = serial_cycles(kLayerNormMaxInputBits);
constexpr std::uint32_t kReciprocalSerial = serial_cycles(kLayerNormFactorBits + 1);

// Score minus maximum, scaled to the argument; exponential; output code.
constexpr std::uint32_t kSoftmaxLatency =
    (kAdd + kMultiply + kShift) + kIntExpLatency + kRequantise;
// Magnitude and clip; square; constant and sign; product with the input; requantisation.
constexpr std::uint32_t kGeluLatency = kClamp + kMultiply + kAdd + kMultiply + kRequantise;
// Deviation; reciprocal and its shift; channel multiplier and addend; shift and clamp.
constexpr std::uint32_t kLayerNormLatency =
    kAdd + (kMultiply + kShift) + (kMultiply + kAdd) + (kShift + kClamp);
// The same without mean and addend.
constexpr std::uint32_t kRmsNormLatency = (kMultiply + kShift) + kMultiply + (kShift + kClamp);

/// From the last beat of the squares' pass to the reciprocal: deviation and its square, root,
/// division.
constexpr std::uint32_t kLayerNormAfterSquares =
    kAdd + kMultiply + kIntSqrtCycles + kReciprocalSerial;

constexpr std::uint8_t kind(Operand operand) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(operand));
}
constexpr std::uint8_t kNoOperand = kind(Operand::kImmediate);
constexpr std::uint8_t kChannels = kind(Operand::kChannel);
constexpr std::uint8_t kAny =
    kNoOperand | kChannels | kind(Operand::kRow) | kind(Operand::kTensor) | kind(Operand::kSaved);

constexpr std::array<StageInfo, kStageOps> kStageTable = {{
    {"add",
     {"multiplier", "shift", "lo", "hi", "value"},
     kAny,
     true,
     false,
     0,
     kAdd,
     StageUnit::kAlways},
    {"requantise",
     {"multiplier", "shift", "lo", "hi"},
     kNoOperand | kChannels,
     true,
     false,
     0,
     kRequantise,
     StageUnit::kAlways},
    {"sub",
     {"multiplier", "shift", "lo", "hi", "value"},
     kAny,
     true,
     false,
     0,
     kAdd,
     StageUnit::kAlways},
    {"clamp", {"lo", "hi"}, kNoOperand, false, false, 0, kClamp, StageUnit::kAlways},
    {"relu", {}, kNoOperand, false, false, 0, kClamp, StageUnit::kAlways},
    {"gelu",
     {"b", "c", "one", "multiplier", "shift", "lo", "hi"},
     kNoOperand,
     false,
     false,
     0,
     kGeluLatency,
     StageUnit::kGelu},
    {"softmax",
     {"mode", "multiplier", "shift", "frac_bits", "out_multiplier", "out_shift", "out_bits"},
     kNoOperand,
     false,
     true,
     2,  // maximum, sum
     kSoftmaxLatency,
     StageUnit::kExponential},
    {"divide_row_sum",
     {},
     kind(Operand::kRow),
     false,
     false,
     0,
     kRequantise,
     StageUnit::kExponential},
    {"layer_norm",
     {"fraction_bits", "shift", "lo", "hi"},
     kChannels,
     false,
     true,
     2,  // mean, sum of squares
     kLayerNormLatency,
     StageUnit::kNorm},
    {"mul", {"shift", "lo", "hi", "value"}, kAny, true, false, 0, kRequantise, StageUnit::kAlways},
    {"mask",
     {"fill"},
     kNoOperand | kChannels | kind(Operand::kRow) | kind(Operand::kTensor),
     false,
     false,
     0,
     kClamp,
     StageUnit::kAlways},
    {"exp",
     {"multiplier", "shift", "frac_bits"},
     kNoOperand,
     false,
     false,
     0,
     kRequantise + kIntExpLatency,
     StageUnit::kExponential},
    {"silu",
     {"multiplier", "shift", "frac_bits", "out_multiplier", "out_shift", "lo", "hi"},
     kNoOperand,
     false,
     false,
     0,
     kSiluLatency,
     StageUnit::kExponential},
    {"layer_norm_apply",
     {"fraction_bits", "shift", "lo", "hi", "length"},
     kChannels,
     false,
     false,
     0,
     kLayerNormLatency,
     StageUnit::kNorm},
    {"rms_norm_apply",
     {"fraction_bits", "shift", "lo", "hi"},
     kChannels,
     false,
     false,
     0,
     kRmsNormLatency,
     StageUnit::kNorm},
    {"rope",
     {"shift", "lo", "hi"},
     kind(Operand::kTensor),
     true,
     false,
     0,
     kRopeLatency,
     StageUnit::kRope},
    {"transpose", {}, kNoOperand, false, false, 0, kAdd, StageUnit::kTransposer},
    {"quantise_row", {"top"}, kind(Operand::kRow), false, false, 0, kRequantise, StageUnit::kNorm},
    {"tanh",
     {"multiplier", "shift", "frac_bits", "out_multiplier", "out_shift", "lo", "hi"},
     kNoOperand,
     false,
     false,
     0,
     kTanhLatency,
     StageUnit::kExponential},
    {"divide",
     {"shift", "lo", "hi", "value"},
     kAny,
     true,
     false,
     0,
     kDivideLatency,
     StageUnit::kDivider},
}};

bool is_deferred_softmax(const Stage& stage) {
  return stage.op == StageOp::kSoftmax &&
         stage.imm[0] == static_cast<std::int64_t>(SoftmaxMode::kDeferred);
}

/// Words of a row that kSumSquares leaves.
constexpr std::uint32_t kSumSquaresWords = 4;

}  // namespace

std::string_view name_of(Operand operand) {
  constexpr std::array<std::string_view, kOperandKinds> kNames = {"immediate", "channel", "row",
                                                                  "tensor", "saved"};
  return kNames.at(static_cast<std::size_t>(operand));
}

std::string_view name_of(Reduction reduction) {
  constexpr std::array<std::string_view, kReductions> kNames = {"none", "row_max", "row_sum",
                                                                "sum_squares", "row_peak"};
  return kNames.at(static_cast<std::size_t>(reduction));
}

std::string_view key_of(StageUnit unit) {
  constexpr std::array<std::string_view, kStageUnits> kKeys = {"",
                                                               "postop.gelu",
                                                               "postop.exponential",
                                                               "postop.norm",
                                                               "postop.rope",
                                                               "postop.transposer",
                                                               "postop.divider"};
  return kKeys.at(static_cast<std::size_t>(unit));
}

const StageInfo& stage_info(StageOp op) { return kStageTable.at(static_cast<std::size_t>(op)); }

Stage default_stage(StageOp op) {
  Stage stage;
  stage.op = op;
  for (std::uint8_t i = 0; i < kOperandKinds; ++i) {
    const auto operand = static_cast<Operand>(i);
    if (stage_info(op).operands == kind(operand)) stage.operand = operand;
  }
  return stage;
}

bool scales_operand(const Stage& stage) {
  return (stage.op == StageOp::kAdd || stage.op == StageOp::kSub) && stage.imm[0] != 0;
}

bool clamps_to(const Stage& stage, IntRange range) {
  // Those of a sum are its operand's.
  if (stage.op == StageOp::kAdd || stage.op == StageOp::kSub) return false;
  const auto& names = stage_info(stage.op).imm;
  const auto lo = std::find(names.begin(), names.end(), "lo");
  if (lo == names.end()) return false;
  const auto at = static_cast<std::size_t>(lo - names.begin());
  return stage.imm[at] >= range.lo && stage.imm.at(at + 1) <= range.hi;
}

std::uint32_t statistics_passes(const Stage& stage) {
  // The codes of the deferred mode are summed as they leave.
  return is_deferred_softmax(stage) ? 1 : stage_info(stage.op).passes;
}

std::uint32_t parameter_words(const Stage& stage) {
  if (stage.operand != Operand::kChannel) return 0;
  switch (stage.op) {
    case StageOp::kRequantise:      // multiplier, shift
    case StageOp::kLayerNorm:       // multiplier, addend
    case StageOp::kLayerNormApply:  // the same
      return 2;
    default:
      return 1;
  }
}

std::uint32_t statistics_read(const Stage& stage) {
  if (stage.op == StageOp::kLayerNormApply || stage.op == StageOp::kRmsNormApply) {
    return kSumSquaresWords;
  }
  return stage.operand == Operand::kRow ? 1 : 0;
}

std::uint32_t statistics_written(const Stage& stage) {
  if (is_deferred_softmax(stage)) return 1;
  switch (stage.side) {
    case Reduction::kNone:
      return 0;
    case Reduction::kRowMax:
    case Reduction::kRowSum:
    case Reduction::kRowPeak:
      return 1;
    case Reduction::kSumSquares:
      return kSumSquaresWords;
  }
  return 0;
}

std::uint32_t stage_latency(const Stage& stage) {
  const bool adds = stage.op == StageOp::kAdd || stage.op == StageOp::kSub;
  // A tensor operand has its requantiser whether or not it is used.
  const bool requantiser = adds && (stage.operand == Operand::kTensor || scales_operand(stage));
  return stage_info(stage.op).latency + (requantiser ? kRequantise : 0);
}

FactorCycles factor_cycles(const Stage& stage) {
  if (stage.op != StageOp::kLayerNormApply) return {kStatisticsRead + kDivideSerial};
  // Mean; sum of squares about it: mean times sum and length, two additions; root; reciprocal. A
  // unit that hands over its result takes a cycle for it.
  constexpr std::uint32_t kMean = kMeanSerial + 1;
  constexpr std::uint32_t kSquares = 2 * (kMultiply + kAdd);
  return {kStatisticsRead + kMean + kSquares, kIntSqrtCycles + 1, kReciprocalSerial + 1};
}

std::uint64_t stage_interval(const Stage& stage, std::uint64_t vectors) {
  const std::uint64_t reading = vectors * (statistics_passes(stage) + 1);
  switch (stage.op) {
    case StageOp::kSoftmax:
      return is_deferred_softmax(stage) ? reading
                                        : std::max<std::uint64_t>(reading, kSoftmaxSerial);
    case StageOp::kDivideRowSum:
    case StageOp::kLayerNormApply: {
      const FactorCycles units = factor_cycles(stage);
      return std::max<std::uint64_t>(reading, *std::max_element(units.begin(), units.end()));
    }
    case StageOp::kLayerNorm:
      // Mean and reciprocal share the divider: that of the next row's mean begins with its second
      // slot, when this row's reciprocal must be done.
      return std::max(reading, vectors + kLayerNormAfterSquares);
    case StageOp::kRmsNormApply:
      return std::max<std::uint64_t>(reading, std::max(kIntSqrtCycles, kReciprocalSerial));
    case StageOp::kQuantiseRow:
      return std::max<std::uint64_t>(reading, kRowReciprocalSerial);
    default:
      return reading;
  }
}

std::uint32_t stage_lead(const Stage& stage) {
  switch (stage.op) {
    case StageOp::kDivideRowSum:
    case StageOp::kLayerNormApply: {
      const FactorCycles units = factor_cycles(stage);
      return std::accumulate(units.begin(), units.end(), 0U);
    }
    case StageOp::kRmsNormApply:
      return kIntSqrtCycles + kReciprocalSerial;
    case StageOp::kQuantiseRow:
      return kRowFactorCycles;
    default:
      return 0;
  }
}

}  // namespace systole::hw

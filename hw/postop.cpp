#include "hw/postop.h"

#include <algorithm>

#include "hw/int_exp.h"
#include "hw/isqrt.h"
#include "hw/layernorm.h"
#include "hw/serial_unit.h"
#include "hw/softmax.h"
#include "hw/unit_depths.h"

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
/// Mean of s24 inputs; floor(2^31 / deviation), which is 2^31 for a deviation of 1.
constexpr std::uint32_t kMeanSerial = serial_cycles(kLayerNormMaxInputBits);
constexpr std::uint32_t kReciprocalSerial = serial_cycles(kLayerNormFactorBits + 1);
constexpr std::uint32_t kLayerNormSerial = kMeanSerial + kIntSqrtCycles + kReciprocalSerial;

// Score minus maximum, scaled to the argument; exponential; output code.
constexpr std::uint32_t kSoftmaxLatency =
    (kAdd + kMultiply + kShift) + kIntExpLatency + kRequantise;
// Magnitude and clip; square; constant and sign; product with the input; requantisation.
constexpr std::uint32_t kGeluLatency = kClamp + kMultiply + kAdd + kMultiply + kRequantise;
// Deviation; reciprocal and its shift; channel multiplier and addend; shift and clamp.
constexpr std::uint32_t kLayerNormLatency =
    kAdd + (kMultiply + kShift) + (kMultiply + kAdd) + (kShift + kClamp);

/// From the last beat of the squares' pass to the reciprocal: deviation and its square, root,
/// division.
constexpr std::uint32_t kLayerNormBehindSquares =
    kAdd + kMultiply + kIntSqrtCycles + kReciprocalSerial;

constexpr std::array<StageInfo, kStageOps> kStageTable = {{
    {"bias", {}, false, 0, kAdd, 0},
    {"requantise", {"multiplier", "shift", "lo", "hi"}, false, 0, kRequantise, 0},
    {"add_tensor", {"multiplier", "shift", "lo", "hi"}, false, 0, kRequantise + kAdd, 0},
    {"clamp", {"lo", "hi"}, false, 0, kClamp, 0},
    {"relu", {}, false, 0, kClamp, 0},
    {"gelu", {"b", "c", "one", "multiplier", "shift", "lo", "hi"}, false, 0, kGeluLatency, 0},
    {"softmax",
     {"mode", "multiplier", "shift", "frac_bits", "out_multiplier", "out_shift", "out_bits"},
     true,
     2,  // maximum, sum
     kSoftmaxLatency,
     kSoftmaxSerial},
    {"divide_row_sum", {}, false, 0, kRequantise, kDivideSerial},
    {"layer_norm",
     {"fraction_bits", "shift", "lo", "hi"},
     true,
     2,  // mean, sum of squares
     kLayerNormLatency,
     kLayerNormSerial},
}};

bool is_deferred_softmax(const Stage& stage) {
  return stage.op == StageOp::kSoftmax &&
         stage.imm[0] == static_cast<std::int64_t>(SoftmaxMode::kDeferred);
}

/// Passes of a row-wise stage with two statistics, each in an interval of its own.
constexpr std::uint64_t kMostPasses = 3;

/// Shortest interval between rows of `vectors` vectors that the stage's serial units allow.
std::uint64_t serial_interval(const Stage& stage, std::uint64_t vectors) {
  switch (stage.op) {
    case StageOp::kSoftmax:
      return is_deferred_softmax(stage) ? 0 : kSoftmaxSerial;
    case StageOp::kDivideRowSum:
      return kDivideSerial;
    case StageOp::kLayerNorm:
      // Mean and reciprocal share the divider: that of the next row's mean begins with its second
      // slot, when this row's reciprocal must be done.
      return vectors + kLayerNormBehindSquares;
    default:
      return 0;
  }
}

template <typename Predicate>
bool any_stage(const Chain& chain, Predicate predicate) {
  return std::any_of(chain.stages.begin(), chain.stages.end(), predicate);
}

}  // namespace

const StageInfo& stage_info(StageOp op) { return kStageTable.at(static_cast<std::size_t>(op)); }

std::uint32_t statistics_passes(const Stage& stage) {
  // The codes of the deferred mode are summed on their way out.
  return is_deferred_softmax(stage) ? 1 : stage_info(stage.op).passes;
}

std::uint32_t parameter_words(const Stage& stage) {
  switch (stage.op) {
    case StageOp::kBias:
      return 1;
    case StageOp::kRequantise:
      return stage.per_channel ? 2 : 0;
    case StageOp::kLayerNorm:
      return 2;
    default:
      return 0;
  }
}

std::uint32_t parameter_words(const Chain& chain) {
  std::uint32_t words = 0;
  for (const Stage& stage : chain.stages) words += parameter_words(stage);
  return words;
}

bool is_row_wise(const Chain& chain) {
  return any_stage(chain, [](const Stage& stage) { return stage_info(stage.op).row_wise; });
}

bool has_stage(const Chain& chain, StageOp op) {
  return any_stage(chain, [op](const Stage& stage) { return stage.op == op; });
}

bool uses_tensor(const Chain& chain) { return has_stage(chain, StageOp::kAddTensor); }

bool writes_row_statistics(const Chain& chain) { return any_stage(chain, is_deferred_softmax); }

bool reads_row_statistics(const Chain& chain) { return has_stage(chain, StageOp::kDivideRowSum); }

ChainCycles chain_cycles(const Chain& chain, std::uint64_t rows, std::uint64_t cols,
                         std::uint32_t lanes) {
  if (rows == 0 || cols == 0) return {};
  const std::uint64_t vectors = cols / lanes + (cols % lanes != 0 ? 1 : 0);
  ChainCycles cycles;
  std::uint64_t passes = 1;
  std::uint64_t serial = 0;  // shortest interval that the serial units allow
  std::uint64_t divide = 0;  // in front of the first row
  for (const Stage& stage : chain.stages) {
    // Behind a row-wise stage the division for the first row is long done.
    if (stage.op == StageOp::kDivideRowSum && passes == 1) divide = kDivideSerial;
    passes += statistics_passes(stage);
    serial = std::max(serial, serial_interval(stage, vectors));
    cycles.fill += stage_info(stage.op).latency;
  }
  const std::uint64_t reading = vectors * passes;
  cycles.per_row = std::max(reading, serial);
  cycles.reads = reading * rows;
  const std::uint64_t intervals_ahead = passes == kMostPasses ? kMostPasses - 1 : 0;
  // The last row takes no more than its passes, the rows before it an interval each.
  cycles.fill += divide + intervals_ahead * cycles.per_row + reading - cycles.per_row;
  return cycles;
}

}  // namespace systole::hw

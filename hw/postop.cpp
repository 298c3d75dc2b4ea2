#include "hw/postop.h"

#include <algorithm>

#include "hw/softmax.h"

namespace systole::hw {
namespace {

// Depths of the units that the stages are built from, in cycles.
constexpr std::uint32_t kMultiply = 3;  ///< pipelined multiplier, up to 32 x 31 bits
constexpr std::uint32_t kShift = 1;     ///< barrel shifter with its rounding increment
constexpr std::uint32_t kClamp = 1;     ///< two comparisons and a selection
constexpr std::uint32_t kAdd = 1;       ///< addition or subtraction with saturation
constexpr std::uint32_t kRequantise = kMultiply + kShift + kClamp;

/// The serial unit retires two bits of a quotient or root per cycle (radix 4).
constexpr std::uint32_t serial_cycles(std::uint32_t result_bits) { return (result_bits + 1) / 2; }

/// floor(2^32 / sum of exponentials).
constexpr std::uint32_t kSoftmaxSerial = serial_cycles(33);
/// floor(2^24 / sum of codes).
constexpr std::uint32_t kDivideSerial = serial_cycles(kDeferredReciprocalBits + 1);
/// Mean of s24 inputs, root of a 64-bit sum of squares, floor(2^31 / deviation).
constexpr std::uint32_t kLayerNormSerial =
    serial_cycles(24) + serial_cycles(32) + serial_cycles(32);

// Score minus maximum, scaled to the argument; argument to halvings, halvings back to the
// remainder and polynomial offset; square plus constant and the shift by the halvings; output code.
constexpr std::uint32_t kSoftmaxLatency = (kAdd + kMultiply + kShift) +
                                          (kMultiply + kMultiply + kAdd) + (kMultiply + kShift) +
                                          kRequantise;
// Magnitude and clip; square; constant and sign; product with the input; requantisation.
constexpr std::uint32_t kGeluLatency = kClamp + kMultiply + kAdd + kMultiply + kRequantise;
// Deviation; reciprocal and its shift; channel multiplier and addend; shift and clamp.
constexpr std::uint32_t kLayerNormLatency =
    kAdd + (kMultiply + kShift) + (kMultiply + kAdd) + (kShift + kClamp);

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

std::uint32_t row_serial_cycles(const Stage& stage) {
  return is_deferred_softmax(stage) ? 0 : stage_info(stage.op).row_serial;
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

bool uses_tensor(const Chain& chain) {
  return any_stage(chain, [](const Stage& stage) { return stage.op == StageOp::kAddTensor; });
}

bool writes_row_statistics(const Chain& chain) { return any_stage(chain, is_deferred_softmax); }

bool reads_row_statistics(const Chain& chain) {
  return any_stage(chain, [](const Stage& stage) { return stage.op == StageOp::kDivideRowSum; });
}

ChainCycles chain_cycles(const Chain& chain, std::uint64_t rows, std::uint64_t cols,
                         std::uint32_t lanes) {
  if (rows == 0 || cols == 0) return {};
  std::uint64_t passes = 1;
  std::uint64_t serial = 0;
  ChainCycles cycles;
  for (const Stage& stage : chain.stages) {
    passes += statistics_passes(stage);
    serial += row_serial_cycles(stage);
    cycles.fill += stage_info(stage.op).latency;
  }
  const std::uint64_t vectors = cols / lanes + (cols % lanes != 0 ? 1 : 0);
  const std::uint64_t reading = vectors * passes;
  cycles.fill += std::min(reading, serial);
  cycles.per_row = std::max(reading, serial);
  cycles.reads = reading * rows;
  return cycles;
}

}  // namespace systole::hw

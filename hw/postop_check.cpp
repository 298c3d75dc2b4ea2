#include <cstdint>
#include <limits>
#include <string>

#include "hw/error.h"
#include "hw/gelu.h"
#include "hw/int_exp.h"
#include "hw/integer.h"
#include "hw/layernorm.h"
#include "hw/postop.h"
#include "hw/softmax.h"

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
/// Bound on the polynomial constants; the product of the three terms has a check of its own.
constexpr std::int64_t kMaxGeluConstant = std::int64_t{1} << 40;
constexpr std::int64_t kLargestGeluInput = std::int64_t{1} << 15;

class StageCheck {
 public:
  StageCheck(const Stage& stage, std::size_t index) : stage_(stage), index_(index) {}

  void run() const {
    if (static_cast<std::uint8_t>(stage_.op) >= kStageOps) {
      fail("opcode " + std::to_string(static_cast<int>(stage_.op)) + ", expected 0 to " +
           std::to_string(kStageOps - 1));
    }
    check_flags();
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
    const bool rounds = stage_.op == StageOp::kRequantise || stage_.op == StageOp::kAddTensor;
    if (static_cast<int>(stage_.rounding) > static_cast<int>(Rounding::kFloor)) {
      fail("rounding " + std::to_string(static_cast<int>(stage_.rounding)) + ", expected 0 to 2");
    }
    if (!rounds && stage_.rounding != Rounding::kHalfUp) {
      fail("rounding given, expected half_up: this stage has no other");
    }
    const bool channels = parameter_words(stage_) != 0;
    if (stage_.per_channel && !channels) fail("per_channel given, but it has no such constants");
    if (static_cast<std::uint8_t>(stage_.tensor) >= kDTypes) {
      fail("tensor type " + std::to_string(static_cast<int>(stage_.tensor)) + ", expected 0 to " +
           std::to_string(kDTypes - 1));
    }
  }

  void check_immediates() const {
    switch (stage_.op) {
      case StageOp::kBias:
      case StageOp::kRelu:
      case StageOp::kDivideRowSum:
        return;
      case StageOp::kRequantise:
      case StageOp::kAddTensor:
        dyadic(0, -kMaxMultiplier);
        clamp_range(2);
        return;
      case StageOp::kClamp:
        clamp_range(0);
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
};

}  // namespace

void check_chain(const Chain& chain, std::uint32_t max_stages) {
  if (chain.stages.size() > max_stages) {
    throw InputError(std::to_string(chain.stages.size()) + " stages, expected at most " +
                     std::to_string(max_stages));
  }
  if (static_cast<std::uint8_t>(chain.out) >= kDTypes) {
    throw InputError("output type " + std::to_string(static_cast<int>(chain.out)) +
                     ", expected 0 to " + std::to_string(kDTypes - 1));
  }
  int row_wise = 0;
  int tensors = 0;
  for (std::size_t i = 0; i < chain.stages.size(); ++i) {
    StageCheck(chain.stages[i], i).run();
    if (stage_info(chain.stages[i].op).row_wise) ++row_wise;
    if (chain.stages[i].op == StageOp::kAddTensor) ++tensors;
  }
  if (row_wise > 1) {
    throw InputError(std::to_string(row_wise) + " row-wise stages, expected at most one");
  }
  if (tensors > 1) {
    throw InputError(std::to_string(tensors) + " add_tensor stages, expected at most one");
  }
  if (writes_row_statistics(chain) && reads_row_statistics(chain)) {
    throw InputError("a deferred softmax writes the row sums that divide_row_sum reads");
  }
}

}  // namespace systole::hw

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "hw/function/divide.h"
#include "hw/function/gelu.h"
#include "hw/function/layernorm.h"
#include "hw/number/int_exp.h"
#include "hw/postop/postop.h"

/// Random chains that check_chain() accepts, whose immediates take any legal value.
namespace systole::hw::test {

using Random = std::mt19937_64;

inline std::int64_t pick(Random& random, std::int64_t lo, std::int64_t hi) {
  return std::uniform_int_distribution<std::int64_t>(lo, hi)(random);
}

/// All bit lengths equally likely, either sign, extremes included.
inline std::int32_t any_int32(Random& random) {
  const auto bits = static_cast<std::uint32_t>(random());
  const auto length = static_cast<unsigned>(pick(random, 0, 32));
  if (length == 0) {
    constexpr std::int32_t kSpecial[] = {0, 1, -1, std::numeric_limits<std::int32_t>::max(),
                                         std::numeric_limits<std::int32_t>::min()};
    return kSpecial[bits % 5];
  }
  return static_cast<std::int32_t>(bits) >> (32 - length);
}

/// Fills in the immediates of a stage.
class RandomImmediates {
 public:
  RandomImmediates(Random& random, Stage& stage) : random_(random), imm_(stage.imm) {}

  void dyadic(std::size_t i, bool negative) {
    const int bits = static_cast<int>(pick(random_, 1, 31));
    imm_[i] = pick(random_, 0, (std::int64_t{1} << bits) - 1);
    if (negative && pick(random_, 0, 1) != 0) imm_[i] = -imm_[i];
    imm_[i + 1] = pick(random_, 0, kMaxDyadicShift);
  }
  void clamp(std::size_t i) {
    constexpr std::int64_t kSymmetric[] = {127, 128, 32767, 2147483647};
    imm_[i + 1] = kSymmetric[pick(random_, 0, 3)];
    imm_[i] = -imm_[i + 1];
    if (pick(random_, 0, 3) != 0) return;
    const std::int64_t a = any_int32(random_);
    const std::int64_t b = any_int32(random_);
    imm_[i] = std::min(a, b);
    imm_[i + 1] = std::max(a, b);
  }
  void number(std::size_t i, std::int64_t lo, std::int64_t hi) { imm_[i] = pick(random_, lo, hi); }
  void value(std::size_t i) { imm_[i] = any_int32(random_); }
  void gelu() {
    const double scale = std::ldexp(1.0, -static_cast<int>(pick(random_, 3, 13)));
    const GeluConstants constants = make_gelu_constants(scale, 0.05);
    imm_ = {constants.b, constants.c, constants.one, constants.output.multiplier,
            constants.output.shift};
    clamp(5);
  }

 private:
  Random& random_;
  std::array<std::int64_t, kStageImmediates>& imm_;
};

/// The immediates of every opcode.
inline void set_immediates(Random& random, Stage& stage) {
  RandomImmediates set(random, stage);
  const bool has_value = stage.operand == Operand::kImmediate;
  switch (stage.op) {
    case StageOp::kAdd:
    case StageOp::kSub:
      set.dyadic(0, true);
      set.clamp(2);
      if (pick(random, 0, 2) == 0) stage.imm[0] = 0;
      if (has_value) set.value(4);
      return;
    case StageOp::kRequantise:
      set.dyadic(0, true);
      set.clamp(2);
      return;
    case StageOp::kMul:
      set.number(0, 0, kMaxDyadicShift);
      set.clamp(1);
      if (has_value) set.value(3);
      return;
    case StageOp::kDivide:
      set.number(0, 0, kMaxDivideShift);
      set.clamp(1);
      if (has_value) set.value(3);
      if (has_value && stage.imm[3] == 0) stage.imm[3] = -3;
      return;
    case StageOp::kMask:
      set.value(0);
      return;
    case StageOp::kClamp:
      set.clamp(0);
      return;
    case StageOp::kGelu:
      set.gelu();
      return;
    case StageOp::kExp:
      set.dyadic(0, false);
      set.number(2, kMinExpFractionBits, kMaxExpFractionBits);
      return;
    case StageOp::kSilu:
    case StageOp::kTanh:
      set.dyadic(0, false);
      set.number(2, kMinExpFractionBits, kMaxExpFractionBits);
      set.dyadic(3, true);
      set.clamp(5);
      return;
    case StageOp::kSoftmax:
      set.number(0, 0, 2);
      set.dyadic(1, false);
      set.number(3, kMinExpFractionBits, kMaxExpFractionBits);
      set.dyadic(4, false);
      set.number(6, 1, 16);
      return;
    case StageOp::kLayerNormApply:
      set.number(4, 1, pick(random, 0, 3) == 0 ? 65536 : 500);
      [[fallthrough]];
    case StageOp::kLayerNorm:
    case StageOp::kRmsNormApply:
      set.number(0, 1, 30);
      set.number(1, 0, 62);
      set.clamp(2);
      return;
    case StageOp::kRope:
      set.number(0, 0, kMaxDyadicShift);
      set.clamp(1);
      return;
    case StageOp::kQuantiseRow:
      set.number(0, 1, 32767);
      return;
    case StageOp::kRelu:
    case StageOp::kDivideRowSum:
    case StageOp::kTranspose:
      return;
  }
}

/// With any operand that the stage takes, and one in four with a side output if `side`.
inline Stage random_stage(Random& random, StageOp op, bool side = false) {
  Stage stage;
  stage.op = op;
  const StageInfo& info = stage_info(op);
  do {
    stage.operand = static_cast<Operand>(pick(random, 0, kOperandKinds - 1));
  } while (!info.takes(stage.operand));
  if (stage.operand == Operand::kTensor) {
    stage.tensor = static_cast<DType>(pick(random, 0, kDTypes - 1));
  }
  if (info.rounds) stage.rounding = static_cast<Rounding>(pick(random, 0, 2));
  set_immediates(random, stage);
  const bool free = statistics_read(stage) == 0 && statistics_written(stage) == 0;
  if (side && free && pick(random, 0, 3) == 0) {
    stage.side = static_cast<Reduction>(pick(random, 1, kReductions - 1));
  }
  return stage;
}

/// Whether the chain may go on with the stage.
inline bool fits_after(const Chain& chain, const Stage& stage) {
  if (transposes(chain)) return false;
  if (stage_info(stage.op).row_wise && is_row_wise(chain)) return false;
  if (stage.operand == Operand::kTensor && tensor_operands(chain) == kMaxTensorOperands) {
    return false;
  }
  const std::uint32_t reads = statistics_read(stage);
  const std::uint32_t writes = statistics_written(stage);
  if (writes != 0) return reads == 0 && statistics_words(chain) == 0;
  if (reads == 0) return true;
  if (writes_row_statistics(chain)) return false;
  return statistics_words(chain) == 0 || statistics_words(chain) == reads;
}

/// A chain that check_chain() accepts for a machine without its own limits.
inline Chain random_chain(Random& random, std::size_t max_stages) {
  Chain chain;
  chain.out = static_cast<DType>(pick(random, 0, kDTypes - 1));
  const auto stages = static_cast<std::size_t>(pick(random, 0, static_cast<int>(max_stages)));
  while (chain.stages.size() < stages && !transposes(chain)) {
    const auto op = static_cast<StageOp>(pick(random, 0, kStageOps - 1));
    if (op == StageOp::kTranspose && chain.stages.size() + 1 != stages) continue;
    const Stage stage = random_stage(random, op, true);
    if (fits_after(chain, stage)) chain.stages.push_back(stage);
  }
  return chain;
}

}  // namespace systole::hw::test

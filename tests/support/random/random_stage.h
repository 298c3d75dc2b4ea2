#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "hw/function/gelu.h"
#include "hw/function/silu.h"
#include "hw/function/softmax.h"
#include "hw/number/integer.h"
#include "hw/postop/postop.h"
#include "model/graph/stages.h"
#include "support/random/random_machine.h"

/// Stages with random immediates, whose results make use of their range.
namespace systole::test {

/// Of any stage that may give any result.
inline constexpr hw::IntRange kAnyResult{std::numeric_limits<std::int32_t>::min(),
                                         std::numeric_limits<std::int32_t>::max()};

inline hw::Rounding random_rounding(Random& random) {
  return one_of<hw::Rounding>(
      random, {hw::Rounding::kHalfUp, hw::Rounding::kHalfEven, hw::Rounding::kFloor});
}

/// Where the immediates lo and hi of a stage are; -1 if it has none.
inline int first_of_range(const hw::Stage& stage) {
  const auto& names = hw::stage_info(stage.op).imm;
  const auto lo = std::find(names.begin(), names.end(), "lo");
  return lo == names.end() ? -1 : static_cast<int>(lo - names.begin());
}

/// What the stage gives of values in `in`: at least that.
inline hw::IntRange results_of(const hw::Stage& stage, hw::IntRange in) {
  switch (stage.op) {
    case hw::StageOp::kAdd:
    case hw::StageOp::kSub:
    case hw::StageOp::kDivideRowSum:
      return kAnyResult;
    case hw::StageOp::kRelu:
      return {std::max<std::int64_t>(in.lo, 0), std::max<std::int64_t>(in.hi, 0)};
    case hw::StageOp::kMask:
      return {std::min(in.lo, stage.imm[0]), std::max(in.hi, stage.imm[0])};
    case hw::StageOp::kTranspose:
      return in;
    case hw::StageOp::kSoftmax:
      return hw::unsigned_range(static_cast<unsigned>(stage.imm[6]));
    case hw::StageOp::kExp:
      return {0, hw::make_int_exp_constants(static_cast<unsigned>(stage.imm[2])).value_at_zero()};
    case hw::StageOp::kQuantiseRow:
      return {-stage.imm[0], stage.imm[0]};
    default: {
      const auto lo = static_cast<std::size_t>(first_of_range(stage));
      return {stage.imm[lo], stage.imm[lo + 1]};
    }
  }
}

/// Immediates for any operand, statistics included.
inline hw::Stage random_stage(Random& random, hw::StageOp op, hw::Operand operand) {
  hw::Stage stage = hw::default_stage(op);
  const auto shift = [&](std::uint32_t low, std::uint32_t high) -> std::int64_t {
    return between(random, low, high);
  };
  const auto factor = [&]() -> std::int64_t { return shift(1, 1U << 16) - (1 << 14); };
  const hw::IntRange range = hw::symmetric_range(between(random, 5, 24));
  const auto value = [&]() -> std::int64_t {
    return operand == hw::Operand::kImmediate ? factor() : 0;
  };
  switch (op) {
    case hw::StageOp::kAdd:
    case hw::StageOp::kSub:
      stage.imm = {0, 0, 0, 0, value()};
      if (random() % 2 != 0) stage.imm = {factor(), shift(8, 16), range.lo, range.hi, value()};
      break;
    case hw::StageOp::kMul:
      stage.imm = {shift(0, 16), range.lo, range.hi, value()};
      break;
    case hw::StageOp::kDivide:
      stage.imm = {shift(0, 12), range.lo, range.hi, value()};
      if (operand == hw::Operand::kImmediate && stage.imm[3] == 0) stage.imm[3] = 5;
      break;
    case hw::StageOp::kRequantise:
      stage.imm = {factor(), shift(8, 20), range.lo, range.hi};
      break;
    case hw::StageOp::kClamp:
      stage.imm = {range.lo, range.hi};
      break;
    case hw::StageOp::kMask:
      stage.imm = {factor()};
      break;
    case hw::StageOp::kGelu:
      return model::gelu_stage(hw::make_gelu_constants(0.04, 0.03), 8);
    case hw::StageOp::kSilu:
    case hw::StageOp::kTanh:
      stage.imm = {factor() + (1 << 14), shift(12, 20), shift(1, 10), factor(),
                   shift(16, 30),        range.lo,      range.hi};
      break;
    case hw::StageOp::kExp:
      stage.imm = {factor() + (1 << 14), shift(8, 20), shift(1, 10)};
      break;
    case hw::StageOp::kSoftmax: {
      const hw::SoftmaxConstants constants = hw::make_softmax_constants(0.002);
      hw::Machine::Datapath datapath;
      datapath.softmax = one_of<hw::SoftmaxMode>(
          random, {hw::SoftmaxMode::kDeferred, hw::SoftmaxMode::kNormalisedFloor,
                   hw::SoftmaxMode::kNormalisedRound});
      return model::softmax_stage(datapath, constants.score, hw::kDefaultExpFractionBits,
                                  constants.exp_to_code);
    }
    case hw::StageOp::kLayerNorm:
    case hw::StageOp::kLayerNormApply:
    case hw::StageOp::kRmsNormApply:
      stage.imm = {shift(4, 12), shift(8, 16), range.lo, range.hi};
      break;
    case hw::StageOp::kRope:
      stage.imm = {shift(10, 16), range.lo, range.hi};
      break;
    case hw::StageOp::kQuantiseRow:
      stage.imm = {hw::symmetric_range(between(random, 5, 16)).hi};
      break;
    case hw::StageOp::kRelu:
    case hw::StageOp::kDivideRowSum:
    case hw::StageOp::kTranspose:
      break;
  }
  stage.operand = operand;
  if (hw::stage_info(op).rounds) stage.rounding = random_rounding(random);
  return stage;
}

/// The parameter block of a stage for `cols` columns.
inline std::vector<std::int32_t> random_parameters(Random& random, const hw::Stage& stage,
                                                   std::uint32_t cols) {
  std::vector<std::int32_t> parameters(std::size_t{hw::parameter_words(stage)} * cols);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool shift = stage.op == hw::StageOp::kRequantise && i >= cols;
    const bool selects = stage.op == hw::StageOp::kMask;
    parameters[i] = shift     ? static_cast<std::int32_t>(between(random, 8, 24))
                    : selects ? static_cast<std::int32_t>(random() % 2)
                              : static_cast<std::int32_t>(between(random, 0, 60000)) - 30000;
  }
  return parameters;
}

}  // namespace systole::test

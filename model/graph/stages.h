#pragma once

#include <cstdint>

#include "hw/function/gelu.h"
#include "hw/function/rope.h"
#include "hw/function/silu.h"
#include "hw/function/tanh.h"
#include "hw/machine/machine.h"
#include "hw/number/integer.h"
#include "hw/postop/postop.h"

/// Post-op stages with their immediates in the order of hw/postop/postop.h. Every clamp is
/// symmetric.
namespace systole::model {

/// Symmetric width of a product before it is added to the residual stream.
inline constexpr unsigned kBranchBits = 31;
/// Of what products take.
inline constexpr unsigned kOperandBits = 8;
/// Symmetric width of the logits.
inline constexpr unsigned kLogitBits = 32;

[[nodiscard]] inline hw::Stage bias_stage() {
  hw::Stage stage;
  stage.op = hw::StageOp::kAdd;
  stage.operand = hw::Operand::kChannel;
  return stage;
}

[[nodiscard]] inline hw::Stage requantise_stage(hw::Dyadic factor, unsigned bits,
                                                hw::Rounding rounding) {
  const hw::IntRange range = hw::symmetric_range(bits);
  hw::Stage stage;
  stage.op = hw::StageOp::kRequantise;
  stage.rounding = rounding;
  stage.imm = {factor.multiplier, factor.shift, range.lo, range.hi};
  return stage;
}

/// Multipliers and shifts come from the parameter block.
[[nodiscard]] inline hw::Stage channel_requantise_stage(unsigned bits, hw::Rounding rounding) {
  hw::Stage stage = requantise_stage({}, bits, rounding);
  stage.operand = hw::Operand::kChannel;
  return stage;
}

/// A factor of 0 adds the tensor as it is; otherwise it is scaled and clamped to `bits` first.
[[nodiscard]] inline hw::Stage add_tensor_stage(hw::DType tensor, hw::Dyadic factor, unsigned bits,
                                                hw::Rounding rounding) {
  hw::Stage stage = requantise_stage(factor, bits, rounding);
  stage.op = hw::StageOp::kAdd;
  stage.operand = hw::Operand::kTensor;
  stage.tensor = tensor;
  return stage;
}

[[nodiscard]] inline hw::Stage clamp_stage(unsigned bits) {
  const hw::IntRange range = hw::symmetric_range(bits);
  hw::Stage stage;
  stage.op = hw::StageOp::kClamp;
  stage.imm = {range.lo, range.hi};
  return stage;
}

/// Always rounds half up: i-GELU has no other form (hw/function/gelu.h).
[[nodiscard]] inline hw::Stage gelu_stage(const hw::GeluConstants& gelu, unsigned bits) {
  const hw::IntRange range = hw::symmetric_range(bits);
  hw::Stage stage;
  stage.op = hw::StageOp::kGelu;
  stage.imm = {gelu.b,   gelu.c,  gelu.one, gelu.output.multiplier, gelu.output.shift,
               range.lo, range.hi};
  return stage;
}

[[nodiscard]] inline hw::Stage softmax_stage(const hw::Machine::Datapath& datapath,
                                             hw::Dyadic score, unsigned fraction_bits,
                                             hw::Dyadic exp_to_code) {
  hw::Stage stage;
  stage.op = hw::StageOp::kSoftmax;
  stage.imm = {static_cast<std::int64_t>(datapath.softmax),
               score.multiplier,
               score.shift,
               fraction_bits,
               exp_to_code.multiplier,
               exp_to_code.shift,
               datapath.softmax_bits};
  return stage;
}

[[nodiscard]] inline hw::Stage divide_row_sum_stage() {
  return hw::default_stage(hw::StageOp::kDivideRowSum);
}

[[nodiscard]] inline hw::Stage layer_norm_stage(unsigned fraction_bits, std::uint32_t shift,
                                                unsigned bits) {
  const hw::IntRange range = hw::symmetric_range(bits);
  hw::Stage stage = hw::default_stage(hw::StageOp::kLayerNorm);
  stage.imm = {fraction_bits, shift, range.lo, range.hi};
  return stage;
}

/// From the sum of squares of its row.
[[nodiscard]] inline hw::Stage rms_norm_stage(unsigned fraction_bits, std::uint32_t shift,
                                              unsigned bits) {
  hw::Stage stage = layer_norm_stage(fraction_bits, shift, bits);
  stage.op = hw::StageOp::kRmsNormApply;
  return stage;
}

/// s8 codes of a row with its own scale, from its peak.
[[nodiscard]] inline hw::Stage quantise_row_stage() {
  hw::Stage stage = hw::default_stage(hw::StageOp::kQuantiseRow);
  stage.imm = {hw::symmetric_range(kOperandBits).hi};
  return stage;
}

/// What was made of the codes of a row, times the peak of the row, divided by 2^shift.
[[nodiscard]] inline hw::Stage scale_row_stage(unsigned shift, hw::Rounding rounding) {
  const hw::IntRange range = hw::symmetric_range(32);
  hw::Stage stage;
  stage.op = hw::StageOp::kMul;
  stage.operand = hw::Operand::kRow;
  stage.rounding = rounding;
  stage.imm = {shift, range.lo, range.hi};
  return stage;
}

/// Always rounds half up, as hw/function/silu.h does.
[[nodiscard]] inline hw::Stage silu_stage(const hw::SiluConstants& silu, unsigned bits) {
  const hw::IntRange range = hw::symmetric_range(bits);
  hw::Stage stage;
  stage.op = hw::StageOp::kSilu;
  stage.imm = {silu.argument.multiplier,
               silu.argument.shift,
               silu.exp.fraction_bits,
               silu.output.multiplier,
               silu.output.shift,
               range.lo,
               range.hi};
  return stage;
}

/// Always rounds half up, as hw/function/tanh.h does.
[[nodiscard]] inline hw::Stage tanh_stage(const hw::TanhConstants& tanh, unsigned bits) {
  const hw::IntRange range = hw::symmetric_range(bits);
  hw::Stage stage;
  stage.op = hw::StageOp::kTanh;
  stage.imm = {tanh.argument.multiplier,
               tanh.argument.shift,
               tanh.exp.fraction_bits,
               tanh.output.multiplier,
               tanh.output.shift,
               range.lo,
               range.hi};
  return stage;
}

/// The operand is a table of make_rope_table(); results are divided by 2^shift besides its steps.
[[nodiscard]] inline hw::Stage rope_stage(unsigned shift, unsigned bits, hw::Rounding rounding) {
  const hw::IntRange range = hw::symmetric_range(bits);
  hw::Stage stage = hw::default_stage(hw::StageOp::kRope);
  stage.rounding = rounding;
  stage.imm = {hw::kRopeFractionBits + shift, range.lo, range.hi};
  return stage;
}

/// The product with a tensor of `type`, divided by 2^shift.
[[nodiscard]] inline hw::Stage multiply_tensor_stage(hw::DType type, unsigned shift, unsigned bits,
                                                     hw::Rounding rounding) {
  const hw::IntRange range = hw::symmetric_range(bits);
  hw::Stage stage;
  stage.op = hw::StageOp::kMul;
  stage.operand = hw::Operand::kTensor;
  stage.tensor = type;
  stage.rounding = rounding;
  stage.imm = {shift, range.lo, range.hi};
  return stage;
}

/// The quotient by a tensor of `type`, times 2^shift.
[[nodiscard]] inline hw::Stage divide_tensor_stage(hw::DType type, unsigned shift, unsigned bits,
                                                   hw::Rounding rounding) {
  hw::Stage stage = multiply_tensor_stage(type, shift, bits, rounding);
  stage.op = hw::StageOp::kDivide;
  return stage;
}

}  // namespace systole::model

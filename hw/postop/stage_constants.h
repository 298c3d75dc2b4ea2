#pragma once

#include <cstddef>
#include <cstdint>

#include "hw/function/gelu.h"
#include "hw/function/silu.h"
#include "hw/function/softmax.h"
#include "hw/function/tanh.h"
#include "hw/kernel/row_kernels.h"
#include "hw/number/dyadic.h"
#include "hw/number/int_exp.h"
#include "hw/postop/postop.h"

/// The immediates of a stage as the constants of its function, in the order of stage_info(). The
/// stage must have passed check_chain().
namespace systole::hw {

inline std::int32_t imm32(const Stage& stage, std::size_t i) {
  return static_cast<std::int32_t>(stage.imm[i]);
}

/// lo and hi, the immediates i and i + 1.
inline row::Clamp limits_at(const Stage& stage, std::size_t i) {
  return {imm32(stage, i), imm32(stage, i + 1)};
}

/// multiplier and shift, the immediates i and i + 1.
inline Dyadic dyadic_at(const Stage& stage, std::size_t i) {
  return {imm32(stage, i), static_cast<std::int8_t>(stage.imm[i + 1])};
}

inline GeluConstants gelu_constants(const Stage& stage) {
  return {stage.imm[0], stage.imm[1], stage.imm[2], dyadic_at(stage, 3)};
}

inline SoftmaxConstants softmax_constants(const Stage& stage) {
  return {static_cast<SoftmaxMode>(stage.imm[0]),
          dyadic_at(stage, 1),
          make_int_exp_constants(static_cast<unsigned>(stage.imm[3])),
          dyadic_at(stage, 4),
          static_cast<unsigned>(stage.imm[6]),
          32};
}

inline SiluConstants silu_constants(const Stage& stage) {
  return {dyadic_at(stage, 0), make_int_exp_constants(static_cast<unsigned>(stage.imm[2])),
          dyadic_at(stage, 3)};
}

inline TanhConstants tanh_constants(const Stage& stage) {
  return {dyadic_at(stage, 0), make_int_exp_constants(static_cast<unsigned>(stage.imm[2])),
          dyadic_at(stage, 3)};
}

/// As a softmax about a maximum of zero, of which only the exponentials are wanted.
inline SoftmaxConstants exp_constants(const Stage& stage) {
  SoftmaxConstants constants{};
  constants.score = dyadic_at(stage, 0);
  constants.exp = make_int_exp_constants(static_cast<unsigned>(stage.imm[2]));
  return constants;
}

/// `parameters`: the stage's words of the parameter block, two rows of `cols`.
inline row::LayerNormFactors layer_norm_factors(const Stage& stage, const std::int32_t* parameters,
                                                std::size_t cols) {
  return {parameters, parameters + cols, static_cast<unsigned>(stage.imm[1]),
          static_cast<unsigned>(stage.imm[0])};
}

/// Multiplier and shift of a channel as their registers hold them: any word is legal.
inline Dyadic channel_factor(std::int32_t multiplier, std::int32_t shift) {
  constexpr std::int32_t kLowest = -2147483647;
  return {multiplier < kLowest ? kLowest : multiplier,
          static_cast<std::int8_t>(shift & kMaxDyadicShift)};
}

}  // namespace systole::hw

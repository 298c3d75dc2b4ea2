#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "hw/number/dyadic.h"
#include "hw/number/int_exp.h"
#include "hw/number/integer.h"
#include "hw/number/serial_unit.h"
#include "hw/number/unit_depths.h"

/// Integer SiLU, x / (1 + exp(-x)): the exponential of -|x| (hw/number/int_exp.h), one division for
/// the sigmoid, and a requantisation that is part of it.
namespace systole::hw {

/// Fraction bits of the sigmoid; 1 itself is a code, so it has one bit more.
inline constexpr unsigned kSigmoidBits = 15;

/// Constants of one SiLU. No multiplier of `argument` is negative.
struct SiluConstants {
  Dyadic argument;      ///< S_in 2^F: from the input to the exponential's argument
  IntExpConstants exp;  ///< F is its number of fraction bits
  Dyadic output;        ///< S_in 2^-kSigmoidBits / S_out
};

/// With more the exponential's s16 argument would end above -16, where x exp(x) still counts.
inline constexpr unsigned kMaxSiluFractionBits = 11;

/// Derives the constants for input scale S_in and output scale S_out, both finite and positive.
/// Throws InputError if a scale is not, or if a factor reaches 2^multiplier_bits, and
/// std::invalid_argument outside 1 to kMaxSiluFractionBits.
inline SiluConstants make_silu_constants(double input_scale, double output_scale,
                                         unsigned multiplier_bits = kDefaultMultiplierBits,
                                         unsigned fraction_bits = kDefaultExpFractionBits) {
  for (const double scale : {input_scale, output_scale}) {
    if (!std::isfinite(scale) || scale < 1e-9) {
      throw InputError("SiLU scale: " + std::to_string(scale) + ", expected a number above 1e-9");
    }
  }
  if (fraction_bits > kMaxSiluFractionBits) {
    throw std::invalid_argument("SiLU: expected 1 to 11 fraction bits");
  }
  return {make_dyadic(std::ldexp(input_scale, static_cast<int>(fraction_bits)), multiplier_bits),
          make_int_exp_constants(fraction_bits),
          make_dyadic(std::ldexp(input_scale, -static_cast<int>(kSigmoidBits)) / output_scale,
                      multiplier_bits)};
}

/// 1 / (1 + exp(-q S_in)) of an s16 input, floored to kSigmoidBits fraction bits: 0 to 2^15. The
/// argument of the exponential is rounded half up as a magnitude, so that both signs of q see the
/// same exponential.
constexpr std::int32_t silu_sigmoid(std::int32_t q, const SiluConstants& constants) {
  const std::int64_t magnitude = q < 0 ? -q : q;
  const std::uint32_t e =
      int_exp(-scale(magnitude, constants.argument, Rounding::kHalfUp), constants.exp);
  const std::uint32_t one = constants.exp.value_at_zero();
  const std::uint64_t dividend = std::uint64_t{q < 0 ? e : one} << kSigmoidBits;
  return static_cast<std::int32_t>(dividend / (std::uint64_t{one} + e));
}

/// SiLU of an input that is saturated to s16, requantised (round half up) and clamped to `limits`,
/// which lie within s32. Besides half a step of the output it errs by at most 2.0e-3 against the
/// real function with 8 fraction bits, by 1.35e-3 with 10, over every input of 8 to 16 bits that
/// spans up to +-32; the polynomial of the exponential alone makes 0.9e-3.
constexpr std::int32_t silu(std::int32_t q, const SiluConstants& constants, IntRange limits) {
  const auto x = static_cast<std::int32_t>(saturate(q, full_range(16)));
  const std::int64_t product = std::int64_t{x} * silu_sigmoid(x, constants);
  return static_cast<std::int32_t>(
      requantise(product, constants.output, Rounding::kHalfUp, limits));
}

/// Pipelined divider of the sigmoid: a serial divider retires two bits of its quotient per cycle,
/// and unrolled each of its cycles becomes a stage, which gives a quotient in every cycle.
inline constexpr std::uint32_t kSigmoidDividerLatency = serial_cycles(kSigmoidBits + 1);

/// Pipeline depth of the stage: saturation; argument; exponential; sum with one; division; product
/// with the input; output.
inline constexpr std::uint32_t kSiluLatency =
    unit_depth::kClamp + unit_depth::kRequantise + kIntExpLatency + unit_depth::kAdd +
    kSigmoidDividerLatency + unit_depth::kMultiply + unit_depth::kRequantise;

}  // namespace systole::hw

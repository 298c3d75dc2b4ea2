#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "hw/function/silu.h"
#include "hw/number/dyadic.h"
#include "hw/number/int_exp.h"
#include "hw/number/integer.h"
#include "hw/number/unit_depths.h"

/// Integer tanh, (1 - e) / (1 + e) with the sign of x: the exponential e of -2|x|
/// (hw/number/int_exp.h), the divider of SiLU's sigmoid, and a requantisation that is part of it.
namespace systole::hw {

/// Fraction bits of the quotient.
inline constexpr unsigned kTanhBits = kSigmoidBits;

/// Constants of one tanh. No multiplier of `argument` is negative.
struct TanhConstants {
  Dyadic argument;      ///< 2 S_in 2^F: from the input to the exponential's argument
  IntExpConstants exp;  ///< F is its number of fraction bits
  Dyadic output;        ///< 2^-kTanhBits / S_out
};

/// Derives the constants for input scale S_in and output scale S_out, both finite and positive.
/// Throws InputError if a scale is not, or if a factor reaches 2^multiplier_bits, and
/// std::invalid_argument outside 1 to kMaxSiluFractionBits.
inline TanhConstants make_tanh_constants(double input_scale, double output_scale,
                                         unsigned multiplier_bits = kDefaultMultiplierBits,
                                         unsigned fraction_bits = kDefaultExpFractionBits) {
  for (const double scale : {input_scale, output_scale}) {
    if (!std::isfinite(scale) || scale < 1e-9) {
      throw InputError("tanh scale: " + std::to_string(scale) + ", expected a number above 1e-9");
    }
  }
  if (fraction_bits > kMaxSiluFractionBits) {
    throw std::invalid_argument("tanh: expected 1 to 11 fraction bits");
  }
  return {
      make_dyadic(std::ldexp(input_scale, static_cast<int>(fraction_bits) + 1), multiplier_bits),
      make_int_exp_constants(fraction_bits),
      make_dyadic(std::ldexp(1.0, -static_cast<int>(kTanhBits)) / output_scale, multiplier_bits)};
}

/// tanh(q S_in) of an s16 input with kTanhBits fraction bits, its magnitude floored: -2^15 to 2^15.
/// The argument of the exponential is rounded half up as a magnitude, so that the function is odd.
constexpr std::int32_t tanh_quotient(std::int32_t q, const TanhConstants& constants) {
  const std::int64_t magnitude = q < 0 ? -std::int64_t{q} : std::int64_t{q};
  const std::uint32_t e =
      int_exp(-scale(magnitude, constants.argument, Rounding::kHalfUp), constants.exp);
  const std::uint32_t one = constants.exp.value_at_zero();
  const std::uint64_t dividend = std::uint64_t{one - e} << kTanhBits;
  const auto quotient = static_cast<std::int32_t>(dividend / (std::uint64_t{one} + e));
  return q < 0 ? -quotient : quotient;
}

/// tanh of an input that is saturated to s16, requantised (round half up) and clamped to `limits`,
/// which lie within s32. Besides half a step of the output it errs by at most 2.5e-3 against the
/// real function with 8 fraction bits, by 1.8e-3 with 10, over every input of 8 to 16 bits that
/// spans up to +-16.
constexpr std::int32_t tanh(std::int32_t q, const TanhConstants& constants, IntRange limits) {
  const auto x = static_cast<std::int32_t>(saturate(q, full_range(16)));
  return static_cast<std::int32_t>(
      requantise(tanh_quotient(x, constants), constants.output, Rounding::kHalfUp, limits));
}

/// Pipeline depth of the stage: saturation; argument; exponential; difference and sum with one;
/// division; output.
inline constexpr std::uint32_t kTanhLatency = unit_depth::kClamp + unit_depth::kRequantise +
                                              kIntExpLatency + unit_depth::kAdd +
                                              kSigmoidDividerLatency + unit_depth::kRequantise;

}  // namespace systole::hw

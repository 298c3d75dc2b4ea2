#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "hw/number/integer.h"

/// Requantisation: an integer times a real factor held as multiplier / 2^shift.
///
/// Default datapath: 16-bit multiplier, 6-bit shift, 48-bit product of an s32 accumulator, rounding
/// half up, clamp to a symmetric range. I-BERT mode: 31-bit multiplier, 63-bit product, rounding
/// half to even; the residual branch is scaled and rounded on its own and added before the clamp.
namespace systole::hw {

/// How a right shift treats the bits it drops.
enum class Rounding {
  kHalfUp,    ///< nearest, ties toward plus infinity: add half, then floor
  kHalfEven,  ///< nearest, ties to the even neighbour
  kFloor      ///< toward minus infinity
};

/// The real factor multiplier / 2^shift. The shift is never negative: a factor of 2^multiplier_bits
/// or more means scales that do not belong together, and make_dyadic() refuses it.
struct Dyadic {
  std::int32_t multiplier;
  std::int8_t shift;
};

constexpr bool operator==(Dyadic a, Dyadic b) {
  return a.multiplier == b.multiplier && a.shift == b.shift;
}
constexpr bool operator!=(Dyadic a, Dyadic b) { return !(a == b); }

inline constexpr unsigned kDefaultMultiplierBits = 16;
inline constexpr unsigned kIBertMultiplierBits = 31;
/// Longest shift of the default datapath's 6-bit shift field. Any longer one gives the same result,
/// because a product has at most 63 bits.
inline constexpr int kMaxDyadicShift = 63;
/// Longest shift the type holds: the I-BERT softmax folds a shift left by 30 into its own.
inline constexpr int kMaxIBertShift = 127;

/// x / 2^shift, rounded; exact for every x and every shift, also beyond the width of x.
constexpr std::int64_t shift_right(std::int64_t x, unsigned shift, Rounding rounding) {
  if (shift == 0) return x;
  // Every x is within half a step of 2^64, -2^63 just at it, so only a floor keeps the sign.
  if (shift > 63) return rounding == Rounding::kFloor && x < 0 ? -1 : 0;
  const std::int64_t floor = x >> shift;
  // Taking the bit of weight one half avoids x + half, which could overflow.
  const std::int64_t half_bit = (x >> (shift - 1)) & 1;
  switch (rounding) {
    case Rounding::kFloor:
      return floor;
    case Rounding::kHalfUp:
      return floor + half_bit;
    case Rounding::kHalfEven:
      break;
  }
  const std::uint64_t below_half =
      static_cast<std::uint64_t>(x) & ((std::uint64_t{1} << (shift - 1)) - 1);
  return floor + (half_bit & ((floor & 1) | (below_half != 0 ? 1 : 0)));
}

/// acc * factor without a clamp. |acc * multiplier| must stay below 2^63: given for an s32 acc and
/// any multiplier, and for an acc of up to 47 bits and a 16-bit multiplier.
constexpr std::int64_t scale(std::int64_t acc, Dyadic factor, Rounding rounding) {
  return shift_right(acc * factor.multiplier, static_cast<unsigned>(factor.shift), rounding);
}

/// acc * factor, rounded and clamped to [lo, hi]; same condition on acc as scale().
constexpr std::int64_t requantise(std::int64_t acc, Dyadic factor, Rounding rounding,
                                  std::int64_t lo, std::int64_t hi) {
  return std::clamp(scale(acc, factor, rounding), lo, hi);
}

constexpr std::int64_t requantise(std::int64_t acc, Dyadic factor, Rounding rounding,
                                  IntRange range) {
  return requantise(acc, factor, rounding, range.lo, range.hi);
}

namespace detail {

/// Splits |factor| by frexp, scales the mantissa to multiplier_bits and rounds it with `round`.
template <typename RoundMantissa>
Dyadic split_factor(double factor, unsigned multiplier_bits, int max_shift, RoundMantissa round) {
  if (!std::isfinite(factor)) {
    throw InputError("requantisation factor: not finite, expected a real number");
  }
  if (multiplier_bits < 2 || multiplier_bits > 31) {
    throw InputError("requantisation multiplier: " + std::to_string(multiplier_bits) +
                     " bits, expected 2 to 31");
  }
  const int bits = static_cast<int>(multiplier_bits);
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(factor), &exponent);
  auto multiplier = static_cast<std::int64_t>(round(std::ldexp(mantissa, bits)));
  int shift = bits - exponent;
  if (multiplier == std::int64_t{1} << bits) {
    multiplier >>= 1;
    --shift;
  }
  if (shift < 0) {
    throw InputError("requantisation factor: " + std::to_string(factor) +
                     " is too large, expected less than 2^" + std::to_string(bits));
  }
  return {static_cast<std::int32_t>(factor < 0 ? -multiplier : multiplier),
          static_cast<std::int8_t>(std::min(shift, max_shift))};
}

}  // namespace detail

/// Nearest multiplier / 2^shift with 2^(bits-1) <= |multiplier| < 2^bits, the mantissa rounded half
/// to even (the value of the default datapath's compile-time constants). Throws InputError if the
/// factor is not finite or its magnitude reaches 2^bits. A zero factor gives multiplier 0.
inline Dyadic make_dyadic(double factor, unsigned multiplier_bits) {
  return detail::split_factor(factor, multiplier_bits, kMaxDyadicShift,
                              [](double x) { return std::nearbyint(x); });
}

/// The released I-BERT code's form: 31-bit mantissa, rounded half away from zero. Same errors.
inline Dyadic make_ibert_dyadic(double factor) {
  return detail::split_factor(factor, kIBertMultiplierBits, kMaxIBertShift,
                              [](double x) { return std::round(x); });
}

/// Widths I-BERT clamps a requantised activation to; a 22-bit or 32-bit result is left as it is.
constexpr bool ibert_clamps(unsigned bits) { return bits == 4 || bits == 8 || bits == 16; }

/// I-BERT's activation requantisation before an optional residual: round_half_even(acc * factor),
/// plus the residual scaled in the same way (pass 0 where there is none), clamped to `bits`.
constexpr std::int64_t ibert_requantise(std::int32_t acc, Dyadic factor, std::int64_t residual,
                                        unsigned bits) {
  const std::int64_t sum = scale(acc, factor, Rounding::kHalfEven) + residual;
  return ibert_clamps(bits) ? saturate(sum, full_range(bits)) : sum;
}

}  // namespace systole::hw

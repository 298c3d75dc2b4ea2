#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

/// IEEE 754 binary16, as the units of a half precision datapath compute with it: every operation
/// rounds once, to the nearest and ties to even; subnormals count in full; an overflow is infinite.
/// Every NaN that an operation makes or passes on is kHalfNan. The host has to round to nearest, as
/// C++ programs do from their start.
namespace systole::hw {

struct Half {
  std::uint16_t bits;  ///< sign, 5 bits of exponent (bias 15), 10 of fraction
};

inline constexpr std::uint64_t kHalfBytes = sizeof(Half);

constexpr bool operator==(Half a, Half b) { return a.bits == b.bits; }  ///< same bits
constexpr bool operator!=(Half a, Half b) { return !(a == b); }

inline constexpr Half kHalfZero{0x0000};
inline constexpr Half kHalfOne{0x3c00};
inline constexpr Half kHalfInfinity{0x7c00};
inline constexpr Half kHalfNan{0x7e00};
inline constexpr Half kHalfLowest{0xfbff};  ///< -65504, the finite value nearest to -infinity

inline constexpr std::uint16_t kHalfSign = 0x8000;
inline constexpr std::uint16_t kHalfMagnitude = 0x7fff;

constexpr bool is_nan(Half x) { return (x.bits & kHalfMagnitude) > kHalfInfinity.bits; }

/// -x; the NaN for a NaN.
constexpr Half half_negate(Half x) {
  return is_nan(x) ? kHalfNan : Half{static_cast<std::uint16_t>(x.bits ^ kHalfSign)};
}

/// Exact; a NaN keeps its payload.
inline float to_float(Half x) {
  constexpr std::uint32_t kRebias = (127 - 15) << 23;
  const std::uint32_t magnitude = x.bits & kHalfMagnitude;
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & kHalfSign) << 16;
  if (magnitude < 0x400) {  // a subnormal counts units of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  std::uint32_t word = sign | ((magnitude << 13) + kRebias);
  if (magnitude >= kHalfInfinity.bits) word |= 0x7f800000;
  float value = 0;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

namespace detail {

/// `kFraction` and `kBias`: fraction bits and exponent bias of Float, whose bits Word holds.
template <typename Word, int kFraction, int kBias, typename Float>
Half round_to_half(Float x) {
  static_assert(sizeof(Word) == sizeof(Float));
  constexpr int kDropped = kFraction - 10;
  constexpr Word kFirstNormal = Word{kBias - 14} << kFraction;    // 2^-14
  constexpr Word kFirstOverflow = Word{kBias + 16} << kFraction;  // 2^16
  constexpr Word kExponents = Word{2 * kBias + 1} << kFraction;   // infinity
  constexpr Word kUnits = Word{kBias + kFraction - 24} << kFraction;
  Word word = 0;
  std::memcpy(&word, &x, sizeof word);
  const auto sign = static_cast<std::uint16_t>(word >> (8 * sizeof(Word) - 16) & kHalfSign);
  word &= ~(Word{1} << (8 * sizeof(Word) - 1));
  Word rounded = 0;
  if (word > kExponents) return kHalfNan;
  if (word >= kFirstOverflow) {
    rounded = kHalfInfinity.bits;
  } else if (word < kFirstNormal) {
    // The last bit of 2^(fraction - 24) weighs 2^-24, as a subnormal's: the host's sum rounds.
    Float units = 0;
    std::memcpy(&units, &kUnits, sizeof units);
    const Float sum = (x < 0 ? -x : x) + units;
    std::memcpy(&rounded, &sum, sizeof rounded);
    rounded -= kUnits;
  } else {
    // The carry of a rounded fraction goes into the exponent, up to that of infinity.
    constexpr Word kBelowHalf = (Word{1} << (kDropped - 1)) - 1;
    word -= Word{kBias - 15} << kFraction;
    rounded = (word + kBelowHalf + (word >> kDropped & 1)) >> kDropped;
  }
  return {static_cast<std::uint16_t>(sign | rounded)};
}

}  // namespace detail

/// Rounded once.
inline Half to_half(float x) { return detail::round_to_half<std::uint32_t, 23, 127>(x); }
inline Half to_half(double x) { return detail::round_to_half<std::uint64_t, 52, 1023>(x); }

/// Computed in float: the rounding of its 24 bits cannot spoil the one to 11 that follows, because
/// 24 >= 2 * 11 + 2 (and a sum that is subnormal as a half is exact).
inline Half half_add(Half a, Half b) { return to_half(to_float(a) + to_float(b)); }
inline Half half_sub(Half a, Half b) { return to_half(to_float(a) - to_float(b)); }
/// The product of two fractions of 11 bits is exact in float.
inline Half half_mul(Half a, Half b) { return to_half(to_float(a) * to_float(b)); }

/// The larger one. -0 is below +0; the NaN if either is one.
constexpr Half half_max(Half a, Half b) {
  if (is_nan(a) || is_nan(b)) return kHalfNan;
  const bool a_negative = (a.bits & kHalfSign) != 0;
  const bool b_negative = (b.bits & kHalfSign) != 0;
  if (a_negative != b_negative) return a_negative ? b : a;
  return (a.bits > b.bits) != a_negative ? a : b;
}

/// 1 / x, rounded once: a quotient of halves is equal to a point where rounding steps or further
/// from it than a double's error. Of a zero: infinity of its sign.
inline Half half_recip(Half x) { return to_half(1.0 / to_float(x)); }
/// 1 / sqrt(x). Of a zero: infinity of its sign; of what is below: the NaN. Neither this nor
/// half_exp() depends on the host's library: no result is within 2^-30, relative, of a point where
/// rounding steps, except for those that are one exactly.
inline Half half_recip_sqrt(Half x) { return to_half(1.0 / std::sqrt(double{to_float(x)})); }
/// e^x.
inline Half half_exp(Half x) { return to_half(std::exp(double{to_float(x)})); }

}  // namespace systole::hw

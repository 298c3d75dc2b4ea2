#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "hw/number/integer.h"
#include "hw/number/unit_depths.h"

/// Integer exponential of a non-positive argument: exp(p) on (-ln 2, 0] by a second order
/// polynomial, then one right shift per ln 2 taken out.
namespace systole::hw {

/// Constants of the default form, fixed by the input scale 2^-fraction_bits alone.
/// value(q) = (p + b)^2 + c >> z, with q = p - z q_ln2; the output scale is 0.3585 * 2^(-2F).
struct IntExpConstants {
  unsigned fraction_bits;
  std::int32_t q_ln2;
  std::int32_t b;
  std::int32_t c;

  /// The value at q = 0, the largest one (182601 for 8 fraction bits: 18 bits unsigned).
  constexpr std::uint32_t value_at_zero() const { return static_cast<std::uint32_t>(b * b + c); }
};

inline constexpr unsigned kDefaultExpFractionBits = 8;
/// With fewer bits ln 2 rounds to zero steps, with more the value at zero leaves 31 bits.
inline constexpr unsigned kMinExpFractionBits = 1;
inline constexpr unsigned kMaxExpFractionBits = 14;
/// Arguments below are clamped: the input register of the polynomial is s16.
inline constexpr std::int32_t kIntExpLowestArgument = -(1 << 15);

/// floor(ln 2 / S), floor(1.353 / S), floor(0.344 / (0.3585 S^2)) with S = 2^-fraction_bits
/// (coefficients as printed in the I-BERT paper). Throws std::invalid_argument
/// outside 1 to 14 bits.
constexpr IntExpConstants make_int_exp_constants(unsigned fraction_bits) {
  if (fraction_bits < kMinExpFractionBits || fraction_bits > kMaxExpFractionBits) {
    throw std::invalid_argument("int_exp: expected 1 to 14 fraction bits");
  }
  const double steps = static_cast<double>(std::int64_t{1} << fraction_bits);
  return {fraction_bits, static_cast<std::int32_t>(0.693147180559945309417 * steps),
          static_cast<std::int32_t>(1.353 * steps),
          static_cast<std::int32_t>(0.344 / 0.3585 * (steps * steps))};
}

inline constexpr IntExpConstants kDefaultIntExp = make_int_exp_constants(kDefaultExpFractionBits);
static_assert(kDefaultIntExp.q_ln2 == 177 && kDefaultIntExp.b == 346 && kDefaultIntExp.c == 62885);
static_assert(kDefaultIntExp.value_at_zero() == 182601);

/// exp(q * 2^-F) as an integer of scale 1 / value_at_zero(), for q <= 0.
constexpr std::uint32_t int_exp(std::int64_t q, const IntExpConstants& constants) {
  const auto argument = static_cast<std::int32_t>(std::max<std::int64_t>(q, kIntExpLowestArgument));
  const std::int32_t halvings = -argument / constants.q_ln2;
  const std::int32_t p = argument + halvings * constants.q_ln2;
  const std::int32_t polynomial = (p + constants.b) * (p + constants.b) + constants.c;
  return static_cast<std::uint32_t>(polynomial) >> std::min(halvings, 31);
}

/// The unit divides by q_ln2 with one multiplication: -q / q_ln2 = -q * reciprocal >> 29. With
/// reciprocal = ceil(2^29 / q_ln2) the error -q (reciprocal q_ln2 - 2^29) stays below 2^15 q_ln2,
/// which is less than 2^29 for every q_ln2 of 1 to 14 fraction bits, so the quotient is exact.
inline constexpr unsigned kIntExpReciprocalBits = 29;

/// The reciprocal pin of the unit, at most 30 bits.
constexpr std::uint32_t int_exp_reciprocal(const IntExpConstants& constants) {
  const auto divisor = static_cast<std::uint32_t>(constants.q_ln2);
  return ((std::uint32_t{1} << kIntExpReciprocalBits) + divisor - 1) / divisor;
}

/// Pipeline depth of the unit: argument to halvings; halvings back to the remainder, and the offset
/// of the polynomial; square; constant and shift by the halvings.
inline constexpr std::uint32_t kIntExpLatency = unit_depth::kMultiply +
                                                (unit_depth::kMultiply + unit_depth::kAdd) +
                                                unit_depth::kMultiply + unit_depth::kShift;

/// Cycle contract of the unit on its own: `rows` rows of `cols` arguments, `lanes` per cycle, each
/// row beginning with a new beat.
constexpr std::uint64_t int_exp_cycles(std::uint64_t rows, std::uint64_t cols,
                                       std::uint32_t lanes) {
  if (rows == 0 || cols == 0) return 0;
  return kIntExpLatency + rows * (cols / lanes + (cols % lanes != 0 ? 1 : 0));
}

/// Constants of the released I-BERT code, derived from the real input scale.
struct IBertExpConstants {
  std::int64_t x0;  ///< floor(-0.6931 / S), negative
  std::int64_t b;
  std::int64_t c;
};

/// Of a positive scale. fits_ibert_exp() accepts those of 9e-10 or more; constants of smaller ones
/// end at +-2^63, short of what int64 does not hold.
inline IBertExpConstants make_ibert_exp_constants(double scale) {
  constexpr double kA = 0.35815147;
  const auto floor = [](double value) {
    constexpr double kLargest = 0x1p63 - 0x1p10;  // the last double below 2^63
    return static_cast<std::int64_t>(std::floor(std::clamp(value, -kLargest, kLargest)));
  };
  return {floor(-0.6931 / scale), floor(0.96963238 / kA / scale),
          floor(1.0 / kA / (scale * scale))};
}

/// Halvings the released code keeps: its integer result is polynomial * 2^(30 - halvings).
inline constexpr int kIBertExpHalvings = 30;

/// exp as the released code forms it, before the shift left: 44 to 66 bits if materialised, so the
/// hardware (and ibert_softmax_code() of hw/function/softmax.h) folds the shift into the
/// requantisation.
struct IBertExp {
  std::int64_t polynomial;
  int halvings;
};

/// x0 < 0 and |x0| <= 2^30, 0 <= b <= 2^32, 0 <= c <= 2^62: the window without int64 overflow.
constexpr bool fits_ibert_exp(const IBertExpConstants& constants) {
  constexpr std::int64_t kOne = 1;
  return constants.x0 < 0 && constants.x0 >= -(kOne << 30) && constants.b >= 0 &&
         constants.b <= kOne << 32 && constants.c >= 0 && constants.c <= kOne << 62;
}

/// For q <= 0 and constants that fits_ibert_exp() accepts.
constexpr IBertExp ibert_exp(std::int64_t q, const IBertExpConstants& constants) {
  const std::int64_t x = std::max(q, kIBertExpHalvings * constants.x0);
  const std::int64_t halvings = x / constants.x0;
  const std::int64_t r = x - constants.x0 * halvings;
  const std::int64_t polynomial = r * (r + constants.b) + constants.c;
  return {std::max<std::int64_t>(polynomial, 0), static_cast<int>(halvings)};
}

}  // namespace systole::hw

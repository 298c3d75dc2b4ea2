#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hw/kernel/row_functions.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <algorithm>
#include <limits>

#include "hw/kernel/row_kernels.h"
#include "hw/kernel/row_plain.h"
#include "hw/kernel/row_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace systole::hw::row::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

using plain::exponentials_row;
using plain::gelu_row;
using plain::maximum_row;
using plain::normalise_row;
using plain::silu_row;
using plain::sum_unsigned_row;

#else

/// What rounds a number half up by the shift of a factor.
constexpr std::uint64_t half_step(Dyadic factor) {
  return factor.shift == 0 ? 0 : std::uint64_t{1} << (factor.shift - 1);
}

class Gelu {
 public:
  Gelu(const GeluConstants& constants, Clamp limits)
      : constants_(constants),
        shifter_(static_cast<unsigned>(constants.output.shift)),
        clamp_(limits) {}

  HWY_INLINE V32 operator()(V32 x) const {
    const D32 d;
    const V32 q = hn::Min(hn::Max(x, hn::Set(d, -32768)), hn::Set(d, 32767));
    const auto b = static_cast<std::int32_t>(constants_.b);
    const V32 clipped = hn::Add(hn::Min(hn::Abs(q), hn::Set(d, -b)), hn::Set(d, b));
    return interleave(half(evens(q), evens(clipped)), half(odds(q), odds(clipped)));
  }

 private:
  HWY_INLINE V64 half(V32 q, V32 clipped) const {
    const D64 d;
    const V64 x = low_signed(q);
    const V64 polynomial = hn::Add(hn::MulEven(clipped, clipped), hn::Set(d, constants_.c));
    const V64 zero = hn::Zero(d);
    const V64 negated = hn::IfThenElse(hn::Lt(x, zero), hn::Sub(zero, polynomial), polynomial);
    // The sign of zero is zero, but there the product is zero anyway.
    const V64 product = hn::Mul(x, hn::Add(negated, hn::Set(d, constants_.one)));
    return clamp_(shifter_(hn::Mul(product, hn::Set(d, constants_.output.multiplier))));
  }

  GeluConstants constants_;
  Shifter<Rounding::kHalfUp> shifter_;
  Clamp64 clamp_;
};

void gelu_row(std::int32_t* x, std::size_t n, const GeluConstants& constants, Clamp limits) {
  const Gelu function(constants, limits);
  transform(x, n, [function](V32 v, const auto&) HWY_ATTR { return function(v); });
}

/// int_exp() of minus a scaled magnitude: -(magnitude * factor + addend >> shift of the factor).
class Exponential {
 public:
  Exponential(const IntExpConstants& exp, Dyadic factor, std::uint64_t addend)
      : exp_(exp), factor_(factor), addend_(addend) {
    // floor(a / q_ln2) = a * reciprocal >> kArgumentBits + bits for every a up to 2^kArgumentBits,
    // if 2^bits >= q_ln2; the product then keeps 32 bits.
    const auto q_ln2 = static_cast<std::uint64_t>(exp_.q_ln2);
    reciprocal_shift_ = static_cast<int>(kArgumentBits + bit_length(q_ln2 - 1));
    const std::uint64_t numerator = std::uint64_t{1} << reciprocal_shift_;
    reciprocal_ = static_cast<std::uint32_t>((numerator + q_ln2 - 1) / q_ln2);
  }

  HWY_INLINE V32 operator()(VU32 magnitude) const {
    const D32 d;
    const DU32 du;
    const V32 argument = interleave(scaled(evens(magnitude)), scaled(odds(magnitude)));
    const VU32 halvings = hn::ShiftRightSame(
        hn::Mul(hn::BitCast(du, argument), hn::Set(du, reciprocal_)), reciprocal_shift_);
    const V32 taken_out = hn::Mul(hn::BitCast(d, halvings), hn::Set(d, exp_.q_ln2));
    const V32 p = hn::Add(hn::Sub(taken_out, argument), hn::Set(d, exp_.b));
    const V32 polynomial = hn::Add(hn::Mul(p, p), hn::Set(d, exp_.c));
    return hn::BitCast(d, hn::Shr(hn::BitCast(du, polynomial), hn::Min(halvings, hn::Set(du, 31))));
  }

 private:
  static constexpr unsigned kArgumentBits = 15;
  static_assert(kIntExpLowestArgument == -(1 << kArgumentBits));

  HWY_INLINE VU64 scaled(VU32 magnitude) const {
    const DU64 d;
    const auto multiplier = static_cast<std::uint32_t>(factor_.multiplier);
    const VU64 product = hn::MulEven(magnitude, hn::Set(DU32(), multiplier));
    const VU64 argument = hn::ShiftRightSame(hn::Add(product, hn::Set(d, addend_)), factor_.shift);
    return hn::Min(argument, hn::Set(d, std::uint64_t{1} << kArgumentBits));
  }

  IntExpConstants exp_;
  Dyadic factor_;
  std::uint64_t addend_;
  int reciprocal_shift_;
  std::uint32_t reciprocal_;
};

class Silu {
 public:
  Silu(const SiluConstants& constants, Clamp limits)
      : exp_(constants.exp, constants.argument, half_step(constants.argument)),
        one_(static_cast<std::int32_t>(constants.exp.value_at_zero())),
        multiplier_(constants.output.multiplier),
        shifter_(static_cast<unsigned>(constants.output.shift)),
        clamp_(limits) {}

  HWY_INLINE V32 operator()(V32 x) const {
    const D32 d;
    const V32 q = hn::Min(hn::Max(x, hn::Set(d, -32768)), hn::Set(d, 32767));
    const V32 e = exp_(hn::BitCast(DU32(), hn::Abs(q)));
    const V32 one = hn::Set(d, one_);
    // Twice the largest value at zero, that of 14 fraction bits, still fits 31 bits.
    const V32 divisor = hn::Add(one, e);
    const V32 dividend = hn::IfThenElse(hn::Lt(q, hn::Zero(d)), e, one);
    return interleave(half(evens(q), evens(dividend), evens(divisor)),
                      half(odds(q), odds(dividend), odds(divisor)));
  }

 private:
  using D = hn::Repartition<double, D32>;
  static constexpr double kTwo52 = 4503599627370496;

  /// A double of 2^52 and more has a step of at least 1: below its exponent are the bits of the
  /// integer.
  static HWY_INLINE hn::Vec<D> to_double(VU64 x) {
    const D d;
    const hn::Vec<D> offset = hn::Set(d, kTwo52);
    return hn::Sub(hn::BitCast(d, hn::Or(x, hn::BitCast(DU64(), offset))), offset);
  }

  HWY_INLINE V64 half(V32 q, V32 dividend, V32 divisor) const {
    const D32 d;
    const D real;
    // Exact: both operands of the division are integers below 2^46. A quotient that is none is at
    // least 1 / divisor > 2^-31 below the next integer, and rounding moves it by 2^-38 at most.
    const auto scaled = hn::Mul(to_double(low_unsigned(dividend)),
                                hn::Set(real, static_cast<double>(1 << kSigmoidBits)));
    const auto quotient = hn::Floor(hn::Div(scaled, to_double(low_unsigned(divisor))));
    const V32 sigmoid = hn::BitCast(d, hn::Add(quotient, hn::Set(real, kTwo52)));
    // The product has 31 bits, so the low half of its lane holds it.
    const V32 product = hn::BitCast(d, hn::MulEven(q, sigmoid));
    return clamp_(shifter_(hn::MulEven(product, hn::Set(d, multiplier_))));
  }

  Exponential exp_;
  std::int32_t one_;
  std::int32_t multiplier_;
  Shifter<Rounding::kHalfUp> shifter_;
  Clamp64 clamp_;
};

void silu_row(std::int32_t* x, std::size_t n, const SiluConstants& constants, Clamp limits) {
  const Silu function(constants, limits);
  transform(x, n, [function](V32 v, const auto&) HWY_ATTR { return function(v); });
}

std::int32_t maximum_row(const std::int32_t* x, std::size_t n) {
  const D32 d;
  const std::size_t lanes = hn::Lanes(d);
  V32 highest = hn::Set(d, std::numeric_limits<std::int32_t>::min());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) highest = hn::Max(highest, hn::LoadU(d, x + i));
  std::int32_t result = hn::GetLane(hn::MaxOfLanes(d, highest));
  for (; i < n; ++i) result = std::max(result, x[i]);
  return result;
}

std::uint64_t sum_unsigned_row(const std::int32_t* x, std::size_t n) {
  const D32 d;
  const DU64 wide;
  const std::size_t lanes = hn::Lanes(d);
  VU64 sum = hn::Zero(wide);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V32 v = hn::LoadU(d, x + i);
    sum = hn::Add(sum, hn::Add(low_unsigned(v), low_unsigned(odds(v))));
  }
  std::uint64_t result = hn::GetLane(hn::SumOfLanes(wide, sum));
  for (; i < n; ++i) result += static_cast<std::uint32_t>(x[i]);
  return result;
}

void exponentials_row(std::int32_t* x, std::size_t n, std::int32_t maximum,
                      const SoftmaxConstants& constants) {
  // Rounding half up a negative number is rounding half down its magnitude.
  const std::uint64_t half = half_step(constants.score);
  const Exponential function(constants.exp, constants.score, half == 0 ? 0 : half - 1);
  transform(x, n, [=](V32 v, const auto&) HWY_ATTR {
    // The maximum minus the score is not negative and fits 32 unsigned bits.
    return function(hn::BitCast(DU32(), hn::Sub(hn::Set(D32(), maximum), v)));
  });
}

void normalise_row(std::int32_t* x, std::size_t n, std::uint64_t sum,
                   const SoftmaxConstants& constants) {
  // The largest exponential is part of the sum and not less than 7, so both factors have 32 bits.
  const auto factor = static_cast<std::uint32_t>((std::uint64_t{1} << constants.factor_bits) / sum);
  const int shift = static_cast<int>(constants.factor_bits - constants.output_bits);
  const bool rounded = constants.mode == SoftmaxMode::kNormalisedRound;
  const std::uint64_t half = rounded ? std::uint64_t{1} << (shift - 1) : 0;
  const auto highest = static_cast<std::uint32_t>(unsigned_range(constants.output_bits).hi);
  transform(x, n, [=](V32 v, const auto&) HWY_ATTR {
    const DU32 d;
    const VU32 f = hn::Set(d, factor);
    const VU64 h = hn::Set(DU64(), half);
    const VU32 exponential = hn::BitCast(d, v);
    const VU64 even = hn::ShiftRightSame(hn::Add(hn::MulEven(evens(exponential), f), h), shift);
    const VU64 odd = hn::ShiftRightSame(hn::Add(hn::MulEven(odds(exponential), f), h), shift);
    const VU32 code = hn::BitCast(d, interleave(even, odd));
    return hn::BitCast(D32(), hn::Min(code, hn::Set(d, highest)));
  });
}

#endif  // HWY_TARGET

}  // namespace systole::hw::row::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole::hw::row {

HWY_EXPORT(gelu_row);
HWY_EXPORT(silu_row);
HWY_EXPORT(maximum_row);
HWY_EXPORT(sum_unsigned_row);
HWY_EXPORT(exponentials_row);
HWY_EXPORT(normalise_row);

void gelu(std::int32_t* x, std::size_t n, const GeluConstants& constants, Clamp limits) {
  HWY_DYNAMIC_DISPATCH(gelu_row)(x, n, constants, limits);
}

void silu(std::int32_t* x, std::size_t n, const SiluConstants& constants, Clamp limits) {
  HWY_DYNAMIC_DISPATCH(silu_row)(x, n, constants, limits);
}

std::int32_t maximum(const std::int32_t* x, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(maximum_row)(x, n);
}

std::uint64_t sum_unsigned(const std::int32_t* x, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_unsigned_row)(x, n);
}

void exponentials(std::int32_t* x, std::size_t n, std::int32_t maximum,
                  const SoftmaxConstants& constants) {
  HWY_DYNAMIC_DISPATCH(exponentials_row)(x, n, maximum, constants);
}

void normalise_exponentials(std::int32_t* x, std::size_t n, std::uint64_t sum,
                            const SoftmaxConstants& constants) {
  HWY_DYNAMIC_DISPATCH(normalise_row)(x, n, sum, constants);
}

std::uint32_t softmax_codes(std::int32_t* x, std::size_t n, const SoftmaxConstants& constants) {
  if (constants.mode != SoftmaxMode::kDeferred) {
    normalise_exponentials(x, n, sum_unsigned(x, n), constants);
    return 1;
  }
  const auto highest = static_cast<std::int32_t>(unsigned_range(constants.output_bits).hi);
  requantise(x, n, constants.exp_to_code, Rounding::kHalfUp, {0, highest});
  return std::max(static_cast<std::uint32_t>(sum_unsigned(x, n)), std::uint32_t{1});
}

}  // namespace systole::hw::row
#endif

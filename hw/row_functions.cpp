// AVX3_DL has nothing that these kernels use.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_AVX3_DL
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hw/row_functions.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <algorithm>
#include <limits>

#include "hw/row_kernels.h"
#include "hw/row_plain.h"
#include "hw/row_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace systole::hw::row::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

using plain::exponentials_row;
using plain::gelu_row;
using plain::layer_norm_row;
using plain::maximum_row;
using plain::normalise_row;
using plain::sum_row;
using plain::sum_squares_row;
using plain::sum_unsigned_row;

#else

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

/// softmax_exponential() for one maximum and one set of constants.
class Exponential {
 public:
  Exponential(std::int32_t maximum, const SoftmaxConstants& constants)
      : maximum_(maximum), score_(constants.score), exp_(constants.exp) {
    // floor(a / q_ln2) = a * reciprocal >> kArgumentBits + bits for every a up to 2^kArgumentBits,
    // if 2^bits >= q_ln2; the product then keeps 32 bits.
    const auto q_ln2 = static_cast<std::uint64_t>(exp_.q_ln2);
    reciprocal_shift_ = static_cast<int>(kArgumentBits + bit_length(q_ln2 - 1));
    const std::uint64_t numerator = std::uint64_t{1} << reciprocal_shift_;
    reciprocal_ = static_cast<std::uint32_t>((numerator + q_ln2 - 1) / q_ln2);
  }

  HWY_INLINE V32 operator()(V32 x) const {
    const D32 d;
    const DU32 du;
    // The maximum minus the score is not negative and fits 32 unsigned bits.
    const VU32 distance = hn::BitCast(du, hn::Sub(hn::Set(d, maximum_), x));
    const V32 argument = interleave(scaled(evens(distance)), scaled(odds(distance)));
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

  /// Rounding half up a negative number is rounding half down its magnitude.
  HWY_INLINE VU64 scaled(VU32 distance) const {
    const DU64 d;
    const int shift = score_.shift;
    const std::uint64_t below_half = shift == 0 ? 0 : (std::uint64_t{1} << (shift - 1)) - 1;
    const auto multiplier = static_cast<std::uint32_t>(score_.multiplier);
    const VU64 product = hn::MulEven(distance, hn::Set(DU32(), multiplier));
    const VU64 magnitude = hn::ShiftRightSame(hn::Add(product, hn::Set(d, below_half)), shift);
    return hn::Min(magnitude, hn::Set(d, std::uint64_t{1} << kArgumentBits));
  }

  std::int32_t maximum_;
  Dyadic score_;
  IntExpConstants exp_;
  int reciprocal_shift_;
  std::uint32_t reciprocal_;
};

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
  const Exponential function(maximum, constants);
  transform(x, n, [function](V32 v, const auto&) HWY_ATTR { return function(v); });
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

std::int64_t sum_row(const std::int32_t* x, std::size_t n) {
  const D32 d;
  const D64 wide;
  const std::size_t lanes = hn::Lanes(d);
  V64 sum = hn::Zero(wide);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V32 v = hn::LoadU(d, x + i);
    sum = hn::Add(sum, hn::Add(low_signed(v), hn::ShiftRight<32>(hn::BitCast(wide, v))));
  }
  std::int64_t result = hn::GetLane(hn::SumOfLanes(wide, sum));
  for (; i < n; ++i) result += x[i];
  return result;
}

std::uint64_t sum_squares_row(const std::int32_t* x, std::size_t n, std::int32_t mean) {
  const D32 d;
  const D64 wide;
  const std::size_t lanes = hn::Lanes(d);
  V64 sum = hn::Zero(wide);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V32 y = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
    sum = hn::Add(sum, hn::Add(hn::MulEven(evens(y), evens(y)), hn::MulEven(odds(y), odds(y))));
  }
  auto result = static_cast<std::uint64_t>(hn::GetLane(hn::SumOfLanes(wide, sum)));
  for (; i < n; ++i) {
    const auto y = static_cast<std::uint64_t>(std::int64_t{x[i]} - mean);
    result += y * y;
  }
  return result;
}

void layer_norm_row(std::int32_t* x, std::size_t n, const LayerNormStatistics& statistics,
                    const LayerNormFactors& factors, Clamp limits) {
  const Shifter<Rounding::kFloor> normalise(kLayerNormFactorBits - factors.fraction_bits);
  const Shifter<Rounding::kHalfUp> shifter(factors.shift);
  const Clamp64 clamp(limits);
  const auto mean = static_cast<std::int32_t>(statistics.mean);
  const auto factor = static_cast<std::int32_t>(statistics.factor);
  transform(x, n, [=](V32 v, const auto& load) HWY_ATTR {
    const D32 d;
    const V32 y = hn::Sub(v, hn::Set(d, mean));
    const V32 m = load(factors.multipliers);
    const V32 bias = load(factors.biases);
    const auto half = [&](V32 deviation, V32 multiplier, V32 addend) HWY_ATTR {
      const V64 norm = normalise(hn::MulEven(deviation, hn::Set(d, factor)));
      const V64 product = hn::MulEven(hn::BitCast(d, norm), multiplier);
      return clamp(shifter(hn::Add(product, low_signed(addend))));
    };
    return interleave(half(evens(y), evens(m), evens(bias)), half(odds(y), odds(m), odds(bias)));
  });
}

#endif  // HWY_TARGET

}  // namespace systole::hw::row::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole::hw::row {

HWY_EXPORT(gelu_row);
HWY_EXPORT(maximum_row);
HWY_EXPORT(sum_unsigned_row);
HWY_EXPORT(exponentials_row);
HWY_EXPORT(normalise_row);
HWY_EXPORT(sum_row);
HWY_EXPORT(sum_squares_row);
HWY_EXPORT(layer_norm_row);

void gelu(std::int32_t* x, std::size_t n, const GeluConstants& constants, Clamp limits) {
  HWY_DYNAMIC_DISPATCH(gelu_row)(x, n, constants, limits);
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

LayerNormStatistics layer_norm_statistics(const std::int32_t* x, std::size_t n) {
  const auto length = static_cast<std::int64_t>(n);
  const std::int64_t total = HWY_DYNAMIC_DISPATCH(sum_row)(x, n);
  const std::int64_t mean = floor_divide(2 * total + length, 2 * length);
  const std::uint64_t sum_squares =
      HWY_DYNAMIC_DISPATCH(sum_squares_row)(x, n, static_cast<std::int32_t>(mean));
  return layernorm_statistics(mean, sum_squares, int_sqrt(sum_squares));
}

void layer_norm_output(std::int32_t* x, std::size_t n, const LayerNormStatistics& statistics,
                       const LayerNormFactors& factors, Clamp limits) {
  if (statistics.deviation > 1) {
    HWY_DYNAMIC_DISPATCH(layer_norm_row)(x, n, statistics, factors, limits);
    return;
  }
  // The reciprocal of one, 2^31, is no signed 32-bit multiplier. Only rows with at most three
  // elements off their mean, each by one, come here.
  plain::layer_norm_row(x, n, statistics, factors, limits);
}

}  // namespace systole::hw::row
#endif

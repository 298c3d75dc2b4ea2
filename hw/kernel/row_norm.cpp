#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hw/kernel/row_norm.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include "hw/kernel/row_kernels.h"
#include "hw/kernel/row_plain.h"
#include "hw/kernel/row_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace systole::hw::row::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

using plain::layer_norm_row;
using plain::sum_row;
using plain::sum_squares_row;

#else

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
    const V32 bias = factors.biases == nullptr ? hn::Zero(d) : load(factors.biases);
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

HWY_EXPORT(sum_row);
HWY_EXPORT(sum_squares_row);
HWY_EXPORT(layer_norm_row);

std::int64_t sum(const std::int32_t* x, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_row)(x, n);
}

std::uint64_t sum_squares(const std::int32_t* x, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_squares_row)(x, n, 0);
}

LayerNormStatistics layer_norm_statistics(const std::int32_t* x, std::size_t n) {
  const auto length = static_cast<std::int64_t>(n);
  const std::int64_t mean = layernorm_mean(sum(x, n), length);
  const std::uint64_t deviations =
      HWY_DYNAMIC_DISPATCH(sum_squares_row)(x, n, static_cast<std::int32_t>(mean));
  return layernorm_statistics(mean, deviations, int_sqrt(deviations));
}

void layer_norm_output(std::int32_t* x, std::size_t n, const LayerNormStatistics& statistics,
                       const LayerNormFactors& factors, Clamp limits) {
  if (statistics.deviation > 1) {
    HWY_DYNAMIC_DISPATCH(layer_norm_row)(x, n, statistics, factors, limits);
    return;
  }
  // The reciprocal of one, 2^31, is no signed 32-bit multiplier. A row's own
  // statistics are such only if at most three elements are off their mean, each by one.
  plain::layer_norm_row(x, n, statistics, factors, limits);
}

}  // namespace systole::hw::row
#endif

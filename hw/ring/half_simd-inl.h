/// Vectors of halves, held as floats, compiled once for every target (hence no #pragma once).
///
/// An operation of halves is one of floats and a rounding (hw/number/half.h says why that is
/// exact).
#if defined(SYSTOLE_HW_RING_HALF_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYSTOLE_HW_RING_HALF_SIMD_INL_H_
#undef SYSTOLE_HW_RING_HALF_SIMD_INL_H_
#else
#define SYSTOLE_HW_RING_HALF_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "hw/number/half.h"

/// Whether vectors have a constant length and more than one lane; plain loops otherwise.
#undef SYSTOLE_HALF_VECTORS
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || HWY_HAVE_SCALABLE
#define SYSTOLE_HALF_VECTORS 0
#else
#define SYSTOLE_HALF_VECTORS 1
#endif

HWY_BEFORE_NAMESPACE();
namespace systole::hw::half_detail::HWY_NAMESPACE {

#if SYSTOLE_HALF_VECTORS

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

// F16C converts as hw/number/half.h does, except that a NaN keeps its payload.
template <class D>
HWY_INLINE hn::Vec<D> load_halves(D d, const Half* from) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
}

template <class D>
HWY_INLINE hn::Vec<D> round_to_half(D d, hn::Vec<D> x) {
  return hn::PromoteTo(d, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), x));
}

/// x is a half already.
template <class D>
HWY_INLINE void store_halves(D d, hn::Vec<D> x, Half* to) {
  const auto nan = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), 0x7fc00000U));
  const hn::Vec<D> clean = hn::IfThenElse(hn::IsNaN(x), nan, x);
  const hn::Rebind<hwy::float16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, clean), d16, reinterpret_cast<hwy::float16_t*>(to));
}

#else

template <class D>
HWY_INLINE hn::Vec<D> load_halves(D d, const Half* from) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> du16;
  const auto bits = hn::PromoteTo(du, hn::LoadU(du16, &from->bits));
  const auto magnitude = hn::And(bits, hn::Set(du, kHalfMagnitude));
  const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
  // The product moves the exponent's bias, and makes a normal float of a subnormal.
  const auto value = hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)), hn::Set(d, 0x1p112F));
  const auto beyond = hn::Ge(value, hn::Set(d, 0x1p16F));  // infinity and NaN come out finite
  const auto exponents = hn::BitCast(d, hn::Set(du, 0x7f800000U));
  const auto whole = hn::IfThenElse(beyond, hn::Or(value, exponents), value);
  return hn::Or(whole, hn::BitCast(d, sign));
}

template <class D>
HWY_INLINE hn::Vec<D> round_to_half(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> du;
  // Beside 1.5 * 2^(e + 13) the last bit of a float weighs what that of a half of exponent e does,
  // or of a subnormal: adding it rounds x.
  const auto power = hn::And(x, hn::BitCast(d, hn::Set(du, 0x7f800000U)));
  const auto inside = hn::Min(hn::Max(power, hn::Set(d, 0x1p-14F)), hn::Set(d, 0x1p15F));
  const auto shifter = hn::Mul(inside, hn::Set(d, 0x1.8p13F));
  const auto rounded = hn::CopySign(hn::Sub(hn::Add(x, shifter), shifter), x);
  const auto overflow = hn::Ge(hn::Abs(rounded), hn::Set(d, 0x1p16F));
  const auto infinity = hn::BitCast(d, hn::Set(du, 0x7f800000U));
  return hn::IfThenElse(overflow, hn::CopySign(infinity, x), rounded);
}

/// x is a half already.
template <class D>
HWY_INLINE void store_halves(D d, hn::Vec<D> x, Half* to) {
  HWY_ALIGN float values[hn::MaxLanes(d)];
  hn::Store(x, d, values);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) to[i] = to_half(values[i]);
}

#endif

#endif  // SYSTOLE_HALF_VECTORS

}  // namespace systole::hw::half_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

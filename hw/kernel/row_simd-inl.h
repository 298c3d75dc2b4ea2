/// Vector vocabulary of the row kernels, compiled once for every target (hence no #pragma once).
///
/// A vector of int32 becomes two of int64, its even and its odd elements: the multiplier takes the
/// low half of each 64-bit lane, so no lane ever moves.
#if defined(SYSTOLE_HW_KERNEL_ROW_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYSTOLE_HW_KERNEL_ROW_SIMD_INL_H_
#undef SYSTOLE_HW_KERNEL_ROW_SIMD_INL_H_
#else
#define SYSTOLE_HW_KERNEL_ROW_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hw/kernel/row_kernels.h"
#include "hw/number/dyadic.h"

HWY_BEFORE_NAMESPACE();
namespace systole::hw::row::HWY_NAMESPACE {

// A scalar target has no 64-bit neighbour lanes; it runs the plain loops.
#if HWY_TARGET != HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::ScalableTag<std::int32_t>;
using DU32 = hn::RebindToUnsigned<D32>;
using D64 = hn::RepartitionToWide<D32>;
using DU64 = hn::RepartitionToWide<DU32>;
using V32 = hn::Vec<D32>;
using VU32 = hn::Vec<DU32>;
using V64 = hn::Vec<D64>;
using VU64 = hn::Vec<DU64>;

/// Loads the elements that belong to those being transformed; a tail comes from a copy.
struct LoadWhole {
  std::size_t first;
  HWY_INLINE V32 operator()(const std::int32_t* from) const {
    return hn::LoadU(D32(), from + first);
  }
};

struct LoadTail {
  std::size_t first;
  std::size_t count;
  HWY_INLINE V32 operator()(const std::int32_t* from) const {
    HWY_ALIGN std::int32_t copy[hn::MaxLanes(D32())] = {};
    std::memcpy(copy, from + first, count * sizeof(std::int32_t));
    return hn::Load(D32(), copy);
  }
};

/// x[i] = function(x[i]) by vectors. `function` takes the vector and a loader for others beside it.
template <typename Function>
HWY_INLINE void transform(std::int32_t* x, std::size_t n, const Function& function) {
  const D32 d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const LoadWhole load{i};
    hn::StoreU(function(load(x), load), d, x + i);
  }
  if (i == n) return;
  const LoadTail load{i, n - i};
  HWY_ALIGN std::int32_t tail[hn::MaxLanes(d)];
  hn::Store(function(load(x), load), d, tail);
  std::memcpy(x + i, tail, (n - i) * sizeof(std::int32_t));
}

/// The even or odd elements, each in the low half of a 64-bit lane; the high half is arbitrary.
template <class V>
HWY_INLINE V evens(V x) {
  return x;
}
HWY_INLINE V32 odds(V32 x) {
  return hn::BitCast(D32(), hn::ShiftRight<32>(hn::BitCast(DU64(), x)));
}
HWY_INLINE VU32 odds(VU32 x) {
  return hn::BitCast(DU32(), hn::ShiftRight<32>(hn::BitCast(DU64(), x)));
}

/// The low half of every lane, as a number.
HWY_INLINE V64 low_signed(V32 x) {
  return hn::ShiftRight<32>(hn::ShiftLeft<32>(hn::BitCast(D64(), x)));
}
HWY_INLINE VU64 low_unsigned(V32 x) {
  return hn::And(hn::BitCast(DU64(), x), hn::Set(DU64(), 0xffffffffU));
}

/// Puts the low halves of both back into one vector.
HWY_INLINE V32 interleave(V64 even, V64 odd) {
  return hn::OddEven(hn::BitCast(D32(), hn::ShiftLeft<32>(odd)), hn::BitCast(D32(), even));
}
HWY_INLINE V32 interleave(VU64 even, VU64 odd) {
  return interleave(hn::BitCast(D64(), even), hn::BitCast(D64(), odd));
}

/// shift_right() of products of at most 62 bits by one shift, 0 to 63.
template <Rounding kRounding>
class Shifter {
 public:
  explicit Shifter(unsigned shift)
      : shift_(static_cast<int>(shift)), half_(shift == 0 ? 0 : std::int64_t{1} << (shift - 1)) {}

  HWY_INLINE V64 operator()(V64 x) const {
    const D64 d;
    if constexpr (kRounding == Rounding::kHalfUp) {
      x = hn::Add(x, hn::Set(d, half_));
    } else if constexpr (kRounding == Rounding::kHalfEven) {
      // One less than half, and one more if the quotient is odd: ties move to the even neighbour.
      const V64 odd = hn::And(hn::ShiftRightSame(x, shift_), hn::Set(d, 1));
      if (shift_ != 0) x = hn::Add(x, hn::Add(odd, hn::Set(d, half_ - 1)));
    }
    return hn::ShiftRightSame(x, shift_);
  }

 private:
  int shift_;
  std::int64_t half_;
};

/// function(the rounding as a type), for what is compiled once for every rounding.
template <class Function>
HWY_INLINE void with_rounding(Rounding rounding, const Function& function) {
  switch (rounding) {
    case Rounding::kHalfUp:
      return function(std::integral_constant<Rounding, Rounding::kHalfUp>());
    case Rounding::kHalfEven:
      return function(std::integral_constant<Rounding, Rounding::kHalfEven>());
    case Rounding::kFloor:
      return function(std::integral_constant<Rounding, Rounding::kFloor>());
  }
}

class Clamp64 {
 public:
  explicit Clamp64(Clamp limits) : limits_(limits) {}
  HWY_INLINE V64 operator()(V64 x) const {
    const D64 d;
    return hn::Min(hn::Max(x, hn::Set(d, limits_.lo)), hn::Set(d, limits_.hi));
  }

 private:
  Clamp limits_;
};

class Clamp32 {
 public:
  explicit Clamp32(Clamp limits) : limits_(limits) {}
  HWY_INLINE V32 operator()(V32 x) const {
    const D32 d;
    return hn::Min(hn::Max(x, hn::Set(d, limits_.lo)), hn::Set(d, limits_.hi));
  }

 private:
  Clamp limits_;
};

#endif  // HWY_TARGET

}  // namespace systole::hw::row::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

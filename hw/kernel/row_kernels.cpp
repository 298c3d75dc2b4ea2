#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hw/kernel/row_kernels.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include "hw/kernel/row_kernels.h"
#include "hw/kernel/row_plain.h"
#include "hw/kernel/row_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace systole::hw::row::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

using plain::clamp_row;
using plain::narrow_as;
using plain::requantise_channels_rows;
using plain::requantise_row;
using plain::widen_as;

#else

void clamp_row(std::int32_t* x, std::size_t n, Clamp limits) {
  const Clamp32 clamp(limits);
  transform(x, n, [clamp](V32 v, const auto&) HWY_ATTR { return clamp(v); });
}

template <Rounding kRounding>
void requantise_rounded(std::int32_t* x, std::size_t n, Dyadic factor, Clamp limits) {
  const Shifter<kRounding> shifter(static_cast<unsigned>(factor.shift));
  const std::int32_t multiplier = factor.multiplier;
  const auto magnitude = static_cast<std::uint64_t>(multiplier < 0 ? -multiplier : multiplier);
  if (static_cast<unsigned>(factor.shift) >= bit_length(magnitude)) {
    // A factor below one keeps 32 bits, so clamping can wait until they are together again.
    const Clamp32 clamp(limits);
    transform(x, n, [=](V32 v, const auto&) HWY_ATTR {
      const V32 m = hn::Set(D32(), multiplier);
      return clamp(interleave(shifter(hn::MulEven(evens(v), m)), shifter(hn::MulEven(odds(v), m))));
    });
    return;
  }
  const Clamp64 clamp(limits);
  transform(x, n, [=](V32 v, const auto&) HWY_ATTR {
    const V32 m = hn::Set(D32(), multiplier);
    return interleave(clamp(shifter(hn::MulEven(evens(v), m))),
                      clamp(shifter(hn::MulEven(odds(v), m))));
  });
}

void requantise_row(std::int32_t* x, std::size_t n, Dyadic factor, Rounding rounding,
                    Clamp limits) {
  with_rounding(rounding, [=](auto mode) HWY_ATTR {
    requantise_rounded<decltype(mode)::value>(x, n, factor, limits);
  });
}

/// Shifter with one shift per lane.
template <Rounding kRounding>
HWY_INLINE V64 shift_lanes(V64 x, VU64 shifts) {
  const D64 d;
  const DU64 du;
  const V64 bits = hn::BitCast(d, shifts);
  const V64 half = hn::BitCast(d, hn::ShiftRight<1>(hn::Shl(hn::Set(du, 1), shifts)));
  if constexpr (kRounding == Rounding::kHalfUp) {
    x = hn::Add(x, half);
  } else if constexpr (kRounding == Rounding::kHalfEven) {
    const V64 odd = hn::And(hn::Shr(x, bits), hn::Set(d, 1));
    const V64 less = hn::Sub(hn::Add(odd, half), hn::Set(d, 1));
    // Without a shift there is no half to round by.
    x = hn::Add(x, hn::IfThenZeroElse(hn::Eq(bits, hn::Zero(d)), less));
  }
  return hn::Shr(x, bits);
}

template <Rounding kRounding>
void requantise_channels_rounded(std::int32_t* x, std::size_t n, std::size_t rows,
                                 const std::int32_t* multipliers, const std::int32_t* shifts,
                                 Clamp limits) {
  const Clamp64 clamp(limits);
  const auto requantise = [=](V32 v, const auto& load) HWY_ATTR {
    const V32 m = load(multipliers);
    const V32 s = load(shifts);
    const VU64 even = low_unsigned(s);
    const VU64 odd = low_unsigned(odds(s));
    return interleave(clamp(shift_lanes<kRounding>(hn::MulEven(evens(v), evens(m)), even)),
                      clamp(shift_lanes<kRounding>(hn::MulEven(odds(v), odds(m)), odd)));
  };
  for (std::size_t r = 0; r < rows; ++r) transform(x + r * n, n, requantise);
}

void requantise_channels_rows(std::int32_t* x, std::size_t n, std::size_t rows,
                              const std::int32_t* multipliers, const std::int32_t* shifts,
                              Rounding rounding, Clamp limits) {
  with_rounding(rounding, [=](auto mode) HWY_ATTR {
    requantise_channels_rounded<decltype(mode)::value>(x, n, rows, multipliers, shifts, limits);
  });
}

template <typename T>
void widen_as(const void* from, std::int32_t* to, std::size_t n) {
  const D32 d;
  const hn::Rebind<T, D32> memory;
  const hn::Repartition<std::uint8_t, decltype(memory)> bytes;  // any alignment
  const auto* source = static_cast<const std::uint8_t*>(from);
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto loaded = hn::BitCast(memory, hn::LoadU(bytes, source + i * sizeof(T)));
    hn::StoreU(hn::PromoteTo(d, loaded), d, to + i);
  }
  plain::widen_as<T>(source + i * sizeof(T), to + i, n - i);
}

template <typename T>
void narrow_as(const std::int32_t* from, void* to, std::size_t n) {
  const D32 d;
  const hn::Rebind<T, D32> memory;
  const hn::Repartition<std::uint8_t, decltype(memory)> bytes;
  const Clamp32 clamp({std::numeric_limits<T>::min(), std::numeric_limits<T>::max()});
  auto* target = static_cast<std::uint8_t*>(to);
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    // Demotion to u8 in two steps would take values above s16 for negative ones.
    const auto narrowed = hn::DemoteTo(memory, clamp(hn::LoadU(d, from + i)));
    hn::StoreU(hn::BitCast(bytes, narrowed), bytes, target + i * sizeof(T));
  }
  plain::narrow_as<T>(from + i, target + i * sizeof(T), n - i);
}

#endif  // HWY_TARGET

void widen_row(const void* from, DType type, std::int32_t* to, std::size_t n) {
  switch (type) {
    case DType::kS8:
      return widen_as<std::int8_t>(from, to, n);
    case DType::kU8:
      return widen_as<std::uint8_t>(from, to, n);
    case DType::kS16:
      return widen_as<std::int16_t>(from, to, n);
    case DType::kU16:
      return widen_as<std::uint16_t>(from, to, n);
    case DType::kS32:
      std::memcpy(to, from, n * sizeof(std::int32_t));
  }
}

void narrow_row(const std::int32_t* from, void* to, DType type, std::size_t n) {
  switch (type) {
    case DType::kS8:
      return narrow_as<std::int8_t>(from, to, n);
    case DType::kU8:
      return narrow_as<std::uint8_t>(from, to, n);
    case DType::kS16:
      return narrow_as<std::int16_t>(from, to, n);
    case DType::kU16:
      return narrow_as<std::uint16_t>(from, to, n);
    case DType::kS32:
      std::memcpy(to, from, n * sizeof(std::int32_t));
  }
}

}  // namespace systole::hw::row::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole::hw::row {

HWY_EXPORT(clamp_row);
HWY_EXPORT(requantise_row);
HWY_EXPORT(requantise_channels_rows);
HWY_EXPORT(widen_row);
HWY_EXPORT(narrow_row);

void clamp(std::int32_t* x, std::size_t n, Clamp limits) {
  HWY_DYNAMIC_DISPATCH(clamp_row)(x, n, limits);
}

void requantise(std::int32_t* x, std::size_t n, Dyadic factor, Rounding rounding, Clamp limits) {
  HWY_DYNAMIC_DISPATCH(requantise_row)(x, n, factor, rounding, limits);
}

void requantise_channels(std::int32_t* x, std::size_t n, std::size_t rows,
                         const std::int32_t* multipliers, const std::int32_t* shifts,
                         Rounding rounding, Clamp limits) {
  HWY_DYNAMIC_DISPATCH(requantise_channels_rows)(x, n, rows, multipliers, shifts, rounding, limits);
}

void widen(const void* from, DType type, std::int32_t* to, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(widen_row)(from, type, to, n);
}

void narrow(const std::int32_t* from, void* to, DType type, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(narrow_row)(from, to, type, n);
}

}  // namespace systole::hw::row
#endif

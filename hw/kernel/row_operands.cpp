#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hw/kernel/row_operands.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include "hw/kernel/row_kernels.h"
#include "hw/kernel/row_plain.h"
#include "hw/kernel/row_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace systole::hw::row::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

using plain::add_rows;
using plain::multiply_rows;
using plain::rope_row;
using plain::select_rows;
using plain::subtract_rows;

#else

/// x[i] = function(x[i], y[i]) in `rows` consecutive rows of n elements with the same y.
template <typename Function>
HWY_INLINE void combine_rows(std::int32_t* x, const std::int32_t* y, std::size_t n,
                             std::size_t rows, const Function& function) {
  for (std::size_t r = 0; r < rows; ++r) {
    transform(x + r * n, n, [&](V32 a, const auto& load) HWY_ATTR { return function(a, load(y)); });
  }
}

/// `sum` unless it overflowed, which the sign of `overflow` says; then the sign of the first
/// operand says to where.
HWY_INLINE V32 saturated(V32 sum, V32 overflow, V32 first) {
  const V32 bound = hn::Xor(hn::BroadcastSignBit(first), hn::Set(D32(), 0x7fffffff));
  return hn::IfThenElse(hn::MaskFromVec(hn::BroadcastSignBit(overflow)), bound, sum);
}

void add_rows(std::int32_t* x, const std::int32_t* y, std::size_t n, std::size_t rows) {
  combine_rows(x, y, n, rows, [](V32 a, V32 b) HWY_ATTR {
    const V32 sum = hn::Add(a, b);
    // It overflowed if its sign differs from both.
    return saturated(sum, hn::And(hn::Xor(a, sum), hn::Xor(b, sum)), a);
  });
}

void subtract_rows(std::int32_t* x, const std::int32_t* y, std::size_t n, std::size_t rows) {
  combine_rows(x, y, n, rows, [](V32 a, V32 b) HWY_ATTR {
    const V32 difference = hn::Sub(a, b);
    // It overflowed if the signs of both differ and its own is not the first one's.
    return saturated(difference, hn::And(hn::Xor(a, b), hn::Xor(a, difference)), a);
  });
}

void multiply_rows(std::int32_t* x, const std::int32_t* y, std::size_t n, std::size_t rows,
                   unsigned shift, Rounding rounding, Clamp limits) {
  with_rounding(rounding, [=](auto mode) HWY_ATTR {
    const Shifter<decltype(mode)::value> shifter(shift);
    const Clamp64 clamp(limits);
    combine_rows(x, y, n, rows, [=](V32 a, V32 b) HWY_ATTR {
      return interleave(clamp(shifter(hn::MulEven(evens(a), evens(b)))),
                        clamp(shifter(hn::MulEven(odds(a), odds(b)))));
    });
  });
}

void select_rows(std::int32_t* x, const std::int32_t* mask, std::size_t n, std::size_t rows,
                 std::int32_t fill) {
  combine_rows(x, mask, n, rows, [fill](V32 a, V32 keep) HWY_ATTR {
    const D32 d;
    return hn::IfThenElse(hn::Eq(keep, hn::Zero(d)), hn::Set(d, fill), a);
  });
}

void rope_row(std::int32_t* x, const std::int32_t* table, std::size_t n, unsigned shift,
              Rounding rounding, Clamp limits) {
  constexpr auto kHighest = static_cast<std::int32_t>(full_range(kRopeInputBits).hi);
  const Clamp32 saturate({-kHighest - 1, kHighest});
  with_rounding(rounding, [=](auto mode) HWY_ATTR {
    const Shifter<decltype(mode)::value> shifter(shift);
    const Clamp64 clamp(limits);
    combine_rows(x, table, n, 1, [=](V32 v, V32 angle) HWY_ATTR {
      const V32 pair = saturate(v);
      const V32 even = evens(pair);
      const V32 odd = odds(pair);
      const V32 cosine = evens(angle);
      const V32 sine = odds(angle);
      return interleave(clamp(shifter(hn::Sub(hn::MulEven(even, cosine), hn::MulEven(odd, sine)))),
                        clamp(shifter(hn::Add(hn::MulEven(even, sine), hn::MulEven(odd, cosine)))));
    });
  });
}

#endif  // HWY_TARGET

}  // namespace systole::hw::row::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole::hw::row {

HWY_EXPORT(add_rows);
HWY_EXPORT(subtract_rows);
HWY_EXPORT(multiply_rows);
HWY_EXPORT(select_rows);
HWY_EXPORT(rope_row);

void add(std::int32_t* x, const std::int32_t* y, std::size_t n, std::size_t rows) {
  HWY_DYNAMIC_DISPATCH(add_rows)(x, y, n, rows);
}

void subtract(std::int32_t* x, const std::int32_t* y, std::size_t n, std::size_t rows) {
  HWY_DYNAMIC_DISPATCH(subtract_rows)(x, y, n, rows);
}

void multiply(std::int32_t* x, const std::int32_t* y, std::size_t n, std::size_t rows,
              unsigned shift, Rounding rounding, Clamp limits) {
  if (shift < kMaxDyadicShift) {
    HWY_DYNAMIC_DISPATCH(multiply_rows)(x, y, n, rows, shift, rounding, limits);
    return;
  }
  // The square of -2^31 and the half of this shift leave 63 bits together.
  plain::multiply_rows(x, y, n, rows, shift, rounding, limits);
}

void select(std::int32_t* x, const std::int32_t* mask, std::size_t n, std::size_t rows,
            std::int32_t fill) {
  HWY_DYNAMIC_DISPATCH(select_rows)(x, mask, n, rows, fill);
}

void rope(std::int32_t* x, const std::int32_t* table, std::size_t n, unsigned shift,
          Rounding rounding, Clamp limits) {
  HWY_DYNAMIC_DISPATCH(rope_row)(x, table, n, shift, rounding, limits);
}

}  // namespace systole::hw::row
#endif

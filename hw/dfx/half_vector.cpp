// AVX3_DL has nothing that these loops use, SSE4 little that SSSE3 has not.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hw/dfx/half_vector.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "hw/dfx/half_kernels.h"
#include "hw/dfx/half_simd-inl.h"
#include "hw/dfx/half_vector.h"

// Once for all targets.
#ifndef SYSTOLE_HW_DFX_HALF_VECTOR_ONCE
#define SYSTOLE_HW_DFX_HALF_VECTOR_ONCE

namespace systole::hw::half_detail {

enum class Operation { kAdd, kSubtract, kMultiply };

/// y[i] = a[i] op b[i], or op b[0] if the operand is a scalar.
struct Elements {
  const Half* a;
  const Half* b;
  bool scalar;
  std::size_t n;
  Half* y;
};

}  // namespace systole::hw::half_detail

#endif

HWY_BEFORE_NAMESPACE();
namespace systole::hw::half_detail::HWY_NAMESPACE {

#if SYSTOLE_HALF_VECTORS

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

template <Operation kOperation>
HWY_INLINE V apply(V a, V b) {
  if (kOperation == Operation::kAdd) return hn::Add(a, b);
  return kOperation == Operation::kSubtract ? hn::Sub(a, b) : hn::Mul(a, b);
}

template <Operation kOperation>
void run(const Elements& of) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const V scalar = hn::Set(d, to_float(*of.b));
  const auto vector = [&](const Half* a, const Half* b, Half* y) HWY_ATTR {
    const V other = of.scalar ? scalar : load_halves(d, b);
    store_halves(d, round_to_half(d, apply<kOperation>(load_halves(d, a), other)), y);
  };
  std::size_t i = 0;
  for (; i + lanes <= of.n; i += lanes) vector(of.a + i, of.b + (of.scalar ? 0 : i), of.y + i);
  if (i == of.n) return;
  Half a[hn::MaxLanes(d)] = {};
  Half b[hn::MaxLanes(d)] = {};
  std::copy_n(of.a + i, of.n - i, a);
  if (!of.scalar) std::copy_n(of.b + i, of.n - i, b);
  vector(a, b, a);
  std::copy_n(a, of.n - i, of.y + i);
}

#else

template <Operation kOperation>
void run(const Elements& of) {
  for (std::size_t i = 0; i < of.n; ++i) {
    const Half a = of.a[i];
    const Half b = of.b[of.scalar ? 0 : i];
    of.y[i] = kOperation == Operation::kAdd        ? half_add(a, b)
              : kOperation == Operation::kSubtract ? half_sub(a, b)
                                                   : half_mul(a, b);
  }
}

#endif

void elements(Operation operation, const Elements& of) {
  switch (operation) {
    case Operation::kAdd:
      return run<Operation::kAdd>(of);
    case Operation::kSubtract:
      return run<Operation::kSubtract>(of);
    case Operation::kMultiply:
      return run<Operation::kMultiply>(of);
  }
}

}  // namespace systole::hw::half_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole::hw {

namespace half_detail {

HWY_EXPORT(elements);

namespace {

void run(Operation operation, const Half* a, const Half* b, bool scalar, std::size_t n, Half* y) {
  if (n != 0) HWY_DYNAMIC_DISPATCH(elements)(operation, {a, b, scalar, n, y});
}

}  // namespace
}  // namespace half_detail

namespace half_vector {

using half_detail::Operation;

void add(const Half* a, const Half* b, std::size_t n, Half* y) {
  half_detail::run(Operation::kAdd, a, b, false, n, y);
}
void add(const Half* a, Half b, std::size_t n, Half* y) {
  half_detail::run(Operation::kAdd, a, &b, true, n, y);
}
void subtract(const Half* a, const Half* b, std::size_t n, Half* y) {
  half_detail::run(Operation::kSubtract, a, b, false, n, y);
}
void subtract(const Half* a, Half b, std::size_t n, Half* y) {
  half_detail::run(Operation::kSubtract, a, &b, true, n, y);
}
void multiply(const Half* a, const Half* b, std::size_t n, Half* y) {
  half_detail::run(Operation::kMultiply, a, b, false, n, y);
}
void multiply(const Half* a, Half b, std::size_t n, Half* y) {
  half_detail::run(Operation::kMultiply, a, &b, true, n, y);
}

Half accumulate(const Half* x, std::size_t n, std::size_t width) {
  if (width < 2 || (width & (width - 1)) != 0 || width > half_detail::kMaxDepth) {
    throw std::invalid_argument("half_vector: width is not a power of two, 2 to 128");
  }
  if (n == 0) return kHalfZero;
  std::vector<Half> sums(x, x + n);  // of one pass through the tree, the elements of the next
  do {
    std::size_t count = 0;
    for (std::size_t i = 0; i < sums.size(); i += width) {
      Half level[half_detail::kMaxDepth] = {};
      std::copy_n(sums.data() + i, std::min(width, sums.size() - i), level);
      for (std::size_t half = width / 2; half > 0; half /= 2) add(level, level + half, half, level);
      sums[count++] = level[0];
    }
    sums.resize(count);
  } while (sums.size() > 1);
  return sums.front();
}

}  // namespace half_vector
}  // namespace systole::hw
#endif

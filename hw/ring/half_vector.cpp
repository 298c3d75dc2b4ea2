#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hw/ring/half_vector.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "hw/ring/half_kernels.h"
#include "hw/ring/half_simd-inl.h"
#include "hw/ring/half_vector.h"

HWY_BEFORE_NAMESPACE();
namespace systole::hw::half_detail::HWY_NAMESPACE {

using half_vector::Elements;
using half_vector::Operation;

#if SYSTOLE_HALF_VECTORS

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

template <Operation kOperation>
HWY_INLINE V result(V a, V b) {
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
    store_halves(d, round_to_half(d, result<kOperation>(load_halves(d, a), other)), y);
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

void apply(Operation operation, const Elements& of) {
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
namespace {

HWY_EXPORT(apply);

void dispatch(half_vector::Operation operation, const half_vector::Elements& elements) {
  HWY_DYNAMIC_DISPATCH(apply)(operation, elements);
}

}  // namespace
}  // namespace half_detail

void half_vector::apply(Operation operation, const Elements& elements) {
  if (elements.n != 0) half_detail::dispatch(operation, elements);
}

Half half_vector::accumulate(const Half* x, std::size_t n, std::size_t width) {
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

}  // namespace systole::hw
#endif

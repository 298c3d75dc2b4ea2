#pragma once

#include <cstddef>
#include <cstdint>

#include "hw/number/half.h"

/// The loops of a vector unit over halves, vectorised. Values are those of the scalar functions of
/// hw/number/half.h, bit for bit.
namespace systole::hw::half_vector {

enum class Operation : std::uint8_t { kAdd, kSubtract, kMultiply };

/// y[i] = a[i] op b[i] for n elements, or a[i] op b[0] where b is a scalar. y may be a or b itself,
/// but must not overlap them otherwise.
struct Elements {
  const Half* a;
  const Half* b;
  bool scalar;  ///< b is one element
  std::size_t n;
  Half* y;
};

void apply(Operation operation, const Elements& elements);

inline void add(const Half* a, const Half* b, std::size_t n, Half* y) {
  apply(Operation::kAdd, {a, b, false, n, y});
}
inline void add(const Half* a, Half b, std::size_t n, Half* y) {
  apply(Operation::kAdd, {a, &b, true, n, y});
}
/// a - b.
inline void subtract(const Half* a, const Half* b, std::size_t n, Half* y) {
  apply(Operation::kSubtract, {a, b, false, n, y});
}
inline void subtract(const Half* a, Half b, std::size_t n, Half* y) {
  apply(Operation::kSubtract, {a, &b, true, n, y});
}
inline void multiply(const Half* a, const Half* b, std::size_t n, Half* y) {
  apply(Operation::kMultiply, {a, b, false, n, y});
}
inline void multiply(const Half* a, Half b, std::size_t n, Half* y) {
  apply(Operation::kMultiply, {a, &b, true, n, y});
}

/// The sum of n halves in a unit with a tree of `width` inputs (a power of two, 2 to 128), +0 for
/// none: each `width` of them, the last ones filled up with +0, go through the tree, which adds
/// elements i and i + width / 2 first. Its sums are elements for the tree again, until one is left.
[[nodiscard]] Half accumulate(const Half* x, std::size_t n, std::size_t width = 64);

/// Cycle contract of a unit that takes `lanes` elements a cycle, for n elements from the first that
/// enter to the last that leave `depth` cycles later; 0 for none.
constexpr std::uint64_t cycles(std::uint64_t n, std::uint32_t lanes, std::uint32_t depth) {
  return n == 0 ? 0 : (n + lanes - 1) / lanes + depth;
}

}  // namespace systole::hw::half_vector

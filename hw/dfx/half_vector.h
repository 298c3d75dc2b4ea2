#pragma once

#include <cstddef>

#include "hw/half.h"

/// The loops of a vector unit over n halves, vectorised. Values are those of the scalar functions
/// of hw/half.h, bit for bit. `y` may be an operand itself, but must not overlap one otherwise.
namespace systole::hw::half_vector {

void add(const Half* a, const Half* b, std::size_t n, Half* y);
void add(const Half* a, Half b, std::size_t n, Half* y);
/// a - b.
void subtract(const Half* a, const Half* b, std::size_t n, Half* y);
void subtract(const Half* a, Half b, std::size_t n, Half* y);
void multiply(const Half* a, const Half* b, std::size_t n, Half* y);
void multiply(const Half* a, Half b, std::size_t n, Half* y);

/// The sum of n halves in a unit with a tree of `width` inputs (a power of two, 2 to 128), +0 for
/// none: each `width` of them, the last ones filled up with +0, go through the tree, which adds
/// elements i and i + width / 2 first. Its sums are elements for the tree again, until one is left.
[[nodiscard]] Half accumulate(const Half* x, std::size_t n, std::size_t width = 64);

}  // namespace systole::hw::half_vector

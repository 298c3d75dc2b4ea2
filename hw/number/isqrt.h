#pragma once

#include <cstdint>

#include "hw/number/integer.h"
#include "hw/number/serial_unit.h"

namespace systole::hw {

/// floor(sqrt(n)) and the Newton passes spent, the terminating one included (0 for n = 0).
struct IntSqrt {
  std::uint32_t root;
  unsigned passes;
};

/// Upper bound of IntSqrt::passes for every 64-bit n, the latency a fixed-time unit must provide.
/// The start is at most twice the root, so the relative error falls as 1, 2.5e-1, 2.5e-2, 3.0e-4,
/// 4.6e-8, 1.1e-15: five passes come within one of any 32-bit root, one may be spent on that last
/// step and one finds no decrease. First reached at n = 1125899973951488 (51 bits).
inline constexpr unsigned kMaxIntSqrtPasses = 7;

/// The same for n < 2^48, the width of a LayerNorm accumulator: the most over k^2 - 1, k^2, k^2 + 1
/// and k^2 + 2k for every k < 2^24. First reached at n = 16785408 (25 bits).
inline constexpr unsigned kMaxIntSqrtPasses48Bit = 6;

/// Newton's integer square root (I-BERT, arXiv 2101.01321, algorithm 4): start at 2^ceil(bits/2),
/// x = floor((x + floor(n / x)) / 2), return the last value before x stops decreasing.
constexpr IntSqrt int_sqrt(std::uint64_t n) {
  if (n == 0) return {0, 0};
  std::uint64_t x = std::uint64_t{1} << ((bit_length(n) + 1) / 2);
  for (unsigned passes = 1;; ++passes) {
    const std::uint64_t next = (x + n / x) / 2;
    if (next >= x) return {static_cast<std::uint32_t>(x), passes};
    x = next;
  }
}

/// Cycles of one root in the unit. It finds the same root two bits per cycle, not by Newton's
/// passes, whose divisions would take longer.
inline constexpr std::uint32_t kIntSqrtCycles = serial_cycles(32);

/// Cycle contract of the unit on its own for `count` roots, from the first number to the last root.
constexpr std::uint64_t int_sqrt_cycles(std::uint64_t count) {
  return count == 0 ? 0 : count * kIntSqrtCycles + 1;
}

}  // namespace systole::hw

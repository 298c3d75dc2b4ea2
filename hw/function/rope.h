#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "hw/number/dyadic.h"
#include "hw/number/integer.h"
#include "hw/number/unit_depths.h"

/// Rotary position embedding (Su et al. 2021, arXiv 2104.09864): adjacent features (2i, 2i + 1) of
/// the row at position p turn by the angle p f(i), where f(i) = base^(-2i / dims) unless a network
/// scales it.
namespace systole::hw {

/// Inputs saturate to this width, so that both products and their sum keep within 56 bits for any
/// table.
inline constexpr unsigned kRopeInputBits = 24;
/// Of the table's entries.
inline constexpr unsigned kRopeFractionBits = 15;
inline constexpr double kRopeBase = 10000;

/// Features 2i and 2i + 1 of a row, or their cosine and sine in a row of the table.
struct RopePair {
  std::int32_t even;
  std::int32_t odd;
};

/// Turns x by the angle whose cosine and sine are `angle`; both results are divided by 2^shift
/// (0 to 63), rounded, and clamped to `limits`, which lie within s32.
constexpr RopePair rope(RopePair x, RopePair angle, unsigned shift, Rounding rounding,
                        IntRange limits) {
  const std::int64_t even = saturate(x.even, full_range(kRopeInputBits));
  const std::int64_t odd = saturate(x.odd, full_range(kRopeInputBits));
  const std::int64_t turned_even = even * angle.even - odd * angle.odd;
  const std::int64_t turned_odd = even * angle.odd + odd * angle.even;
  return {static_cast<std::int32_t>(saturate(shift_right(turned_even, shift, rounding), limits)),
          static_cast<std::int32_t>(saturate(shift_right(turned_odd, shift, rounding), limits))};
}

/// Radians by which each pair of `dims` features turns from a position to the next, [dims / 2].
/// Throws std::invalid_argument unless dims is even.
inline std::vector<double> rope_frequencies(std::size_t dims, double base = kRopeBase) {
  if (dims % 2 != 0) throw std::invalid_argument("rope: expected an even number of features");
  std::vector<double> frequencies;
  for (std::size_t i = 0; i < dims; i += 2) {
    frequencies.push_back(std::pow(base, -static_cast<double>(i) / static_cast<double>(dims)));
  }
  return frequencies;
}

/// Table [positions][2 frequencies]: row p holds the cosine and the sine of each pair's angle in
/// turn, with kRopeFractionBits, 1 itself one step short.
inline std::vector<std::int16_t> make_rope_table(std::size_t positions,
                                                 const std::vector<double>& frequencies) {
  const auto code = [](double value) {
    const double steps = std::ldexp(value, static_cast<int>(kRopeFractionBits));
    return static_cast<std::int16_t>(std::min(std::nearbyint(steps), 32767.0));
  };
  std::vector<std::int16_t> table;
  table.reserve(2 * positions * frequencies.size());
  for (std::size_t p = 0; p < positions; ++p) {
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(p) * frequency;
      table.push_back(code(std::cos(angle)));
      table.push_back(code(std::sin(angle)));
    }
  }
  return table;
}

/// Pipeline depth of the stage: saturation; products; their sum; shift and clamp.
inline constexpr std::uint32_t kRopeLatency =
    unit_depth::kClamp + unit_depth::kAdd + unit_depth::kRequantise;

}  // namespace systole::hw

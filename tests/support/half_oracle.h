#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "hw/number/half.h"

/// Half precision by integers alone, as an independent reference, and operands to compare on.
namespace systole::test {

/// The half nearest to n * 2^-(24 + extra), ties to even; n < 2^62, extra <= 2.
inline std::uint16_t half_of_units(std::uint64_t n, unsigned extra) {
  unsigned shift = extra;
  while (n >> shift >= 1U << 22) shift += 11;
  while (n >> shift >= 1U << 11) ++shift;
  std::uint64_t kept = n >> shift;
  const std::uint64_t rest = n - (kept << shift);
  const std::uint64_t doubled = rest * 2;
  const std::uint64_t step = std::uint64_t{1} << shift;
  if (doubled > step || (doubled == step && (kept & 1) != 0)) ++kept;
  // With an exponent of e above the lowest, the bits are those of kept plus e times 2^10.
  const std::uint64_t bits = kept + (std::uint64_t{shift - extra} << 10);
  return static_cast<std::uint16_t>(bits < 0x7c00 ? bits : 0x7c00);
}

/// A finite half is (-1)^sign * significand * 2^(exponent - 24).
struct HalfParts {
  explicit HalfParts(hw::Half x)
      : negative(x.bits >> 15 != 0),
        infinite((x.bits & 0x7fff) == 0x7c00),
        nan((x.bits & 0x7fff) > 0x7c00) {
    const unsigned field = x.bits >> 10 & 31;
    exponent = field == 0 ? 0 : field - 1;
    significand = (x.bits & 0x3ffU) + (field == 0 ? 0 : 0x400U);
  }
  bool negative, infinite, nan;
  unsigned exponent;
  std::uint64_t significand;
};

inline hw::Half signed_half(bool negative, std::uint16_t magnitude) {
  return {static_cast<std::uint16_t>(magnitude | (negative ? 0x8000 : 0))};
}

inline hw::Half oracle_add(hw::Half x, hw::Half y) {
  const HalfParts a(x);
  const HalfParts b(y);
  if (a.nan || b.nan) return {0x7e00};
  if (a.infinite && b.infinite && a.negative != b.negative) return {0x7e00};
  if (a.infinite) return x;
  if (b.infinite) return y;
  const auto units = [](const HalfParts& part) {
    const auto magnitude = static_cast<std::int64_t>(part.significand << part.exponent);
    return part.negative ? -magnitude : magnitude;
  };
  const std::int64_t sum = units(a) + units(b);
  if (sum == 0) return signed_half(a.negative && b.negative, 0);
  return signed_half(sum < 0, half_of_units(static_cast<std::uint64_t>(sum < 0 ? -sum : sum), 0));
}

inline hw::Half oracle_mul(hw::Half x, hw::Half y) {
  const HalfParts a(x);
  const HalfParts b(y);
  const bool negative = a.negative != b.negative;
  if (a.nan || b.nan) return {0x7e00};
  if (a.infinite || b.infinite) {
    const bool zero = (!a.infinite && a.significand == 0) || (!b.infinite && b.significand == 0);
    return zero ? hw::Half{0x7e00} : signed_half(negative, 0x7c00);
  }
  // In units of 2^-26, what is below as one sticky bit: the result's last bit is at least four.
  const std::uint64_t product = a.significand * b.significand;
  const unsigned exponent = a.exponent + b.exponent;
  std::uint64_t units = 0;
  if (exponent >= 22) {
    units = product << (exponent - 22);
  } else {
    const unsigned dropped = 22 - exponent;
    units = product >> dropped;
    if (units << dropped != product) units |= 1;
  }
  return signed_half(negative, half_of_units(units, 2));
}

inline hw::Half random_half(std::mt19937_64& random) {
  return {static_cast<std::uint16_t>(random())};
}

/// Where rules change: zeros, subnormals, the normals beside them, one, the largest, infinity, NaN.
inline std::vector<hw::Half> special_halves() {
  std::vector<hw::Half> halves;
  for (const int magnitude :
       {0x0000, 0x0001, 0x0002, 0x0003, 0x0155, 0x01ff, 0x0200, 0x0201, 0x03fe, 0x03ff,
        0x0400, 0x0401, 0x07ff, 0x0800, 0x0801, 0x13ff, 0x1400, 0x1401, 0x2bff, 0x2c00,
        0x2c01, 0x3800, 0x3bff, 0x3c00, 0x3c01, 0x3fff, 0x4000, 0x63ff, 0x6400, 0x77ff,
        0x7800, 0x7801, 0x7bfe, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7fff}) {
    halves.push_back({static_cast<std::uint16_t>(magnitude)});
    halves.push_back({static_cast<std::uint16_t>(magnitude | 0x8000)});
  }
  return halves;
}

struct HalfPairs {
  std::vector<hw::Half> a, b;
  void push(hw::Half x, hw::Half y) {
    a.push_back(x);
    b.push_back(y);
  }
};

/// Every special with every other, and every pair of signs and exponents `repeats` times with
/// random fractions, a few of them all zeros or all ones.
inline HalfPairs half_corner_pairs(std::mt19937_64& random, std::size_t repeats) {
  HalfPairs pairs;
  const std::vector<hw::Half> specials = special_halves();
  for (const hw::Half x : specials) {
    for (const hw::Half y : specials) pairs.push(x, y);
  }
  const auto fraction = [&random] {
    const std::uint64_t bits = random();
    const auto any = static_cast<unsigned>(bits & 0x3ff);
    return bits >> 61 == 0 ? 0U : bits >> 61 == 1 ? 0x3ffU : any;
  };
  for (unsigned x = 0; x < 64; ++x) {
    for (unsigned y = 0; y < 64; ++y) {
      for (std::size_t i = 0; i < repeats; ++i) {
        pairs.push({static_cast<std::uint16_t>(x << 10 | fraction())},
                   {static_cast<std::uint16_t>(y << 10 | fraction())});
      }
    }
  }
  return pairs;
}

}  // namespace systole::test

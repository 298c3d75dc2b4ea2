#pragma once

#include <algorithm>
#include <cstdint>

/// Integer helpers shared by the datapath functions.
namespace systole::hw {

/// 128-bit product of the I-BERT modes, whose folded exponent and GELU products pass 64 bits.
__extension__ typedef __int128 Int128;

static_assert((std::int64_t{-3} >> 1) == -2, "the datapath relies on arithmetic right shifts");

/// Closed interval of codes a register of the datapath can hold.
struct IntRange {
  std::int64_t lo;
  std::int64_t hi;
};

/// Signed codes without the most negative one, [-(2^(b-1)-1), 2^(b-1)-1], for 2 <= bits <= 63: the
/// default datapath is symmetric, so negation never overflows.
constexpr IntRange symmetric_range(unsigned bits) {
  const std::int64_t hi = (std::int64_t{1} << (bits - 1)) - 1;
  return {-hi, hi};
}

/// All two's complement codes, [-2^(b-1), 2^(b-1)-1], for 2 <= bits <= 63 (I-BERT's clamp).
constexpr IntRange full_range(unsigned bits) {
  const std::int64_t hi = (std::int64_t{1} << (bits - 1)) - 1;
  return {-hi - 1, hi};
}

/// Unsigned codes, [0, 2^b-1], for 1 <= bits <= 62.
constexpr IntRange unsigned_range(unsigned bits) { return {0, (std::int64_t{1} << bits) - 1}; }

constexpr std::int64_t saturate(std::int64_t x, IntRange range) {
  return std::clamp(x, range.lo, range.hi);
}

/// Position of the highest one plus one: 0 for 0, 64 for 2^63 and above.
constexpr unsigned bit_length(std::uint64_t x) {
  unsigned bits = 0;
  for (; x != 0; x >>= 1) ++bits;
  return bits;
}

/// Two's complement bits of a signed value: 1 for 0 and -1, 8 for -128 and 127.
constexpr unsigned signed_bits(std::int64_t x) {
  return bit_length(static_cast<std::uint64_t>(x < 0 ? ~x : x)) + 1;
}

/// Quotient rounded toward minus infinity, for divisor > 0.
constexpr std::int64_t floor_divide(std::int64_t dividend, std::int64_t divisor) {
  const std::int64_t quotient = dividend / divisor;
  return dividend % divisor < 0 ? quotient - 1 : quotient;
}

}  // namespace systole::hw

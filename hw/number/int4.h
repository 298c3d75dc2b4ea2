#pragma once

#include <cstddef>
#include <cstdint>

/// Operands of four bits that an array with a split multiplier (Machine::Array::split) multiplies
/// as they are, several in a cycle: their range, their place in memory.
///
/// A pair is two neighbours along k; k may be odd, then the last pair has a zero. A pair is a byte,
/// the first of the two in its low half. So a matrix of k x n weights is one of int4_pairs(k) x n
/// bytes, and stored transposed one of n x int4_pairs(k); one of m x k activations is one of
/// m x int4_pairs(k).
namespace systole::hw {

inline constexpr int kLeastInt4 = -8, kLargestInt4 = 7;
/// Operands of a byte.
inline constexpr std::uint32_t kInt4Pair = 2;

[[nodiscard]] constexpr bool is_int4(std::int8_t value) {
  return value >= kLeastInt4 && value <= kLargestInt4;
}

/// The int4 that is closest to an int8.
[[nodiscard]] constexpr std::uint8_t saturate_int4(std::uint8_t value) {
  const int code = static_cast<std::int8_t>(value);
  return static_cast<std::uint8_t>(code < kLeastInt4     ? kLeastInt4
                                   : code > kLargestInt4 ? kLargestInt4
                                                         : code);
}

/// Pairs along k.
template <typename T>
[[nodiscard]] constexpr T int4_pairs(T k) {
  return k / kInt4Pair + k % kInt4Pair;
}
/// Bytes of so many neighbours of `element` bytes each, or of int4 in pairs.
template <typename T>
[[nodiscard]] constexpr T stored_bytes(T count, bool int4, T element = 1) {
  return int4 ? int4_pairs(count) : count * element;
}

/// Which operands of a product are pairs of int4; A alone never is.
struct Int4Operands {
  bool a = false, b = false;

  /// Products of a PE in a cycle, all of one sum: neighbours along k.
  [[nodiscard]] constexpr std::uint32_t macs() const {
    return !b ? 1 : a ? kInt4Pair * kInt4Pair : kInt4Pair;
  }
  [[nodiscard]] bool operator==(const Int4Operands& other) const {
    return a == other.a && b == other.b;
  }
};

/// Rows and bytes of a row of `rows` x `cols` weights in memory: pairs along the rows if k is along
/// them (`transposed`, and activations), else along the columns; as they are if they are int8.
struct StoredShape {
  std::uint32_t rows = 0, cols = 0;
};
[[nodiscard]] constexpr StoredShape stored_shape(std::uint32_t rows, std::uint32_t cols,
                                                 bool transposed, bool int4) {
  return transposed ? StoredShape{rows, stored_bytes(cols, int4)}
                    : StoredShape{stored_bytes(rows, int4), cols};
}

/// Packs `rows` x `cols` values, rows `pitch` bytes apart, to rows `to_pitch` bytes apart; pairs
/// are neighbours along the rows if `along_rows`, else along the columns. Throws
/// std::invalid_argument for a value that is no int4.
void pack_int4(const std::uint8_t* values, std::size_t pitch, std::size_t rows, std::size_t cols,
               bool along_rows, std::uint8_t* to, std::size_t to_pitch);

/// The opposite: to `rows` x `cols` values.
void expand_int4(const std::uint8_t* packed, std::size_t pitch, std::size_t rows, std::size_t cols,
                 bool along_rows, std::int8_t* to, std::size_t to_pitch);

}  // namespace systole::hw

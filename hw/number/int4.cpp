#include "hw/number/int4.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace systole::hw {
namespace {

constexpr unsigned kHalfBits = 4, kHalfMask = 0xf;

unsigned half_of(std::uint8_t value) {
  if (!is_int4(static_cast<std::int8_t>(value))) {
    throw std::invalid_argument("value " + std::to_string(static_cast<std::int8_t>(value)) +
                                " has more than four bits");
  }
  return value & kHalfMask;
}

std::int8_t low_half(std::uint8_t pair) {
  return static_cast<std::int8_t>(static_cast<std::int8_t>(pair << kHalfBits) >> kHalfBits);
}
std::int8_t high_half(std::uint8_t pair) {
  return static_cast<std::int8_t>(static_cast<std::int8_t>(pair) >> kHalfBits);
}

}  // namespace

void pack_int4(const std::uint8_t* values, std::size_t pitch, std::size_t rows, std::size_t cols,
               bool along_rows, std::uint8_t* to, std::size_t to_pitch) {
  const std::size_t row_step = along_rows ? 1 : kInt4Pair;
  const std::size_t col_step = along_rows ? kInt4Pair : 1;
  for (std::size_t r = 0; r < rows; r += row_step, to += to_pitch) {
    for (std::size_t c = 0, i = 0; c < cols; c += col_step, ++i) {
      const std::size_t next_row = along_rows ? r : r + 1, next_col = along_rows ? c + 1 : c;
      const unsigned low = half_of(values[r * pitch + c]);
      const unsigned high =
          next_row < rows && next_col < cols ? half_of(values[next_row * pitch + next_col]) : 0;
      to[i] = static_cast<std::uint8_t>(low | high << kHalfBits);
    }
  }
}

void expand_int4(const std::uint8_t* packed, std::size_t pitch, std::size_t rows, std::size_t cols,
                 bool along_rows, std::int8_t* to, std::size_t to_pitch) {
  for (std::size_t r = 0; r < rows; ++r, to += to_pitch) {
    const std::uint8_t* const from = packed + (along_rows ? r : r / kInt4Pair) * pitch;
    if (along_rows) {
      for (std::size_t c = 0; c < cols; ++c) {
        const std::uint8_t pair = from[c / kInt4Pair];
        to[c] = c % kInt4Pair == 0 ? low_half(pair) : high_half(pair);
      }
    } else {
      std::transform(from, from + cols, to, r % kInt4Pair == 0 ? low_half : high_half);
    }
  }
}

}  // namespace systole::hw

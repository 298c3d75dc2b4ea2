#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/rtl/drive/unit_test.h"

/// Rows for the units that pass over a whole row.
namespace systole::testbench {

/// A row of one character: words of any length, words of one length around an offset, one value
/// throughout, one value but for one element, or nothing but the extremes.
inline std::vector<std::int32_t> random_row(std::mt19937_64& random, std::size_t cols) {
  const std::int32_t offset = random_word(random);
  std::vector<std::int32_t> row(cols, offset);
  const unsigned kind = static_cast<unsigned>(random() % 8);
  if (kind == 0) return row;
  if (kind == 1) {
    row[random() % cols] = random_word(random);
    return row;
  }
  const auto width = static_cast<unsigned>(random() % 31);
  for (std::int32_t& word : row) {
    const std::uint64_t bits = random();
    if (kind == 2) {
      word = bits % 2 == 0 ? std::numeric_limits<std::int32_t>::min()
                           : std::numeric_limits<std::int32_t>::max();
    } else if (kind == 3) {
      word = random_word(random);
    } else {
      const std::int64_t sum =
          std::int64_t{offset} + static_cast<std::int32_t>(bits >> 32 >> width);
      word = static_cast<std::int32_t>(std::min<std::int64_t>(sum, 2147483647));
    }
  }
  return row;
}

inline std::vector<std::int32_t> random_rows(std::mt19937_64& random, std::size_t rows,
                                             std::size_t cols) {
  std::vector<std::int32_t> words;
  words.reserve(rows * cols);
  for (std::size_t i = 0; i < rows; ++i) {
    const std::vector<std::int32_t> row = random_row(random, cols);
    words.insert(words.end(), row.begin(), row.end());
  }
  return words;
}

/// Lengths of all magnitudes up to `most`, lengths of 1 and those around multiples of 16 often.
inline std::size_t random_length(std::mt19937_64& random, std::size_t most) {
  const std::size_t length = 1 + (random() >> 32) % most;
  switch (random() % 4) {
    case 0:
      return 1 + length % 20;
    case 1:
      return std::clamp<std::size_t>(length / 16 * 16 + random() % 3, 2, most + 1) - 1;
    default:
      return length;
  }
}

}  // namespace systole::testbench

#include "hw/number/int4.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

namespace systole::hw {
namespace {

TEST(Int4, ArePairsAlongKWithTheFirstInTheLowHalf) {
  // Three rows of two: k down the columns.
  const std::vector<std::uint8_t> weights = {1, 0xf8, 7, 0xff, 0xfe, 3};
  std::vector<std::uint8_t> down(4), across(3);
  pack_int4(weights.data(), 2, 3, 2, false, down.data(), 2);
  EXPECT_EQ(down, (std::vector<std::uint8_t>{0x71, 0xf8, 0x0e, 0x03}));
  // The same bytes as three rows with k along them.
  pack_int4(weights.data(), 2, 3, 2, true, across.data(), 1);
  EXPECT_EQ(across, (std::vector<std::uint8_t>{0x81, 0xf7, 0x3e}));
}

TEST(Int4, ComeBackFromTheirPairsInAnyShape) {
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    const std::size_t rows = 1 + random() % 20, cols = 1 + random() % 20;
    const std::size_t pitch = cols + random() % 3;
    const bool along_rows = random() % 2 != 0;
    std::vector<std::uint8_t> weights(rows * pitch);
    for (std::uint8_t& weight : weights) {
      weight = static_cast<std::uint8_t>(static_cast<int>(random() % 16) + kLeastInt4);
    }
    const StoredShape stored = stored_shape(static_cast<std::uint32_t>(rows),
                                            static_cast<std::uint32_t>(cols), along_rows, true);
    EXPECT_EQ(stored.rows, along_rows ? rows : (rows + 1) / 2);
    EXPECT_EQ(stored.cols, along_rows ? (cols + 1) / 2 : cols);
    const std::size_t packed_pitch = stored.cols + random() % 3;
    std::vector<std::uint8_t> packed(stored.rows * packed_pitch, 0xa5);
    pack_int4(weights.data(), pitch, rows, cols, along_rows, packed.data(), packed_pitch);
    std::vector<std::int8_t> expanded(rows * cols);
    expand_int4(packed.data(), packed_pitch, rows, cols, along_rows, expanded.data(), cols);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < cols; ++c) {
        ASSERT_EQ(expanded[r * cols + c], static_cast<std::int8_t>(weights[r * pitch + c]));
      }
      for (std::size_t c = stored.cols; r < stored.rows && c < packed_pitch; ++c) {
        ASSERT_EQ(packed[r * packed_pitch + c], 0xa5) << "between the rows";
      }
    }
  }
}

TEST(Int4, RefusesWeightsOfMoreBits) {
  std::uint8_t pair = 0;
  for (int weight = -128; weight < 128; ++weight) {
    const auto byte = static_cast<std::uint8_t>(weight);
    if (weight >= -8 && weight <= 7) {
      EXPECT_NO_THROW(pack_int4(&byte, 1, 1, 1, true, &pair, 1));
    } else {
      EXPECT_THROW(pack_int4(&byte, 1, 1, 1, true, &pair, 1), std::invalid_argument) << weight;
    }
  }
}

}  // namespace
}  // namespace systole::hw

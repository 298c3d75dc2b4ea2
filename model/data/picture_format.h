#pragma once

#include <cstdint>

namespace systole::model {

/// Levels of a sample of the UCI handwritten digits, 0 to 16, and of a byte.
inline constexpr std::uint32_t kDigitLevels = 17;
inline constexpr std::uint32_t kByteLevels = 256;

/// The pictures that a vision model takes; by default the digits.
struct PictureFormat {
  std::uint32_t channels = 1;
  std::uint32_t side = 8;  ///< pixels: pictures are square
  std::uint32_t levels = kDigitLevels;
  std::uint32_t classes = 10;  ///< labels are less
};

}  // namespace systole::model

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace systole::model {

/// A picture of one channel, row-major: height x width integers.
struct Image {
  std::size_t height = 0;
  std::size_t width = 0;
  std::vector<std::int32_t> values;
};

/// The largest pixel value of the UCI handwritten digits, the pictures that the vision models read.
inline constexpr std::int32_t kMaxPixel = 16;

/// The integer input of a vision model, 0..127, that stands for value / 127: from pixels
/// 0..kMaxPixel. `up` 1 keeps the size: min(8 * pixel, 127). `up` 2 doubles both sides by bilinear
/// interpolation in integers: each output pixel is the mean of its four nearest input pixels,
/// weighted 9, 3, 3, 1 (the edge is repeated outwards); the weighted sum, 0..256, is halved with
/// ties up and cut at 127. Throws `std::invalid_argument` for any other `up`.
Image preprocess(const Image& image, int up);

/// The square patches of an image, [n, patch * patch]: patches row by row, and each patch row by
/// row. Throws `std::invalid_argument` if `patch` is 0 or does not divide both sides.
std::vector<std::int32_t> patchify(const Image& image, std::size_t patch);

}  // namespace systole::model

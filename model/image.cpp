#include "model/image.h"

#include <algorithm>
#include <stdexcept>

namespace systole::model {
namespace {

constexpr std::int32_t kMaxInput = 127;

Image scaled(const Image& image) {
  constexpr std::int32_t kGain = 8;
  Image result = image;
  for (std::int32_t& value : result.values) value = std::min(kGain * value, kMaxInput);
  return result;
}

/// The neighbour of `index` on the side of the output position: before an even one, after an odd
/// one; the edge is its own neighbour.
std::size_t neighbour(std::size_t index, std::size_t output, std::size_t extent) {
  if (output % 2 == 0) return index == 0 ? 0 : index - 1;
  return std::min(index + 1, extent - 1);
}

Image doubled(const Image& image) {
  const auto at = [&](std::size_t y, std::size_t x) { return image.values[y * image.width + x]; };
  Image result{2 * image.height, 2 * image.width, {}};
  result.values.reserve(4 * image.values.size());
  for (std::size_t row = 0; row < result.height; ++row) {
    const std::size_t y = row / 2;
    const std::size_t near_y = neighbour(y, row, image.height);
    for (std::size_t column = 0; column < result.width; ++column) {
      const std::size_t x = column / 2;
      const std::size_t near_x = neighbour(x, column, image.width);
      const std::int32_t sum =
          9 * at(y, x) + 3 * at(near_y, x) + 3 * at(y, near_x) + at(near_y, near_x);
      result.values.push_back(std::min((sum + 1) / 2, kMaxInput));
    }
  }
  return result;
}

}  // namespace

Image preprocess(const Image& image, int up) {
  if (up == 1) return scaled(image);
  if (up == 2) return doubled(image);
  throw std::invalid_argument("preprocess: up must be 1 or 2");
}

std::vector<std::int32_t> patchify(const Image& image, std::size_t patch) {
  if (patch == 0 || image.height % patch != 0 || image.width % patch != 0) {
    throw std::invalid_argument("patchify: the patch must divide both sides of the image");
  }
  std::vector<std::int32_t> patches;
  patches.reserve(image.values.size());
  for (std::size_t top = 0; top < image.height; top += patch) {
    for (std::size_t left = 0; left < image.width; left += patch) {
      for (std::size_t row = top; row < top + patch; ++row) {
        const auto begin =
            image.values.begin() + static_cast<std::ptrdiff_t>(row * image.width + left);
        patches.insert(patches.end(), begin, begin + static_cast<std::ptrdiff_t>(patch));
      }
    }
  }
  return patches;
}

}  // namespace systole::model

#include "model/data/image.h"

#include <algorithm>
#include <stdexcept>

namespace systole::model {
namespace {

constexpr std::int32_t kMaxInput = 127;
/// The sum of the weights of an interpolation.
constexpr std::int32_t kWeights = 16;

/// The input for `sum` / kWeights of a sample.
std::int32_t code_of(std::int32_t sum, SampleCode code) {
  const std::int32_t scaled = (code.gain * sum + kWeights / 2) / kWeights;  // both are positive
  return std::min(scaled - code.offset, kMaxInput);
}

/// The neighbour of `index` on the side of the output position: before an even one, after an odd
/// one; the edge is its own neighbour.
std::size_t neighbour(std::size_t index, std::size_t output, std::size_t extent) {
  if (output % 2 == 0) return index == 0 ? 0 : index - 1;
  return std::min(index + 1, extent - 1);
}

Image doubled(const Image& image, SampleCode code) {
  Image result{image.channels, 2 * image.height, 2 * image.width, {}};
  result.values.reserve(4 * image.values.size());
  for (std::size_t channel = 0; channel < image.channels; ++channel) {
    const std::int32_t* const plane = &image.values[channel * image.height * image.width];
    const auto at = [&](std::size_t y, std::size_t x) { return plane[y * image.width + x]; };
    for (std::size_t row = 0; row < result.height; ++row) {
      const std::size_t y = row / 2;
      const std::size_t near_y = neighbour(y, row, image.height);
      for (std::size_t column = 0; column < result.width; ++column) {
        const std::size_t x = column / 2;
        const std::size_t near_x = neighbour(x, column, image.width);
        const std::int32_t sum =
            9 * at(y, x) + 3 * at(near_y, x) + 3 * at(y, near_x) + at(near_y, near_x);
        result.values.push_back(code_of(sum, code));
      }
    }
  }
  return result;
}

}  // namespace

SampleCode sample_code(std::uint32_t levels) {
  if (levels == kDigitLevels) return {8, 0};
  if (levels == kByteLevels) return {1, 128};
  throw std::invalid_argument("sample_code: levels must be 17 or 256");
}

Image preprocess(const Image& image, int up, std::uint32_t levels) {
  const SampleCode code = sample_code(levels);
  if (up == 2) return doubled(image, code);
  if (up != 1) throw std::invalid_argument("preprocess: up must be 1 or 2");
  Image result = image;
  for (std::int32_t& value : result.values) value = code_of(kWeights * value, code);
  return result;
}

std::vector<std::int32_t> patchify(const Image& image, std::size_t patch) {
  if (patch == 0 || image.height % patch != 0 || image.width % patch != 0) {
    throw std::invalid_argument("patchify: the patch must divide both sides of the image");
  }
  std::vector<std::int32_t> patches;
  patches.reserve(image.values.size());
  for (std::size_t top = 0; top < image.height; top += patch) {
    for (std::size_t left = 0; left < image.width; left += patch) {
      for (std::size_t channel = 0; channel < image.channels; ++channel) {
        for (std::size_t y = 0; y < patch; ++y) {
          const std::size_t row = channel * image.height + top + y;
          const auto begin =
              image.values.begin() + static_cast<std::ptrdiff_t>(row * image.width + left);
          patches.insert(patches.end(), begin, begin + static_cast<std::ptrdiff_t>(patch));
        }
      }
    }
  }
  return patches;
}

}  // namespace systole::model

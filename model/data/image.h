#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/data/picture_format.h"

namespace systole::model {

/// A picture: channels x height x width integers, plane after plane, row-major.
struct Image {
  std::size_t channels = 1;
  std::size_t height = 0;
  std::size_t width = 0;
  std::vector<std::int32_t> values;
};

/// How samples become the integer input of a vision model: gain * sample - offset, at most 127.
struct SampleCode {
  std::int32_t gain = 1;
  std::int32_t offset = 0;
};

/// Of kDigitLevels: 8 * sample, so 0..127. Of kByteLevels: sample - 128, so -128..127, no two
/// samples alike. Throws `std::invalid_argument` for any other number of levels.
SampleCode sample_code(std::uint32_t levels);

/// The integer input of a vision model from samples 0..`levels` - 1, by sample_code(). `up` 1 keeps
/// the size. `up` 2 doubles both sides by bilinear interpolation in integers: each output pixel is
/// the mean of its four nearest input pixels, weighted 9, 3, 3, 1 (the edge is repeated outwards),
/// times the gain, to nearest with ties up. Throws `std::invalid_argument` for any other `up`.
Image preprocess(const Image& image, int up, std::uint32_t levels);

/// The square patches of an image, [n, channels * patch * patch]: patches row by row, and each
/// patch plane by plane, row by row. Throws `std::invalid_argument` if `patch` is 0 or does not
/// divide both sides.
std::vector<std::int32_t> patchify(const Image& image, std::size_t patch);

}  // namespace systole::model

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "model/data/image.h"

namespace systole::model {

/// Pictures, all of one size.
struct Dataset {
  std::size_t count = 0;
  std::size_t channels = 1;
  std::size_t height = 0;
  std::size_t width = 0;
  std::vector<std::uint8_t> samples;  ///< [count, channels, height, width]
  std::vector<std::uint32_t> labels;  ///< [count]; empty if the labels are not known

  /// Picture `index`; `std::out_of_range` from `count` on.
  Image image(std::size_t index) const;
};

/// Throws an `InputError` that says so if pictures are not of that format, but for their levels.
void require_format(std::size_t channels, std::size_t height, std::size_t width,
                    const PictureFormat& format);

/// The *.pgm and *.ppm files of a directory, ordered by name. Sets `error` if it cannot be read.
std::vector<std::string> pictures_in(const std::string& directory, std::error_code& error);

/// Loads pictures of `format` from one of:
/// - a safetensors file with a U8 tensor `<split>_images` [n, channels, side, side], or
///   [n, side, side] of one channel, of values 0..levels - 1 and, not required, `<split>_labels`
///   [n], of kIndexDtypes, less than `classes`; or else `images` and `labels` of the same kind;
/// - a binary PGM or PPM picture; its samples are scaled from 0..maximum value to 0..levels - 1,
///   rounded to nearest with ties up, so a maximum value of levels - 1 keeps them as they are;
/// - a directory: all its `*.pgm` and `*.ppm` files, ordered by name; others are passed over.
/// Anything else, and an empty set, is an `InputError`.
Dataset load_images(const std::string& path, const PictureFormat& format,
                    const std::string& split = "test");

}  // namespace systole::model

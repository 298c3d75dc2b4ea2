#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/image.h"

namespace systole::model {

/// Pictures of handwritten digits, all of one size.
struct Dataset {
  std::size_t count = 0;
  std::size_t height = 0;
  std::size_t width = 0;
  std::vector<std::uint8_t> pixels;  ///< [count, height, width], 0..kMaxPixel
  std::vector<std::uint8_t> labels;  ///< [count], 0..9; empty if the labels are not known

  /// Picture `index`; `std::out_of_range` from `count` on.
  Image image(std::size_t index) const;
};

/// Loads pictures from one of:
/// - a safetensors file with a U8 tensor `<split>_images` [n, h, w] of values 0..16 and, not
///   required, `<split>_labels` [n] of values 0..9; or else `images` and `labels` of the same kind;
/// - a binary PGM picture of 8 x 8 pixels; its samples are scaled from 0..maximum value to 0..16,
///   rounded to nearest with ties up, so a maximum value of 16 keeps them as they are;
/// - a directory: all its `*.pgm` files, ordered by name; other files are passed over.
/// Anything else, and an empty set, is an `InputError`.
Dataset load_images(const std::string& path, const std::string& split = "test");

}  // namespace systole::model

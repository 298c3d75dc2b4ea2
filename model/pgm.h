#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace systole::model {

/// A grey picture file: height x width samples of 0..max_value, row-major.
struct Pgm {
  std::size_t height = 0;
  std::size_t width = 0;
  unsigned max_value = 0;
  std::vector<std::uint8_t> samples;
};

/// Whether the bytes begin like a binary PGM file.
bool looks_like_pgm(std::string_view file);

/// Parses a whole binary PGM file ("P5", one picture, one byte per sample, comments allowed in the
/// header). Throws `InputError` at the first thing that is wrong; `file_name` is for the message
/// only.
Pgm parse_pgm(std::string_view file, const std::string& file_name);

}  // namespace systole::model

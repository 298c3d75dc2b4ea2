#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace systole::model {

/// A picture file: channels x height x width samples of 0..max_value, plane after plane, row-major.
struct Pnm {
  std::size_t channels = 0;  ///< 1: grey (PGM), 3: red, green, blue (PPM)
  std::size_t height = 0;
  std::size_t width = 0;
  unsigned max_value = 0;
  std::vector<std::uint8_t> samples;
};

/// Whether the bytes begin like a binary PGM or PPM file.
bool looks_like_pnm(std::string_view file);

/// Parses a whole binary PGM ("P5") or PPM file ("P6": one picture, one byte per sample, comments
/// allowed in the header). Throws `InputError` at the first thing that is wrong; `file_name` is for
/// the message only.
Pnm parse_pnm(std::string_view file, const std::string& file_name);

}  // namespace systole::model

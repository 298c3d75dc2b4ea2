#pragma once

#include <cstdio>
#include <cstdlib>

#include "model/metadata/vit_shape.h"

namespace systole::analysis {

inline constexpr model::EncoderShape kBertBase{12, 768, 12, 3072, true};
inline constexpr model::EncoderShape kBertLarge{24, 1024, 16, 4096, true};
inline constexpr model::EncoderShape kGpt2{12, 768, 12, 3072, false};

/// What a table prints that has so many digits after the point.
inline double printed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return std::strtod(text, nullptr);
}

inline double giga(double value, int digits) { return printed(value * 1e-9, digits); }

}  // namespace systole::analysis

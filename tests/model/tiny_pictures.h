#pragma once

#include <cstddef>
#include <cstdint>

#include "model/dataset.h"

namespace systole::model {

/// Eight different pictures for TinyVit.
inline Dataset tiny_pictures() {
  Dataset data;
  data.count = 8;
  data.height = data.width = 4;
  for (std::size_t i = 0; i < data.count * 16; ++i) {
    data.pixels.push_back(static_cast<std::uint8_t>(i * 7 % 17));
  }
  return data;
}

}  // namespace systole::model

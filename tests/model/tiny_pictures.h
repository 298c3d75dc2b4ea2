#pragma once

#include <cstddef>
#include <cstdint>

#include "model/data/dataset.h"

namespace systole::model {

/// Eight different pictures for TinyVit, or one of more channels.
inline Dataset tiny_pictures(std::size_t channels = 1) {
  Dataset data;
  data.count = 8;
  data.channels = channels;
  data.height = data.width = 4;
  for (std::size_t i = 0; i < data.count * channels * 16; ++i) {
    data.samples.push_back(static_cast<std::uint8_t>(i * 7 % 17));
  }
  return data;
}

}  // namespace systole::model

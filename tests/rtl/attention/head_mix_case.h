#pragma once

#include <cstdint>
#include <random>

#include "hw/attention/head_mix.h"
#include "tests/rtl/attention/head_case.h"

namespace systole::testbench {

/// A mix whose outputs are neither all clipped nor all zero.
inline hw::HeadMix random_mix(std::mt19937& random, std::uint32_t most_heads) {
  hw::HeadMix mix;
  mix.in_heads = random_count(random, 1, most_heads);
  mix.out_heads = random_count(random, 1, most_heads);
  mix.rounding = static_cast<hw::Rounding>(random() % 3);
  mix.weights = random_bytes(mix.in_heads * mix.out_heads, random);
  for (std::uint32_t o = 0; o < mix.out_heads; ++o) {
    const bool wide = random() % 8 == 0;
    mix.bias.push_back(static_cast<std::int32_t>(random()) >> (wide ? 2 : 14));
    const auto multiplier = static_cast<std::int32_t>(1 + random() % 65535);
    mix.factors.push_back({random() % 4 == 0 ? -multiplier : multiplier,
                           static_cast<std::int8_t>(wide ? random() % 64 : 22 + random() % 6)});
  }
  return mix;
}

}  // namespace systole::testbench

#pragma once

#include <cstdint>

#include "base/round.h"

namespace systole::mapper::dfx {

struct Range {
  std::uint32_t begin = 0, end = 0;
  [[nodiscard]] std::uint32_t size() const { return end - begin; }
};

/// Part `i` of `count` things split among `parts` as evenly as can be: 25 heads among 4 cores are
/// 6, 6, 6 and 7.
[[nodiscard]] constexpr Range split(std::uint32_t count, std::uint32_t parts, std::uint32_t i) {
  const auto bound = [&](std::uint32_t part) {
    return static_cast<std::uint32_t>(std::uint64_t{count} * part / parts);
  };
  return {bound(i), bound(i + 1)};
}

// Of sizes that registers are addressed by.
[[nodiscard]] constexpr std::uint32_t ceil_div(std::uint32_t value, std::uint32_t by) {
  return narrow(systole::ceil_div(value, by));
}
[[nodiscard]] constexpr std::uint32_t round_up(std::uint32_t value, std::uint32_t to) {
  return narrow(systole::round_up(value, to));
}

}  // namespace systole::mapper::dfx

#pragma once

#include <cstdint>

namespace systole::mapper {

[[nodiscard]] constexpr std::uint64_t ceil_div(std::uint64_t value, std::uint64_t by) noexcept {
  return (value + by - 1) / by;
}
/// The next multiple of `to`.
[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) noexcept {
  return ceil_div(value, to) * to;
}

}  // namespace systole::mapper

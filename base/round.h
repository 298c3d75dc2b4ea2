#pragma once

#include <cstdint>

namespace systole {

[[nodiscard]] constexpr std::uint64_t ceil_div(std::uint64_t value, std::uint64_t by) noexcept {
  return (value + by - 1) / by;
}
/// The next multiple of `to`.
[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) noexcept {
  return ceil_div(value, to) * to;
}

/// Multiples of `size` of which [address, address + bytes) has a byte: words of a memory, beats of
/// a bus. 0 of no bytes.
[[nodiscard]] constexpr std::uint64_t blocks_touched(std::uint64_t address, std::uint64_t bytes,
                                                     std::uint64_t size) noexcept {
  return bytes == 0 ? 0 : ceil_div(address % size + bytes, size);
}

/// For sizes and addresses that a command holds in 32 bits, which check_program() checks.
[[nodiscard]] constexpr std::uint32_t narrow(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value);
}

}  // namespace systole

#pragma once

#include <cstddef>
#include <cstdint>

/// Integers and enums as the bytes of a program: least significant first, sizeof(T) of them.
namespace systole::hw {

template <typename T>
void put_little_endian(T value, std::uint8_t* to) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    to[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
}

template <typename T>
[[nodiscard]] T get_little_endian(const std::uint8_t* from) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) bits |= std::uint64_t{from[i]} << (8 * i);
  return static_cast<T>(bits);
}

}  // namespace systole::hw

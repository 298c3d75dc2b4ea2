#pragma once

#include <cstddef>
#include <cstdint>

namespace systole::hw {

/// FNV-1a, 64 bits: to tell bytes apart that are compared within one run, not to protect them.
[[nodiscard]] inline std::uint64_t hash_of(const std::uint8_t* bytes, std::size_t count) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

/// A hash of the words before with one more: a step of FNV-1a, of eight bytes.
[[nodiscard]] inline std::uint64_t hash_with(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  // High bits of a product depend on all below them, low ones on few: they change places.
  return hash ^ (hash >> 32U);
}

}  // namespace systole::hw

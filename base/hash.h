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

}  // namespace systole::hw

#pragma once

#include <cstdint>

namespace systole::hw {

/// Bytes of the units in which a machine's memories are given.
inline constexpr std::uint64_t kKib = 1024;
inline constexpr std::uint64_t kMib = kKib * kKib;

}  // namespace systole::hw

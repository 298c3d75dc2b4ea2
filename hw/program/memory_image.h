#pragma once

#include <cstdint>
#include <vector>

namespace systole::hw {

/// Bytes at an address: what memory holds before a run.
struct MemoryPiece {
  std::uint64_t address = 0;
  std::vector<std::uint8_t> bytes;
};
using MemoryImage = std::vector<MemoryPiece>;

/// Where things answer on the system bus: main memory from 0, the cores' registers far above it.
inline constexpr std::uint64_t kDramBase = 0;
inline constexpr std::uint64_t kRegistersBase = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kRegistersStride = 4096;  ///< from one core to the next

}  // namespace systole::hw

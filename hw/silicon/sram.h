#pragma once

#include <cstdint>

/// What a memory on chip costs at 45 nm, by its size. House models, class *estimate*:
/// docs/energy.md has their sources and how far other figures are from them.
namespace systole::hw {

struct SramSize {
  double bytes = 0;
  double word_bytes = 8;    ///< what a port of a bank moves in a cycle
  std::uint32_t banks = 1;  ///< of equal size, a power of two
  std::uint32_t ports = 1;  ///< of each bank
};

/// Picojoules of a byte that is read or written, the way between banks included. Never less for
/// more bytes or ports.
[[nodiscard]] double sram_byte_pj(const SramSize& size);

/// Square millimetres. Never less for more bytes, banks or ports.
[[nodiscard]] double sram_mm2(const SramSize& size);

}  // namespace systole::hw

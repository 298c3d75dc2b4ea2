#pragma once

#include <verilated.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

/// Packed ports as arrays of lanes. Verilator picks a port's C++ type by its width (CData to
/// VlWide); in every one of them lane 0 is in the low bits and words are little-endian.
namespace systole::testbench {

/// Writes one lane of `Bits` (8, 16, 32 or 64) bits.
template <unsigned Bits, typename Port>
void set_lane(Port& port, std::size_t lane, std::uint64_t value) {
  static_assert(Bits == 8 || Bits == 16 || Bits == 32 || Bits == 64);
  std::memcpy(reinterpret_cast<unsigned char*>(&port) + lane * (Bits / 8), &value, Bits / 8);
}

/// Writes one lane of any width up to 8 bits: lanes may lie across byte boundaries.
template <unsigned Bits, typename Port>
void set_field(Port& port, std::size_t lane, unsigned value) {
  static_assert(Bits <= 8);
  auto* const bytes = reinterpret_cast<unsigned char*>(&port);
  for (std::size_t bit = 0; bit < Bits; ++bit) {
    const std::size_t position = lane * Bits + bit;
    unsigned char& byte = bytes[position / 8];
    const unsigned one = 1U << (position % 8);
    byte = static_cast<unsigned char>((value >> bit & 1U) != 0 ? byte | one : byte & ~one);
  }
}

/// Reads one lane of `Bits` (8, 16, 32 or 64) bits, zero-extended.
template <unsigned Bits, typename Port>
[[nodiscard]] std::uint64_t get_lane(const Port& port, std::size_t lane) {
  static_assert(Bits == 8 || Bits == 16 || Bits == 32 || Bits == 64);
  std::uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const unsigned char*>(&port) + lane * (Bits / 8), Bits / 8);
  return value;
}

}  // namespace systole::testbench

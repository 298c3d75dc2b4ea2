#pragma once

#include <cstdint>

namespace systole::hw {

/// Cycles of a serial divider or square root: it retires two bits of its result per cycle.
constexpr std::uint32_t serial_cycles(std::uint32_t result_bits) { return (result_bits + 1) / 2; }

}  // namespace systole::hw

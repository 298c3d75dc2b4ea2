#pragma once

#include <cstdint>

/// Depths, in cycles, of the units that the vector pipeline's stages and the MAC lines are built
/// from: the registers between the inputs and the output of each.
namespace systole::hw::unit_depth {

inline constexpr std::uint32_t kMultiply = 3;  ///< pipelined multiplier, up to 59 x 32 bits
inline constexpr std::uint32_t kShift = 1;     ///< barrel shifter with its rounding increment
inline constexpr std::uint32_t kClamp = 1;     ///< two comparisons and a selection
inline constexpr std::uint32_t kAdd = 1;       ///< addition or subtraction with saturation
inline constexpr std::uint32_t kRequantise = kMultiply + kShift + kClamp;
inline constexpr std::uint32_t kMac = 3;   ///< MAC line: operands, product, sum
inline constexpr std::uint32_t kWalk = 2;  ///< walker of a MAC line: item, row

}  // namespace systole::hw::unit_depth

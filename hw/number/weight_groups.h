#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// Weights of four bits in groups, which the load unit expands to the eight bits that the array
/// multiplies. The one definition of their arithmetic, their place in memory and what it costs.
///
/// A group is kGroupWeights weights of one output, consecutive along k. Its codes q of 0 to 15
/// become weights at the scale of the output:
///
///     weight = clamp(((q * scale + 8) >> 4) + minimum, -127, 127)
///
/// In memory a tile of k x n weights is one run: for every 32 of its k rows the n scales (u8), the
/// n minima (s8), and 32 rows of (n + 1) / 2 bytes, of which each has two neighbouring outputs, the
/// first in its low half. That is 4.5 bits a weight; Q4_1 of GGUF files takes 5, with scale and
/// minimum of a group in float16.
namespace systole::hw {

inline constexpr std::uint32_t kGroupWeights = 32;
/// Of a group's scale.
inline constexpr unsigned kGroupScaleBits = 4;
inline constexpr int kLargestGroupCode = 15;
/// Cycles from the last word that enters the expander to its place in the scratchpad: product,
/// then sum and clamp.
inline constexpr std::uint64_t kExpansionLatency = 2;

struct WeightGroup {
  std::uint8_t scale = 0;
  std::int8_t minimum = 0;

  [[nodiscard]] bool operator==(const WeightGroup& other) const {
    return scale == other.scale && minimum == other.minimum;
  }
};

/// The weight of code `q`, 0 to 15.
[[nodiscard]] constexpr std::int8_t expanded_weight(int q, WeightGroup group) {
  constexpr int kHalf = 1 << (kGroupScaleBits - 1), kLargest = 127;
  const int value = ((q * group.scale + kHalf) >> kGroupScaleBits) + group.minimum;
  return static_cast<std::int8_t>(std::clamp(value, -kLargest, kLargest));
}

/// Bytes in memory of kGroupWeights rows of `cols` weights.
[[nodiscard]] constexpr std::uint64_t packed_group_bytes(std::uint64_t cols) {
  return 2 * cols + kGroupWeights * ((cols + 1) / 2);
}
/// Of a tile of `rows`, a multiple of kGroupWeights.
[[nodiscard]] constexpr std::uint64_t packed_bytes(std::uint64_t rows, std::uint64_t cols) {
  return rows / kGroupWeights * packed_group_bytes(cols);
}

/// Cycles of the expander: `lanes` weights a cycle, and not more than a word of the scratchpad. A
/// row of a group begins with a cycle of its own.
struct ExpansionCycles {
  std::uint64_t per_group = 0;  ///< kGroupWeights rows
  std::uint64_t fill = 0;       ///< from the last of them to its place
};
[[nodiscard]] constexpr ExpansionCycles expansion_cycles(std::uint64_t cols, std::uint64_t lanes,
                                                         std::uint64_t word_bytes) {
  const std::uint64_t width = std::min(lanes, word_bytes);
  return {kGroupWeights * ((cols + width - 1) / width), kExpansionLatency};
}

/// Expands a packed group to kGroupWeights rows of `cols` weights, `pitch` bytes apart.
void expand_group(const std::uint8_t* packed, std::size_t cols, std::uint8_t* to,
                  std::size_t pitch);

/// The opposite: `weights` are rows `pitch` bytes apart, `groups` those of the columns. Throws
/// std::invalid_argument for a weight that its group has no code for.
void pack_group(const std::uint8_t* weights, std::size_t pitch, const WeightGroup* groups,
                std::size_t cols, std::uint8_t* to);

/// The group whose codes come close to kGroupWeights weights from -127 to 127, by the sum of
/// squares; `weights` are replaced by what its codes expand to.
[[nodiscard]] WeightGroup round_to_group(std::int8_t* weights);

}  // namespace systole::hw

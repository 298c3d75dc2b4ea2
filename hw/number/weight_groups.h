#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

/// Formats of weights in groups, which the load unit expands to the eight bits that the array
/// multiplies. The one definition of their arithmetic, their place in memory and what they cost.
///
/// A group is kGroupWeights weights of one output, consecutive along k, with a code each. Codes
/// become weights at the scale of the output:
///
/// | format      | code          | weight                                                      |
/// |-------------|---------------|-------------------------------------------------------------|
/// | kGroups     | q, 0 to 15    | clamp(((q * scale + 8) >> 4) + minimum, -127, 127)          |
/// | kMxInt8     | q, s8         | clamp(round(q * 2^(scale - 127 - 6)), -127, 127)            |
/// | kMxFp4      | e, E2M1       | clamp(round(e * 2^(scale - 127)), -127, 127)                |
///
/// kMxInt8 and kMxFp4 are MXINT8 and MXFP4 of the OCP Microscaling Formats (MX) Specification v1.0:
/// blocks of 32 elements with a scale in E8M0, a power of two. The scale of an output is a power of
/// two as well and is part of the output's factor, so `scale` is that of the block over it, and a
/// shift is all that the expander needs. round() is to the nearest, ties to even. Scale 255 is NaN:
/// what checks files refuses it, and the expander takes it for 2^128.
///
/// In memory a tile of k x n weights is one run: for every 32 of its k rows the n scales (u8), with
/// kGroups the n minima (s8), and 32 rows of n codes. Codes of four bits are in pairs, (n + 1) / 2
/// bytes of which each has two neighbouring outputs, the first in its low half. Bits of a weight:
/// 4.5, 8.25 and 4.25; Q4_1 of GGUF files takes 5, with scale and minimum of a group in float16.
namespace systole::hw {

enum class WeightFormat : std::uint8_t {
  kInt8,    ///< as the array multiplies them: not in groups
  kGroups,  ///< four bits, a scale and a minimum of each group
  kMxInt8,
  kMxFp4,
};
inline constexpr std::size_t kWeightFormats = 4;
/// "int8", "groups", "mxint8" and "mxfp4".
[[nodiscard]] std::string_view name_of(WeightFormat format);
/// Of a name of a format of MX; none for others.
[[nodiscard]] std::optional<WeightFormat> find_mx_format(std::string_view name);

inline constexpr std::uint32_t kGroupWeights = 32;
/// Of a group's scale.
inline constexpr unsigned kGroupScaleBits = 4;
inline constexpr int kLargestGroupCode = 15;
/// Of E8M0.
inline constexpr int kMxExponentBias = 127;
inline constexpr std::uint8_t kMxNan = 255;
/// Of the elements of MXINT8.
inline constexpr int kMxInt8FractionBits = 6;
/// Of the largest magnitudes, 1.984 and 6.
inline constexpr int kMxInt8LargestExponent = 0, kMxFp4LargestExponent = 2;
/// Cycles from the last word that enters the expander to its place in the scratchpad: product or
/// shift, then sum or rounding, and clamp.
inline constexpr std::uint64_t kExpansionLatency = 2;

struct WeightGroup {
  std::uint8_t scale = 0;
  std::int8_t minimum = 0;  ///< 0 of formats of MX

  [[nodiscard]] bool operator==(const WeightGroup& other) const {
    return scale == other.scale && minimum == other.minimum;
  }
};

[[nodiscard]] constexpr bool is_mx(WeightFormat format) {
  return format == WeightFormat::kMxInt8 || format == WeightFormat::kMxFp4;
}
/// Of a weight in memory.
[[nodiscard]] constexpr unsigned code_bits(WeightFormat format) {
  return format == WeightFormat::kGroups || format == WeightFormat::kMxFp4 ? 4 : 8;
}

/// Twice the value of a code of E2M1, of which only the lower four bits count.
[[nodiscard]] constexpr int doubled_e2m1(unsigned code) {
  constexpr std::array<int, 8> kMagnitudes{0, 1, 2, 3, 4, 6, 8, 12};
  const int magnitude = kMagnitudes[code & 7U];
  return (code & 8U) != 0 ? -magnitude : magnitude;
}

/// value * 2^exponent, to the nearest, ties to even, from -127 to 127; a value of eight bits.
[[nodiscard]] constexpr std::int8_t shifted_weight(int value, int exponent) {
  constexpr int kLargest = 127;
  // Beyond these all that is not zero saturates, and all becomes zero.
  const int left = std::clamp(exponent, 0, 7), right = std::clamp(-exponent, 0, 9);
  const int kept = value >> right, half = (1 << right) >> 1, rest = value - kept * (1 << right);
  const bool up = rest > half || (rest == half && half != 0 && (kept & 1) != 0);
  return static_cast<std::int8_t>(
      std::clamp((kept + (up ? 1 : 0)) * (1 << left), -kLargest, kLargest));
}

/// The weight of a code: 0 to 15 with code_bits() of 4, else the byte of an s8.
[[nodiscard]] constexpr std::int8_t expanded_weight(WeightFormat format, int code,
                                                    WeightGroup group) {
  constexpr int kHalf = 1 << (kGroupScaleBits - 1), kLargest = 127;
  switch (format) {
    case WeightFormat::kInt8:
      break;
    case WeightFormat::kGroups: {
      const int value = ((code * group.scale + kHalf) >> kGroupScaleBits) + group.minimum;
      return static_cast<std::int8_t>(std::clamp(value, -kLargest, kLargest));
    }
    case WeightFormat::kMxInt8:
      return shifted_weight(static_cast<std::int8_t>(code),
                            group.scale - kMxExponentBias - kMxInt8FractionBits);
    case WeightFormat::kMxFp4:
      return shifted_weight(doubled_e2m1(static_cast<unsigned>(code)),
                            group.scale - kMxExponentBias - 1);
  }
  return static_cast<std::int8_t>(code);
}

/// Bytes of a row of codes.
[[nodiscard]] constexpr std::uint64_t code_row_bytes(WeightFormat format, std::uint64_t cols) {
  return code_bits(format) == 4 ? (cols + 1) / 2 : cols;
}
/// Bytes in memory of kGroupWeights rows of `cols` weights.
[[nodiscard]] constexpr std::uint64_t packed_group_bytes(WeightFormat format, std::uint64_t cols) {
  const std::uint64_t heads = format == WeightFormat::kInt8 ? 0 : is_mx(format) ? 1 : 2;
  return heads * cols + kGroupWeights * code_row_bytes(format, cols);
}
/// Of a tile of `rows`, a multiple of kGroupWeights.
[[nodiscard]] constexpr std::uint64_t packed_bytes(WeightFormat format, std::uint64_t rows,
                                                   std::uint64_t cols) {
  return rows / kGroupWeights * packed_group_bytes(format, cols);
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
void expand_group(WeightFormat format, const std::uint8_t* packed, std::size_t cols,
                  std::uint8_t* to, std::size_t pitch);

/// The opposite: `weights` are rows `pitch` bytes apart, `groups` those of the columns. Of codes
/// that give the same weight the least counts. Throws std::invalid_argument for a weight that its
/// group has no code for.
void pack_group(WeightFormat format, const std::uint8_t* weights, std::size_t pitch,
                const WeightGroup* groups, std::size_t cols, std::uint8_t* to);

/// The group of `format` whose codes come close to kGroupWeights weights from -127 to 127, by the
/// sum of squares; `weights` are replaced by what its codes expand to.
[[nodiscard]] WeightGroup round_to_group(WeightFormat format, std::int8_t* weights);

/// The same of a format of MX and of kGroupWeights real weights in steps of the output's scale,
/// less than 2^30 in magnitude. The specification's scale, for which the largest weight has the
/// largest exponent of an element, or twice that if it comes closer: what is beyond the largest
/// element saturates.
[[nodiscard]] WeightGroup round_to_mx_group(WeightFormat format, const double* weights,
                                            std::int8_t* expanded);

/// The scale of an output of MX whose largest magnitude is that, above 0: the power of two for
/// which it becomes 64 to 128. Codes of MXINT8 in its block are then the weights, and those of
/// MXFP4 steps of 8: blocks down to an eighth of it are exact.
[[nodiscard]] double mx_output_scale(double largest);

}  // namespace systole::hw

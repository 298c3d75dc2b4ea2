#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// The integer functions of a streaming attention core, as the gates of ITA compute them
/// (pulp-platform/ITA @ ba96519, 2025-04-22): another requantiser, another softmax and another
/// GELU than those of I-BERT. docs/blocks/streaming_core.md compares them.
namespace systole::hw::stream {

inline constexpr unsigned kAccumulatorBits = 26;
inline constexpr unsigned kBiasBits = 24;
/// Of the sum of a softmax row: 2^19 - 1 at most, so a row has at most 2,047 elements.
inline constexpr unsigned kRowSumBits = 19;
inline constexpr std::size_t kLongestRow = 2047;
/// Elements of a softmax row that arrive together.
inline constexpr std::size_t kGroup = 16;

/// The low bits of `value`, as a two's complement number of that width.
[[nodiscard]] constexpr std::int32_t wrap(std::int64_t value, unsigned bits) noexcept {
  const unsigned unused = 64 - bits;
  return static_cast<std::int32_t>(
      static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << unused) >> unused);
}

/// Constants of a requantisation: y = saturate(round(x multiplier / 2^shift) + addend).
struct Requantiser {
  std::uint8_t multiplier = 1;
  std::uint8_t shift = 0;
  std::int8_t addend = 0;
};

/// `x`: 26 bits. Rounds half up: the product is shifted right, and the last bit that was shifted
/// out is added. That bit is one of the product's 35, so for shifts of 36 and more it is 0 and
/// negative products give -1. The addend comes after the rounding, the saturation to int8 last.
[[nodiscard]] constexpr std::int8_t requantise(std::int32_t x, const Requantiser& by) noexcept {
  constexpr unsigned kProductBits = 35, kWord = 63;
  const std::int64_t product = std::int64_t{x} * by.multiplier;
  std::int64_t rounded = product >> std::min<unsigned>(by.shift, kWord);
  if (by.shift > 0 && by.shift <= kProductBits) rounded += (product >> (by.shift - 1U)) & 1;
  return static_cast<std::int8_t>(std::clamp<std::int64_t>(rounded + by.addend, -128, 127));
}

/// 256 2^-(top - x), 0 from a difference of 9 on. `x` is at most `top`.
[[nodiscard]] constexpr std::uint32_t exponential(std::int8_t x, std::int8_t top) noexcept {
  const int difference = top - x;
  return difference > 8 ? 0 : 256U >> difference;
}

/// What is known of a softmax row after some of its groups. One unit of a score is an octave.
struct SoftmaxRow {
  std::int8_t maximum = -128;
  std::uint32_t sum = 0;  ///< of exponential(), under `maximum`: kRowSumBits

  /// Takes the next kGroup scores. Where the maximum grows, the sum so far is shifted as a whole,
  /// so the order of groups matters and the order within a group does not.
  constexpr void take(const std::int8_t* scores) noexcept {
    const std::int8_t before = maximum;
    for (std::size_t i = 0; i < kGroup; ++i) maximum = std::max(maximum, scores[i]);
    const int growth = maximum - before;
    sum = growth >= static_cast<int>(kRowSumBits) ? 0 : sum >> growth;
    for (std::size_t i = 0; i < kGroup; ++i) sum += exponential(scores[i], maximum);
    sum &= (1U << kRowSumBits) - 1;
  }
  /// 255 2^8 / sum, rounded down: at most 255, as `sum` is at least 256 after a group. From a sum
  /// of 65,281 on, 256 equal scores for example, it is 0, and so are all probabilities of the row.
  [[nodiscard]] constexpr std::uint8_t inverse() const noexcept {
    return static_cast<std::uint8_t>(kSoftmaxScale / sum);
  }
  /// Of a score of the row, with its inverse(): 255 is a probability of 1.
  [[nodiscard]] constexpr std::uint8_t probability(std::int8_t score,
                                                   std::uint8_t inverse) const noexcept {
    const int difference = maximum - score;
    return difference > 7 ? std::uint8_t{0} : static_cast<std::uint8_t>(inverse >> difference);
  }

  static constexpr std::uint32_t kSoftmaxScale = 255U << 8;
};

/// Of the softmax unit rtl/nonlinear/systole_stream_softmax.sv, from the first group to the last
/// result: each row's groups twice, and between the passes a cycle for the last group's sum, one to
/// start the divider, two quotient bits a cycle.
[[nodiscard]] constexpr std::uint64_t softmax_cycles(std::uint64_t rows, std::uint64_t groups) {
  constexpr std::uint64_t kBetween = 6, kOut = 1;
  return rows == 0 ? 0 : rows * (2 * groups + kBetween) + kOut;
}

/// Constants of a GELU, both negative.
struct GeluConstants {
  std::int16_t b = -1, c = -1;
};

/// The polynomial of I-BERT's GELU without its shift and with the sign turned: 26 bits. The input
/// is not clipped first, so -128 is taken as it is where -b > 127.
[[nodiscard]] constexpr std::int32_t gelu_product(std::int8_t q, const GeluConstants& by) noexcept {
  const std::int64_t magnitude = std::min<std::int64_t>(q < 0 ? -std::int64_t{q} : q, -by.b);
  const std::int64_t polynomial = (magnitude + by.b) * (magnitude + by.b) + by.c;
  const std::int64_t error = q < 0 ? -polynomial : polynomial;
  return wrap(q * (error + by.c), kAccumulatorBits);
}

enum class ActivationKind : std::uint8_t { kIdentity, kGelu, kRelu };

/// What becomes of a requantised result.
struct Activation {
  ActivationKind kind = ActivationKind::kIdentity;
  GeluConstants gelu;
  Requantiser requantiser;  ///< of GELU and ReLU
};

[[nodiscard]] constexpr std::int8_t activate(std::int8_t q, const Activation& by) noexcept {
  switch (by.kind) {
    case ActivationKind::kGelu:
      return requantise(gelu_product(q, by.gelu), by.requantiser);
    case ActivationKind::kRelu:
      return requantise(std::max<std::int32_t>(q, 0), by.requantiser);
    case ActivationKind::kIdentity:
      break;
  }
  return q;
}

}  // namespace systole::hw::stream

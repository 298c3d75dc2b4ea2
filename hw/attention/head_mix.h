#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/number/dyadic.h"
#include "hw/number/unit_depths.h"

/// A linear mix across heads: encoder and decoder of the auto-encoder on Q and K (ViTCoD, HPCA
/// 2023). Every feature of a token goes the same way:
///
///     out[o][f] = requantise(bias[o] + sum over i of weights[o][i] in[i][f])
///
/// which is, bit for bit, the matmul with the Kronecker product of weights and identity, its bias
/// and its requantisation.
///
/// Cycle contract of the MAC lines that compute it. A line has P MACs and works on a group: P
/// consecutive features of one token, all heads.
///
/// - Input: one beat of P int8 per input head, the next group's while this one is computed.
/// - Work: an input head a cycle for each output head, the outputs in order, each MAC on its own
///   feature: in_heads x out_heads cycles. A group of fewer than P features takes as long.
/// - Output: a beat of P int8 for each output head, every in_heads cycles, kHeadMixLatency after
/// its
///   last product. The pipeline of the requantisers does not hold up the next group.
/// - Group g (tokens in order of arrival, ceil(features / P) groups each) goes to line g mod L.
namespace systole::hw {

/// Most heads on either side: the coefficients reside in registers.
inline constexpr std::uint32_t kMaxMixHeads = 64;

/// From the cycle in which an output beat takes its last input head to its departure: the MACs and
/// the requantiser.
inline constexpr std::uint32_t kHeadMixLatency = unit_depth::kMac + unit_depth::kRequantise;

struct HeadMix {
  std::uint32_t in_heads = 0, out_heads = 0;
  std::vector<std::int8_t> weights;  ///< [out_heads][in_heads]
  std::vector<std::int32_t> bias;    ///< [out_heads]
  std::vector<Dyadic> factors;       ///< [out_heads], to -127 .. 127
  Rounding rounding = Rounding::kHalfUp;
};

/// Throws InputError: heads not 1 to kMaxMixHeads; other numbers of coefficients than heads say; a
/// factor outside +-(2^31 - 1) or a shift outside 0 to kMaxDyadicShift; an unknown rounding; sums
/// that may leave int32.
void check_head_mix(const HeadMix& mix);

/// One token: `in` is [in_heads][features], `out` is [out_heads][features] and apart from `in`. The
/// mix must have passed check_head_mix().
void mix_heads(const HeadMix& mix, const std::int8_t* in, std::size_t features, std::int8_t* out);

/// Multiply-accumulates of one feature of a token, and cycles of one group.
[[nodiscard]] inline std::uint64_t mix_products(const HeadMix& mix) {
  return std::uint64_t{mix.in_heads} * mix.out_heads;
}

/// Mean cycles from token to token of a stream that keeps all lines busy, rounded up.
[[nodiscard]] inline std::uint64_t mix_interval(const HeadMix& mix, std::size_t features,
                                                std::uint32_t lines, std::uint32_t macs_per_line) {
  const std::uint64_t work = (features + macs_per_line - 1) / macs_per_line * mix_products(mix);
  return (work + lines - 1) / lines;
}

/// MAC lines that mix a stream of tokens.
class HeadMixLines {
 public:
  /// What became of a token.
  struct Token {
    std::uint64_t begun;  ///< cycle in which work on its last group began
    std::uint64_t done;   ///< cycle in which its last beat has left
  };

  /// At least one line of at least one MAC.
  HeadMixLines(std::uint32_t lines, std::uint32_t macs_per_line)
      : macs_per_line_(macs_per_line), free_(lines, 0) {}

  /// A token whose input is complete at `arrival`, after those taken before: no group of a line
  /// begins before the previous group of that line is computed. Tokens may go through
  /// different mixes. `features`: per head, at least 1.
  Token take(const HeadMix& mix, std::size_t features, std::uint64_t arrival);

  /// Cycles of all lines with active MACs.
  [[nodiscard]] std::uint64_t busy_cycles() const noexcept { return busy_; }

 private:
  std::uint32_t macs_per_line_;
  std::vector<std::uint64_t> free_;  ///< [lines] cycle in which the line can begin its next group
  std::size_t next_ = 0;             ///< line of the next group
  std::uint64_t busy_ = 0;
};

}  // namespace systole::hw

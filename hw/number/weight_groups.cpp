#include "hw/number/weight_groups.h"

#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace systole::hw {
namespace {

constexpr int kUnit = 1 << kGroupScaleBits;
constexpr int kLargestScale = std::numeric_limits<std::uint8_t>::max();
/// Steps that are tried, in parts of those that just reach from the least to the largest weight:
/// weights in the middle gain by finer ones what the ends lose.
constexpr std::array<double, 6> kShares{1.0, 0.95, 0.9, 0.85, 0.8, 0.72};

/// Nearest code.
int code_of(int weight, WeightGroup group) {
  if (group.scale == 0) return 0;
  const int steps = (weight - group.minimum) * kUnit;
  const double nearest = std::nearbyint(static_cast<double>(steps) / group.scale);
  return static_cast<int>(std::clamp(nearest, 0.0, double{kLargestGroupCode}));
}

std::uint64_t squared_error(const std::int8_t* weights, WeightGroup group) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < kGroupWeights; ++i) {
    const int error = expanded_weight(code_of(weights[i], group), group) - weights[i];
    sum += static_cast<std::uint64_t>(error * error);
  }
  return sum;
}

/// The minimum at which the codes that `group` gives fit best.
std::int8_t refitted_minimum(const std::int8_t* weights, WeightGroup group) {
  int sum = 0;
  for (std::uint32_t i = 0; i < kGroupWeights; ++i) {
    sum += weights[i] - ((code_of(weights[i], group) * group.scale + kUnit / 2) / kUnit);
  }
  const double mean = std::nearbyint(static_cast<double>(sum) / kGroupWeights);
  return static_cast<std::int8_t>(std::clamp(mean, -127.0, 127.0));
}

}  // namespace

void expand_group(const std::uint8_t* packed, std::size_t cols, std::uint8_t* to,
                  std::size_t pitch) {
  const std::uint8_t* const scales = packed;
  const std::uint8_t* const minima = packed + cols;
  const std::uint8_t* halves = packed + 2 * cols;
  constexpr unsigned kLow = 0xf, kHalfByte = 4;
  const std::size_t bytes = (cols + 1) / 2;
  // Two plain loops, which compilers make vectors of.
  std::vector<std::uint8_t> codes(2 * bytes);
  for (std::uint32_t row = 0; row < kGroupWeights; ++row, to += pitch, halves += bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
      codes[2 * i] = halves[i] & kLow;
      codes[2 * i + 1] = static_cast<std::uint8_t>(halves[i] >> kHalfByte);
    }
    for (std::size_t c = 0; c < cols; ++c) {
      const WeightGroup group{scales[c], static_cast<std::int8_t>(minima[c])};
      to[c] = static_cast<std::uint8_t>(expanded_weight(codes[c], group));
    }
  }
}

void pack_group(const std::uint8_t* weights, std::size_t pitch, const WeightGroup* groups,
                std::size_t cols, std::uint8_t* to) {
  constexpr std::size_t kBytes = 256;
  constexpr std::uint8_t kNone = 0xff;
  const std::size_t row_bytes = (cols + 1) / 2;
  std::uint8_t* const codes = to + 2 * cols;
  std::fill_n(codes, kGroupWeights * row_bytes, std::uint8_t{0});
  for (std::size_t c = 0; c < cols; ++c) {
    to[c] = groups[c].scale;
    to[cols + c] = static_cast<std::uint8_t>(groups[c].minimum);
    std::array<std::uint8_t, kBytes> of{};
    of.fill(kNone);
    for (int q = kLargestGroupCode; q >= 0; --q) {
      of[static_cast<std::uint8_t>(expanded_weight(q, groups[c]))] = static_cast<std::uint8_t>(q);
    }
    for (std::uint32_t row = 0; row < kGroupWeights; ++row) {
      const std::uint8_t weight = weights[row * pitch + c];
      if (of[weight] == kNone) {
        throw std::invalid_argument("weight " + std::to_string(static_cast<std::int8_t>(weight)) +
                                    " is none of its group's");
      }
      std::uint8_t& both = codes[row * row_bytes + c / 2];
      both = static_cast<std::uint8_t>(both | of[weight] << (c % 2 == 0 ? 0 : 4));
    }
  }
}

WeightGroup round_to_group(std::int8_t* weights) {
  const auto [low, high] = std::minmax_element(weights, weights + kGroupWeights);
  const int least = *low, range = *high - *low;
  WeightGroup best{0, *low};
  std::uint64_t least_error = std::numeric_limits<std::uint64_t>::max();
  const auto consider = [&](WeightGroup group) {
    const std::uint64_t error = squared_error(weights, group);
    if (error >= least_error) return;
    least_error = error;
    best = group;
  };
  const auto try_scale = [&](int wanted) {
    const int scale = std::clamp(wanted, 0, kLargestScale);
    // What the steps do not reach is left out at both ends.
    const int left = (range - kLargestGroupCode * scale / kUnit) / 2;
    WeightGroup group{static_cast<std::uint8_t>(scale), static_cast<std::int8_t>(least + left)};
    consider(group);
    group.minimum = refitted_minimum(weights, group);
    consider(group);
  };
  const double reaches = double{kUnit} * range / kLargestGroupCode;
  for (const double share : kShares) {
    try_scale(static_cast<int>(std::nearbyint(share * reaches)));
    if (least_error == 0) break;
  }
  // The range itself is rounded.
  for (const int next : {-1, 1}) {
    if (least_error != 0) try_scale(static_cast<int>(std::nearbyint(reaches)) + next);
  }
  for (std::uint32_t i = 0; i < kGroupWeights; ++i) {
    weights[i] = expanded_weight(code_of(weights[i], best), best);
  }
  return best;
}

}  // namespace systole::hw

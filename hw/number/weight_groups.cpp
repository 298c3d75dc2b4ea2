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
/// Steps that are tried, in parts of those that just reach from the least to the largest weight:
/// weights in the middle gain by finer ones what the ends lose.
constexpr std::array<double, 6> kShares{1.0, 0.95, 0.9, 0.85, 0.8, 0.72};
/// Least-squares fits of scale and minimum to the codes that the ones before them give.
constexpr int kRefits = 2;

constexpr std::array<std::string_view, kWeightFormats> kFormatNames{"int8", "groups", "mxint8",
                                                                    "mxfp4"};

std::int8_t group_weight(int code, WeightGroup group) {
  return expanded_weight(WeightFormat::kGroups, code, group);
}

/// The scale that comes closest to steps of `step` in parts of kUnit.
std::uint8_t scale_of(double step) {
  constexpr double kLargest = std::numeric_limits<std::uint8_t>::max();
  return static_cast<std::uint8_t>(std::clamp(std::nearbyint(step), 0.0, kLargest));
}

/// Nearest code.
int code_of(int weight, WeightGroup group) {
  if (group.scale == 0) return 0;
  const int steps = (weight - group.minimum) * kUnit;
  return std::clamp(static_cast<int>(static_cast<float>(steps) / group.scale + 0.5F), 0,
                    kLargestGroupCode);
}

std::uint64_t squared_error(const std::int8_t* weights, WeightGroup group) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < kGroupWeights; ++i) {
    const int error = group_weight(code_of(weights[i], group), group) - weights[i];
    sum += static_cast<std::uint64_t>(error * error);
  }
  return sum;
}

/// The scale and the minimum at which the codes that `group` gives fit best, by least squares.
WeightGroup refitted(const std::int8_t* weights, WeightGroup group) {
  std::array<int, kGroupWeights> codes;
  int sum_q = 0, sum_qq = 0, sum_w = 0, sum_qw = 0;
  for (std::uint32_t i = 0; i < kGroupWeights; ++i) {
    const int q = codes[i] = code_of(weights[i], group);
    sum_q += q;
    sum_qq += q * q;
    sum_w += weights[i];
    sum_qw += q * weights[i];
  }
  constexpr int kCount = kGroupWeights;
  const int spread = kCount * sum_qq - sum_q * sum_q;  // 0: all codes are the same
  if (spread != 0) {
    const double slope = static_cast<double>(kCount * sum_qw - sum_q * sum_w) / spread;
    group.scale = scale_of(kUnit * slope);
  }
  int left = 0;
  for (std::uint32_t i = 0; i < kGroupWeights; ++i) {
    left += weights[i] - (codes[i] * group.scale + kUnit / 2) / kUnit;
  }
  const double mean = std::nearbyint(static_cast<double>(left) / kCount);
  group.minimum = static_cast<std::int8_t>(std::clamp(mean, -127.0, 127.0));
  return group;
}

/// The code that comes closest to a weight in steps of the block's scale.
int mx_code(WeightFormat format, double weight) {
  if (format == WeightFormat::kMxInt8) {
    const double code = std::nearbyint(std::ldexp(weight, kMxInt8FractionBits));
    return static_cast<std::uint8_t>(static_cast<std::int8_t>(std::clamp(code, -127.0, 127.0)));
  }
  // Between two elements the one with an even mantissa, as IEEE 754 has it: their codes alternate.
  const double magnitude = 2 * std::fabs(weight);
  unsigned code = 0;
  while (code < 7) {
    const double middle = (doubled_e2m1(code) + doubled_e2m1(code + 1)) / 2.0;
    if (magnitude < middle || (magnitude == middle && code % 2 == 0)) break;
    ++code;
  }
  return static_cast<int>(weight < 0 ? code | 8U : code);
}

}  // namespace

std::string_view name_of(WeightFormat format) {
  return kFormatNames.at(static_cast<std::size_t>(format));
}

std::optional<WeightFormat> find_mx_format(std::string_view name) {
  for (const WeightFormat format : {WeightFormat::kMxInt8, WeightFormat::kMxFp4}) {
    if (name == name_of(format)) return format;
  }
  return std::nullopt;
}

void expand_group(WeightFormat format, const std::uint8_t* packed, std::size_t cols,
                  std::uint8_t* to, std::size_t pitch) {
  const std::uint8_t* const scales = packed;
  const std::uint8_t* const minima = packed + cols;  // of kGroups
  const std::uint8_t* halves = packed + (is_mx(format) ? 1 : 2) * cols;
  constexpr unsigned kLow = 0xf, kHalfByte = 4;
  const std::size_t bytes = code_row_bytes(format, cols);
  // Plain loops, which compilers make vectors of.
  std::vector<std::uint8_t> codes(2 * bytes);
  for (std::uint32_t row = 0; row < kGroupWeights; ++row, to += pitch, halves += bytes) {
    if (format == WeightFormat::kMxInt8) {
      std::copy_n(halves, bytes, codes.begin());
    } else {
      for (std::size_t i = 0; i < bytes; ++i) {
        codes[2 * i] = halves[i] & kLow;
        codes[2 * i + 1] = static_cast<std::uint8_t>(halves[i] >> kHalfByte);
      }
    }
    if (format == WeightFormat::kGroups) {
      for (std::size_t c = 0; c < cols; ++c) {
        const WeightGroup group{scales[c], static_cast<std::int8_t>(minima[c])};
        to[c] = static_cast<std::uint8_t>(group_weight(codes[c], group));
      }
      continue;
    }
    for (std::size_t c = 0; c < cols; ++c) {
      to[c] = static_cast<std::uint8_t>(expanded_weight(format, codes[c], {scales[c], 0}));
    }
  }
}

void pack_group(WeightFormat format, const std::uint8_t* weights, std::size_t pitch,
                const WeightGroup* groups, std::size_t cols, std::uint8_t* to) {
  constexpr std::size_t kBytes = 256;
  constexpr std::int16_t kNone = -1;
  const bool pairs = code_bits(format) == 4;
  const std::size_t row_bytes = code_row_bytes(format, cols);
  std::uint8_t* const codes = to + (is_mx(format) ? 1 : 2) * cols;
  std::fill_n(codes, kGroupWeights * row_bytes, std::uint8_t{0});
  for (std::size_t c = 0; c < cols; ++c) {
    to[c] = groups[c].scale;
    if (!is_mx(format)) to[cols + c] = static_cast<std::uint8_t>(groups[c].minimum);
    std::array<std::int16_t, kBytes> of{};
    of.fill(kNone);
    for (int code = (1 << code_bits(format)) - 1; code >= 0; --code) {
      of[static_cast<std::uint8_t>(expanded_weight(format, code, groups[c]))] =
          static_cast<std::int16_t>(code);
    }
    for (std::uint32_t row = 0; row < kGroupWeights; ++row) {
      const std::uint8_t weight = weights[row * pitch + c];
      if (of[weight] == kNone) {
        throw std::invalid_argument("weight " + std::to_string(static_cast<std::int8_t>(weight)) +
                                    " is none of its group's");
      }
      std::uint8_t& at = codes[row * row_bytes + (pairs ? c / 2 : c)];
      at = static_cast<std::uint8_t>(at | of[weight] << (pairs && c % 2 != 0 ? 4 : 0));
    }
  }
}

WeightGroup round_to_mx_group(WeightFormat format, const double* weights, std::int8_t* expanded) {
  double largest = 0;
  for (std::uint32_t i = 0; i < kGroupWeights; ++i) {
    largest = std::max(largest, std::fabs(weights[i]));
  }
  const int most = format == WeightFormat::kMxInt8 ? kMxInt8LargestExponent : kMxFp4LargestExponent;
  const int exponent = largest == 0 ? 0 : std::ilogb(largest) - most;
  WeightGroup best;
  double least_error = std::numeric_limits<double>::infinity();
  for (const int tried : {exponent, exponent + 1}) {
    const WeightGroup group{
        static_cast<std::uint8_t>(std::clamp(tried + kMxExponentBias, 0, kMxNan - 1)), 0};
    const int used = group.scale - kMxExponentBias;
    std::array<std::int8_t, kGroupWeights> rounded;
    double error = 0;
    for (std::uint32_t i = 0; i < kGroupWeights; ++i) {
      rounded[i] = expanded_weight(format, mx_code(format, std::ldexp(weights[i], -used)), group);
      error += (rounded[i] - weights[i]) * (rounded[i] - weights[i]);
    }
    if (error >= least_error) continue;
    least_error = error;
    best = group;
    std::copy(rounded.begin(), rounded.end(), expanded);
  }
  return best;
}

double mx_output_scale(double largest) {
  constexpr int kExponent = 6;
  return std::ldexp(1.0, std::ilogb(largest) - kExponent);
}

WeightGroup round_to_group(WeightFormat format, std::int8_t* weights) {
  if (is_mx(format)) {
    std::array<double, kGroupWeights> real;
    std::copy_n(weights, kGroupWeights, real.begin());
    return round_to_mx_group(format, real.data(), weights);
  }
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
  const auto try_step = [&](double step) {
    WeightGroup group{scale_of(step), 0};
    // What the steps do not reach is left out at both ends.
    const int left = (range - kLargestGroupCode * group.scale / kUnit) / 2;
    group.minimum = static_cast<std::int8_t>(least + left);
    consider(group);
    for (int i = 0; i < kRefits; ++i) consider(group = refitted(weights, group));
  };
  const double reaches = double{kUnit} * range / kLargestGroupCode;
  for (const double share : kShares) {
    try_step(share * reaches);
    if (least_error == 0) break;
  }
  // The range itself is rounded.
  for (const int next : {-1, 1}) {
    if (least_error != 0) try_step(reaches + next);
  }
  for (std::uint32_t i = 0; i < kGroupWeights; ++i) {
    weights[i] = group_weight(code_of(weights[i], best), best);
  }
  return best;
}

}  // namespace systole::hw

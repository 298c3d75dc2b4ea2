#include "hw/function/half_gelu.h"

#include <cmath>
#include <cstdint>

namespace systole::hw {
namespace {

constexpr double kStep = 2 * kHalfGeluLimit / kHalfGeluSamples;
constexpr std::size_t kZeroSample = kHalfGeluSamples / 2;
constexpr unsigned kStepBits = 17;  // a step, 2^-7, in the units of 2^-24 that a half counts
static_assert(kStep * 0x1p24 == 1 << kStepBits);

double gelu(double x) {
  constexpr double kRootTwoOverPi = 0.79788456080286535588;
  // With 1 + tanh(u) = 2 / (1 + e^-2u) nothing cancels where x is far below 0.
  return x / (1 + std::exp(-2 * kRootTwoOverPi * (x + 0.044715 * x * x * x)));
}

/// The table has one zero: what is too small for a half is +0 on either side.
Half entry(double x) {
  const Half rounded = to_half(x);
  return rounded.bits == kHalfSign ? kHalfZero : rounded;
}

HalfGeluTable make_table() {
  HalfGeluTable table;
  for (std::size_t i = 0; i < kHalfGeluSamples; ++i) {
    const double x = -kHalfGeluLimit + static_cast<double>(i) * kStep;
    table.samples[i] = entry(gelu(x));
    table.slopes[i] = entry((gelu(x + kStep) - gelu(x)) / kStep);
  }
  return table;
}

}  // namespace

const HalfGeluTable& half_gelu_table() {
  static const HalfGeluTable table = make_table();
  return table;
}

Half half_gelu(Half x) {
  if (is_nan(x)) return kHalfNan;
  const float value = to_float(x);
  const bool negative = (x.bits & kHalfSign) != 0;
  if (!(std::fabs(value) < static_cast<float>(kHalfGeluLimit))) return negative ? kHalfZero : x;
  const HalfGeluTable& table = half_gelu_table();
  const auto units = static_cast<std::uint32_t>(std::fabs(value) * 0x1p24F);
  const std::size_t steps = units >> kStepBits;
  const std::uint32_t rest = units - (static_cast<std::uint32_t>(steps) << kStepBits);
  // The low bits of an 11-bit fraction: exact.
  const Half distance = to_half(static_cast<float>(rest) * 0x1p-24F);
  if (negative) {
    const std::size_t sample = kZeroSample - steps;
    return half_sub(table.samples[sample], half_mul(table.slopes[sample - 1], distance));
  }
  const std::size_t sample = kZeroSample + steps;
  return half_add(table.samples[sample], half_mul(table.slopes[sample], distance));
}

}  // namespace systole::hw

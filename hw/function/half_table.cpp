#include "hw/function/half_table.h"

#include <cmath>
#include <cstdint>

namespace systole::hw {
namespace {

constexpr std::size_t kZeroSample = kHalfSamples / 2;

double gelu(double x) {
  constexpr double kRootTwoOverPi = 0.79788456080286535588;
  // With 1 + tanh(u) = 2 / (1 + e^-2u) nothing cancels where x is far below 0.
  return x / (1 + std::exp(-2 * kRootTwoOverPi * (x + 0.044715 * x * x * x)));
}

double silu(double x) { return x / (1 + std::exp(-x)); }

/// The table has one zero: what is too small for a half is +0 on either side.
Half entry(double x) {
  const Half rounded = to_half(x);
  return rounded.bits == kHalfSign ? kHalfZero : rounded;
}

HalfTable make_table(double limit, double (*function)(double)) {
  const double step = 2 * limit / kHalfSamples;
  HalfTable table;
  table.limit = limit;
  for (std::size_t i = 0; i < kHalfSamples; ++i) {
    const double x = -limit + static_cast<double>(i) * step;
    table.samples[i] = entry(function(x));
    table.slopes[i] = entry((function(x + step) - function(x)) / step);
  }
  return table;
}

/// Bits of a step in the units of 2^-24 that a half counts: a step is a power of two.
unsigned step_bits(double limit) {
  return static_cast<unsigned>(std::ilogb(2 * limit / kHalfSamples)) + 24;
}

}  // namespace

const HalfTable& half_gelu_table() {
  static const HalfTable table = make_table(kHalfGeluLimit, gelu);
  return table;
}

const HalfTable& half_silu_table() {
  static const HalfTable table = make_table(kHalfSiluLimit, silu);
  return table;
}

Half half_lookup(const HalfTable& table, Half x) {
  if (is_nan(x)) return kHalfNan;
  const float value = to_float(x);
  const bool negative = (x.bits & kHalfSign) != 0;
  if (!(std::fabs(value) < static_cast<float>(table.limit))) return negative ? kHalfZero : x;
  const unsigned bits = step_bits(table.limit);
  const auto units = static_cast<std::uint32_t>(std::fabs(value) * 0x1p24F);
  const std::size_t steps = units >> bits;
  const std::uint32_t rest = units - (static_cast<std::uint32_t>(steps) << bits);
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

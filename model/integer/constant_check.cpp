#include "model/integer/constant_check.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "hw/function/layernorm.h"
#include "hw/number/integer.h"

namespace systole::model {
namespace {

constexpr std::int64_t kLargestWeight = 127;
constexpr std::int64_t kAccumulatorMax = std::numeric_limits<std::int32_t>::max();
/// One less than for a requantisation: the sum before the shift needs the room.
constexpr std::int64_t kMaxNormShift = hw::kMaxDyadicShift - 1;
constexpr std::int64_t kMaxNormMultiplier = std::int64_t{1} << hw::kLayerNormMultiplierBits;
constexpr std::int64_t kMaxGeluClip = std::int64_t{1} << 16;
constexpr std::int64_t kMaxGeluConstant = std::int64_t{1} << 40;

}  // namespace

bool fits_gelu_product(const hw::GeluConstants& gelu) {
  const hw::Int128 clip = gelu.b;
  const hw::Int128 polynomial = clip * clip - gelu.c - gelu.one;
  const hw::Int128 multiplier = std::abs(std::int64_t{gelu.output.multiplier});
  return polynomial * multiplier < hw::Int128{1} << (62U - 15U);
}

void ConstantCheck::in_range(const std::string& name, std::int64_t value, std::int64_t lowest,
                             std::int64_t highest) const {
  if (value >= lowest && value <= highest) return;
  throw hw::InputError(place_ + ": " + name + ": " + std::to_string(value) + ", expected " +
                       std::to_string(lowest) + " to " + std::to_string(highest));
}

void ConstantCheck::scale(const std::string& name, double value) const {
  if (std::isfinite(value) && value > 0) return;
  throw hw::InputError(place_ + ": " + name + ".scale: expected a positive number");
}

void ConstantCheck::factor(const std::string& name, hw::Dyadic factor,
                           std::int64_t lowest_multiplier) const {
  in_range(name + ".multiplier", factor.multiplier, lowest_multiplier, multiplier_max_);
  in_range(name + ".shift", factor.shift, 0, hw::kMaxDyadicShift);
}

void ConstantCheck::linear(const std::string& name, const IntegerLinear& layer,
                           std::int64_t largest_input) const {
  all_in_range(name + ".weight", layer.weight, -kLargestWeight, kLargestWeight);
  const std::int64_t limit =
      kAccumulatorMax - std::int64_t{layer.inputs} * kLargestWeight * largest_input;
  all_in_range(name + ".bias", layer.bias, -limit, limit);
  for (const hw::Dyadic& channel : layer.factor) factor(name, channel, 0);
}

void ConstantCheck::norm(const std::string& name, const IntegerLayerNorm& norm) const {
  all_in_range(name + ".multiplier", norm.multiplier, -kMaxNormMultiplier, kMaxNormMultiplier);
  in_range(name + ".shift", norm.shift, 0, kMaxNormShift);
  scale(name, norm.scale);
}

void ConstantCheck::gelu(const std::string& name, const hw::GeluConstants& gelu,
                         unsigned bits) const {
  in_range(name + ".b", gelu.b, -kMaxGeluClip, 0);
  in_range(name + ".c", gelu.c, -kMaxGeluConstant, 0);
  in_range(name + ".one", gelu.one, -kMaxGeluConstant, 0);
  factor(name, gelu.output, -multiplier_max_);
  bool fits = fits_gelu_product(gelu);
  const auto largest = static_cast<std::int32_t>(hw::symmetric_range(bits).hi);
  for (std::int32_t q = -largest; q <= largest; ++q) {
    fits = fits && hw::signed_bits(hw::gelu_product(q, gelu)) <= hw::gelu_product_bits(bits);
  }
  if (!fits) throw hw::InputError(place_ + ": " + name + ": the product exceeds its register");
}

}  // namespace systole::model

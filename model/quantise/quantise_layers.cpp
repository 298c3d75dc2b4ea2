#include "model/quantise/quantise_layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "hw/function/layernorm.h"
#include "hw/function/softmax.h"
#include "hw/number/int4.h"
#include "hw/number/int_exp.h"
#include "hw/number/integer.h"
#include "hw/number/softmax_mode.h"
#include "model/integer/constant_check.h"
#include "model/quantise/quantiser_options.h"

namespace systole::model {
namespace {

/// Scale of a channel whose weights are all zero.
constexpr double kSmallestWeight = 1e-9;
/// Fewest bits left to a LayerNorm's or GELU's multiplier when its other terms need the room.
constexpr unsigned kFewestMultiplierBits = 8;
/// Largest magnitude of an 8-bit input; those of pictures of bytes use all codes.
constexpr double kLargestInput = 128.0;
constexpr double kInt32Max = std::numeric_limits<std::int32_t>::max();

/// What is left of the int32 accumulator for the bias, whatever the input.
double bias_limit(std::uint32_t inputs) {
  return kInt32Max - inputs * kLargestCode * kLargestInput;
}

double int4_code(double code) {
  return std::clamp(code, double{hw::kLeastInt4}, double{hw::kLargestInt4});
}

/// The scale of int4 codes that comes closest to `count` weights up to `largest`: what is beyond
/// the largest code costs less than coarse steps for all, as a rule.
double int4_scale(const double* weights, std::size_t count, double largest) {
  constexpr int kTried = 25;
  constexpr double kLeastShare = 0.4;
  double best = 0, least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTried; ++i) {
    const double share = 1.0 - (1.0 - kLeastShare) * i / (kTried - 1);
    const double scale = share * largest / hw::kLargestInt4;
    double error = 0;
    for (std::size_t j = 0; j < count; ++j) {
      const double left = weights[j] - scale * int4_code(std::nearbyint(weights[j] / scale));
      error += left * left;
    }
    if (error >= least) continue;
    least = error;
    best = scale;
  }
  return best;
}

/// Rounds kGroupWeights weights of an output of that scale.
void add_mx_group(hw::WeightFormat format, const double* weights, double scale,
                  std::vector<hw::WeightGroup>& groups, std::vector<std::int8_t>& codes) {
  std::array<double, hw::kGroupWeights> steps;
  std::array<std::int8_t, hw::kGroupWeights> rounded;
  std::transform(weights, weights + steps.size(), steps.begin(),
                 [&](double weight) { return weight / scale; });
  groups.push_back(hw::round_to_mx_group(format, steps.data(), rounded.data()));
  codes.insert(codes.end(), rounded.begin(), rounded.end());
}

bool fits_int32(const std::vector<std::int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [](std::int64_t x) {
    return std::abs(x) <= std::numeric_limits<std::int32_t>::max();
  });
}

}  // namespace

int context_fraction_bits(const hw::Machine::Datapath& datapath) {
  const bool deferred = datapath.softmax == hw::SoftmaxMode::kDeferred;
  return static_cast<int>(deferred ? hw::kDeferredFractionBits : datapath.softmax_bits);
}

void LayerQuantiser::fail(const std::string& layer, const std::string& what) const {
  throw hw::InputError(path_ + ": " + layer + ": " + what);
}

hw::Dyadic LayerQuantiser::factor(const std::string& name, double value) const {
  try {
    return hw::make_dyadic(value, multiplier_bits_);
  } catch (const hw::InputError& error) {
    fail(name, error.what());
  }
}

hw::Dyadic LayerQuantiser::exp_to_code(unsigned bits) const {
  return factor("softmax", static_cast<double>(hw::unsigned_range(bits).hi) /
                               hw::make_int_exp_constants(hw::kScoreFractionBits).value_at_zero());
}

IntegerLinear LayerQuantiser::linear(const std::string& name, const FloatLinear& layer,
                                     double input_scale, const std::vector<OutputGroup>& groups,
                                     unsigned weight_bits, hw::WeightFormat format) const {
  const std::size_t inputs = layer.inputs;
  const bool int4 = weight_bits == kInt4WeightBits, mx = hw::is_mx(format);
  const double limit = bias_limit(layer.inputs);
  if (limit <= 0) {
    fail(name, std::to_string(inputs) + " inputs overflow the int32 accumulator");
  }
  // The finest scale at which weights and bias of a channel fit their registers.
  const auto channel_scale = [&](std::size_t o) {
    double largest = kSmallestWeight;
    for (std::size_t i = 0; i < inputs; ++i) {
      largest = std::max(largest, std::fabs(layer.weight[o * inputs + i]));
    }
    const double finest = std::fabs(layer.bias[o]) / (input_scale * limit);
    if (mx) return std::max(hw::mx_output_scale(largest), std::exp2(std::ceil(std::log2(finest))));
    if (!int4) return std::max(largest / kLargestCode, finest);
    return std::max(int4_scale(&layer.weight[o * inputs], inputs, largest), finest);
  };

  IntegerLinear result;
  result.int4 = int4;
  if (mx) result.format = format;
  result.inputs = layer.inputs;
  result.outputs = layer.outputs;
  std::vector<std::int8_t> codes;
  codes.reserve(layer.weight.size());
  std::size_t first = 0;
  for (const OutputGroup& group : groups) {
    const std::size_t end = first + group.channels;
    double group_scale = 0;
    for (std::size_t o = first; o < end; ++o) {
      group_scale = std::max(group_scale, channel_scale(o));
    }
    for (std::size_t o = first; o < end; ++o) {
      const double scale = per_channel_ ? channel_scale(o) : group_scale;
      for (std::size_t i = 0; mx && i < inputs; i += hw::kGroupWeights) {
        add_mx_group(format, &layer.weight[o * inputs + i], scale, result.groups, codes);
      }
      for (std::size_t i = 0; !mx && i < inputs; ++i) {
        const double code = std::nearbyint(layer.weight[o * inputs + i] / scale);
        codes.push_back(static_cast<std::int8_t>(int4 ? int4_code(code) : code));
      }
      const double bias = std::nearbyint(layer.bias[o] / (scale * input_scale));
      result.bias.push_back(static_cast<std::int32_t>(std::clamp(bias, -limit, limit)));
      result.factor.push_back(
          factor(name + ": channel " + std::to_string(o), scale * input_scale / group.scale));
    }
    first = end;
  }
  result.weight = std::move(codes);
  return result;
}

IntegerLayerNorm LayerQuantiser::layer_norm(const std::string& name, const FloatNorm& norm,
                                            double output_scale) const {
  try {
    hw::LayerNormConstants constants =
        hw::make_layernorm_constants(norm.weight, norm.bias, output_scale);
    // A large bias beside small weights needs a coarser grid to fit its parameter word.
    for (unsigned bits = hw::kLayerNormMultiplierBits;
         !fits_int32(constants.bias) && bits > kFewestMultiplierBits;) {
      constants = hw::make_layernorm_constants(norm.weight, norm.bias, output_scale,
                                               hw::kLayerNormFractionBits, --bits);
    }
    if (!fits_int32(constants.bias)) {
      throw hw::InputError("bias exceeds int32 beside weights of 8 bits, expected larger weights");
    }
    return {constants.multiplier,
            {constants.bias.begin(), constants.bias.end()},
            constants.shift,
            output_scale};
  } catch (const hw::InputError& error) {
    fail(name, error.what());
  }
}

hw::GeluConstants LayerQuantiser::gelu(const std::string& name, double input_scale,
                                       double output_scale, unsigned bits) const {
  try {
    hw::check_gelu_scale(input_scale, bits);
    hw::GeluConstants constants =
        hw::make_gelu_constants(input_scale, output_scale, multiplier_bits_);
    for (unsigned multiplier = multiplier_bits_;
         !fits_gelu_product(constants) && multiplier > kFewestMultiplierBits;) {
      constants = hw::make_gelu_constants(input_scale, output_scale, --multiplier);
    }
    if (!fits_gelu_product(constants)) {
      throw hw::InputError(
          "the product with the output multiplier exceeds 63 bits, expected a coarser input "
          "scale than " +
          std::to_string(input_scale));
    }
    return constants;
  } catch (const hw::InputError& error) {
    fail(name, error.what());
  }
}

}  // namespace systole::model

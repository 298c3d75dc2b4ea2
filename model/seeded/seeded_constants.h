#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "hw/function/softmax.h"
#include "hw/machine/machine.h"
#include "model/integer/integer_vit.h"
#include "model/quantise/quantise_layers.h"

/// Constants of networks with random weights, such that all activations use their codes well.
namespace systole::model {

/// Standard deviation of an 8-bit activation: its largest code is four of them.
inline constexpr double kOperandDeviation = 32.0;
/// Of the bytes that weights are drawn from.
inline constexpr double kWeightDeviation = 73.5;
/// Of real scores before the softmax: rows neither uniform nor one-hot.
inline constexpr double kScoreDeviation = 1.5;
/// What a branch adds, relative to the stream: small, or all tokens become alike with depth.
inline constexpr double kBranchShare = 0.4;
/// Part of the variance that tokens share in the middle of a deep stack.
inline constexpr double kCommonShare = 0.5;
/// Root mean square of a standard normal input after a ReLU, and after a GELU.
inline constexpr double kReluDeviation = 0.707, kGeluDeviation = 0.65;
/// Means over many pixels are nearer to each other than the pixels are.
inline constexpr double kMeanGain = 2.0;
/// What a stream of random numbers is for: each has its own, so that leaving one out moves no
/// other.
enum class SeedPurpose : std::uint32_t { kWeight, kConstants, kInput };

/// Random numbers that are the same on every host.
class SeededNumbers {
 public:
  SeededNumbers(std::uint64_t seed, SeedPurpose purpose, std::uint32_t index) {
    std::seed_seq sequence{static_cast<std::uint32_t>(seed),
                           static_cast<std::uint32_t>(seed >> 32U),
                           static_cast<std::uint32_t>(purpose), index};
    engine_.seed(sequence);
  }

  /// Bytes -127 .. 127, eight from every draw.
  void fill(std::vector<std::int8_t>& bytes) {
    std::uint64_t draw = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i, draw >>= 8U) {
      if (i % 8 == 0) draw = engine_();
      const auto byte = static_cast<std::int8_t>(static_cast<std::uint8_t>(draw));
      bytes[i] = std::max<std::int8_t>(byte, -127);
    }
  }

  double uniform(double lowest, double highest) {
    return lowest + (highest - lowest) * std::ldexp(static_cast<double>(engine_() >> 11U), -53);
  }

  /// Sum of twelve uniform numbers: close to normal, and never beyond six deviations.
  double normal(double deviation) {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += uniform(0.0, 1.0);
    return sum * deviation;
  }

 private:
  std::mt19937_64 engine_;
};

[[nodiscard]] inline double stream_deviation(const hw::Machine::Datapath& datapath) {
  return std::ldexp(1.0, static_cast<int>(datapath.residual_bits) - 5);
}

/// Score minus row maximum -> hw::kScoreFractionBits fraction bits, of heads of that width.
[[nodiscard]] inline double seeded_score_factor(std::uint32_t head_width) {
  return kScoreDeviation * std::exp2(double{hw::kScoreFractionBits}) /
         (std::sqrt(head_width) * kOperandDeviation * kOperandDeviation);
}

/// Of the mean that an attention takes over that many tokens, relative to that of its values. A
/// mean over tokens with log-normal weights deviates like one over so many equal ones, and what all
/// tokens have in common stays.
[[nodiscard]] inline double mean_deviation(std::uint32_t length) {
  const double tokens = std::max(1.0, length / std::exp(kScoreDeviation * kScoreDeviation));
  return std::sqrt(kCommonShare + (1.0 - kCommonShare) / tokens);
}

/// Which of a network's layers is made.
struct SeededLayer {
  std::string name;
  std::uint64_t seed;
  std::uint32_t index;  ///< of the layer: it has its own random numbers
  bool weights;         ///< off: without them
  bool bias;
  bool int4 = false;  ///< weights of -7 to 7
};

/// A layer whose input codes deviate by `in`, and its output codes by `out`.
[[nodiscard]] inline IntegerLinear seeded_linear(const LayerQuantiser& quantiser,
                                                 const SeededLayer& which, std::uint32_t inputs,
                                                 std::uint32_t outputs, double in, double out) {
  // Int4 weights are the upper halves of those of eight bits.
  constexpr int kHalf = 16;
  const double deviation = which.int4 ? kWeightDeviation / kHalf : kWeightDeviation;
  const double accumulator = std::sqrt(static_cast<double>(inputs)) * deviation * in;
  IntegerLinear layer;
  layer.int4 = which.int4;
  layer.inputs = inputs;
  layer.outputs = outputs;
  if (which.weights) {
    const std::size_t count = std::size_t{inputs} * outputs;
    const auto make = [count, seed = which.seed, index = which.index, int4 = which.int4] {
      std::vector<std::int8_t> weights(count);
      SeededNumbers(seed, SeedPurpose::kWeight, index).fill(weights);
      for (std::int8_t& weight : weights) {
        if (int4) weight = static_cast<std::int8_t>(weight / kHalf);
      }
      return weights;
    };
    layer.weight = hw::SharedVector<std::int8_t>::deferred(count, make);
  }
  SeededNumbers constants(which.seed, SeedPurpose::kConstants, which.index);
  for (std::uint32_t o = 0; o < outputs; ++o) {
    if (which.bias) {
      layer.bias.push_back(
          static_cast<std::int32_t>(std::nearbyint(constants.normal(0.1 * accumulator))));
    }
    layer.factor.push_back(
        quantiser.factor(which.name, out / accumulator * constants.uniform(0.8, 1.25)));
  }
  return layer;
}

}  // namespace systole::model

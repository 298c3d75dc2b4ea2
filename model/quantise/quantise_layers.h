#pragma once

#include <string>
#include <vector>

#include "hw/number/integer.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/integer/integer_vit.h"

/// The integer constants of single layers. Every error is an InputError that names layer and
/// quantity.
namespace systole::model {

/// Largest code of a symmetric 8-bit tensor.
inline constexpr double kLargestCode = 127.0;

/// Fraction bits of the attention output before its requantisation: those of the codes that the
/// softmax leaves, or of the late division by the row sum.
[[nodiscard]] int context_fraction_bits(const hw::Machine::Datapath& datapath);

/// The least range of a GELU's input of 16 bits: finer steps leave its product no room
/// (hw::check_gelu_scale()).
inline constexpr double kLeastGeluRange = 16.0;

/// Tensors of s16 and wider have room for so many times the calibrated maximum: other texts may
/// have larger values, and 13 bits of a row are left, of which its codes keep 7.
inline constexpr double kWideRoom = 4.0;
/// A scale at which values up to `largest`, and `room` times as much, have codes of `bits` bits.
/// Any scale serves values that are always zero.
[[nodiscard]] inline double code_scale(double largest, unsigned bits = 8, double room = 1.0) {
  return (largest > 0 ? largest : 1.0) * room / static_cast<double>(hw::symmetric_range(bits).hi);
}

/// Consecutive output channels that share an output scale.
struct OutputGroup {
  std::uint32_t channels = 0;
  double scale = 0.0;
};

class LayerQuantiser {
 public:
  LayerQuantiser(std::string path, unsigned multiplier_bits, bool per_channel)
      : path_(std::move(path)), multiplier_bits_(multiplier_bits), per_channel_(per_channel) {}

  /// The groups cover all outputs of the layer; a weight scale per group unless per channel.
  /// Weights of 4 bits have the scale that comes closest to them, by the sum of squares; those of a
  /// format of MX a power of two, of inputs that are whole groups.
  [[nodiscard]] IntegerLinear linear(const std::string& name, const FloatLinear& layer,
                                     double input_scale, const std::vector<OutputGroup>& groups,
                                     unsigned weight_bits = 8,
                                     hw::WeightFormat format = hw::WeightFormat::kInt8) const;
  [[nodiscard]] IntegerLayerNorm layer_norm(const std::string& name, const FloatNorm& norm,
                                            double output_scale) const;
  /// Of an input of `bits` bits.
  [[nodiscard]] hw::GeluConstants gelu(const std::string& name, double input_scale,
                                       double output_scale, unsigned bits) const;
  /// Factor that takes the largest exponential of a row to 2^bits - 1.
  [[nodiscard]] hw::Dyadic exp_to_code(unsigned bits) const;
  [[nodiscard]] hw::Dyadic factor(const std::string& name, double value) const;

  [[noreturn]] void fail(const std::string& layer, const std::string& what) const;

 private:
  std::string path_;
  unsigned multiplier_bits_;
  bool per_channel_;
};

}  // namespace systole::model

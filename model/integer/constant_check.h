#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/machine/machine.h"
#include "model/integer/integer_vit.h"

namespace systole::model {

/// Whether the product of an s16 input, the polynomial and the output multiplier fits 63 bits.
[[nodiscard]] bool fits_gelu_product(const hw::GeluConstants& gelu);

/// Constants of single layers that a datapath cannot hold, or that could overflow an accumulator.
/// Every check throws InputError that begins with `place` and names layer and quantity. Shapes are
/// not checked here.
class ConstantCheck {
 public:
  ConstantCheck(const std::string& place, const hw::Machine::Datapath& datapath)
      : place_(place),
        multiplier_bits_(datapath.multiplier_bits),
        multiplier_max_((std::int64_t{1} << datapath.multiplier_bits) - 1) {}

  void in_range(const std::string& name, std::int64_t value, std::int64_t lowest,
                std::int64_t highest) const;
  template <typename Values>
  void all_in_range(const std::string& name, const Values& values, std::int64_t lowest,
                    std::int64_t highest) const {
    for (const auto value : values) {
      if (value < lowest || value > highest) in_range(name, value, lowest, highest);
    }
  }
  /// Positive and finite.
  void scale(const std::string& name, double value) const;
  void factor(const std::string& name, hw::Dyadic factor, std::int64_t lowest_multiplier) const;
  /// Of inputs of that magnitude at most; pictures of bytes use all codes (model/data/image.h).
  void linear(const std::string& name, const IntegerLinear& layer,
              std::int64_t largest_input = 128) const;
  void norm(const std::string& name, const IntegerLayerNorm& norm) const;
  /// Of symmetric inputs of `bits` bits.
  void gelu(const std::string& name, const hw::GeluConstants& gelu, unsigned bits) const;

  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] unsigned multiplier_bits() const { return multiplier_bits_; }

 private:
  std::string place_;
  unsigned multiplier_bits_;
  std::int64_t multiplier_max_;
};

}  // namespace systole::model

#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "hw/number/dyadic.h"
#include "hw/number/integer.h"

/// Integer GELU: q (erf(q) + 1) with the second order erf polynomial of I-BERT,
/// L(x) = sgn(x) [a (clip(|x|, -b) + b)^2 + 1], a = -0.2888, b = -1.769, taken at S_in / sqrt 2.
namespace systole::hw {

inline constexpr double kErfA = -0.2888;
inline constexpr double kErfB = -1.769;

/// Constants of the default form. The output requantisation is part of it; its multiplier is
/// negative because a is.
struct GeluConstants {
  std::int64_t b;    ///< floor(-1.769 / S), negative: the clip point is |q| = -b
  std::int64_t c;    ///< floor(1 / (a S^2)), negative
  std::int64_t one;  ///< the code of 1 on the polynomial's scale a S^2
  Dyadic output;     ///< S_in a S^2 / (2 S_out)
};

/// Derives the constants for input scale S_in and output scale S_out, both finite and positive.
/// Throws InputError if a scale is not, or if the two do not fit one requantisation.
inline GeluConstants make_gelu_constants(double input_scale, double output_scale,
                                         unsigned multiplier_bits = kDefaultMultiplierBits) {
  for (const double scale : {input_scale, output_scale}) {
    if (!std::isfinite(scale) || scale < 1e-9) {
      throw InputError("GELU scale: " + std::to_string(scale) + ", expected a number above 1e-9");
    }
  }
  const double erf_scale = input_scale / std::sqrt(2.0);
  const double polynomial_scale = kErfA * erf_scale * erf_scale;
  const auto unit = static_cast<std::int64_t>(std::floor(1.0 / polynomial_scale));
  return {static_cast<std::int64_t>(std::floor(kErfB / erf_scale)), unit, unit,
          make_dyadic(input_scale * polynomial_scale / 2.0 / output_scale, multiplier_bits)};
}

/// Product q (erf + 1) before requantisation (the sign of erf at 0 does not matter, the product is
/// 0): 20 to 22 bits for an s8 input at usual scales, 32 for s12, 44 for s16.
constexpr std::int64_t gelu_product(std::int32_t q, const GeluConstants& constants) {
  const std::int64_t magnitude = q < 0 ? -std::int64_t{q} : std::int64_t{q};
  const std::int64_t clipped = std::min(magnitude, -constants.b) + constants.b;
  const std::int64_t polynomial = clipped * clipped + constants.c;
  const std::int64_t erf = q < 0 ? -polynomial : polynomial;
  return q * (erf + constants.one);
}

/// GELU of an s8 to s16 input, requantised (round half up) and clamped to a symmetric range.
constexpr std::int32_t gelu(std::int32_t q, const GeluConstants& constants,
                            unsigned output_bits = 8) {
  return static_cast<std::int32_t>(requantise(gelu_product(q, constants), constants.output,
                                              Rounding::kHalfUp, symmetric_range(output_bits)));
}

/// Width of the register that holds gelu_product(): 32 bits up to s12 inputs, 44 bits up to s16.
constexpr unsigned gelu_product_bits(unsigned input_bits) { return input_bits <= 12 ? 32 : 44; }

/// Coarsest input scale: above it the clip point -b is below three steps.
inline constexpr double kCoarsestGeluScale = 1.0;

/// Refuses an input scale the default datapath cannot serve: InputError if the product of the
/// largest input leaves its register (scale too fine) or the clip point loses its meaning (scale
/// too coarse). `input_bits` is 2 to 16.
inline void check_gelu_scale(double input_scale, unsigned input_bits) {
  if (input_bits < 2 || input_bits > 16) {
    throw InputError("GELU input: " + std::to_string(input_bits) + " bits, expected 2 to 16");
  }
  // The comparison is written so that NaN fails too.
  if (!(input_scale >= 1e-6 && input_scale <= kCoarsestGeluScale)) {
    throw InputError("GELU input scale: " + std::to_string(input_scale) +
                     ", expected 1e-6 to 1 (the erf polynomial needs its clip point 2.5 / scale)");
  }
  const GeluConstants constants = make_gelu_constants(input_scale, 1.0);
  const auto largest = static_cast<std::int32_t>(symmetric_range(input_bits).hi);
  const unsigned needed = signed_bits(gelu_product(largest, constants));
  const unsigned available = gelu_product_bits(input_bits);
  if (needed > available) {
    throw InputError("GELU input scale: " + std::to_string(input_scale) + " with " +
                     std::to_string(input_bits) + "-bit input needs a " + std::to_string(needed) +
                     "-bit product, the datapath has " + std::to_string(available) +
                     "; expected a coarser scale or a narrower input");
  }
}

/// Constants of the released I-BERT code, whose polynomial is floored by 14 bits.
struct IBertGeluConstants {
  std::int64_t b;
  std::int64_t c;
  std::int64_t one;  ///< "shift_int": the code of 1 after the floor, negative
};

inline constexpr unsigned kIBertGeluShift = 14;

/// The released code's derivation (sqrt 2 as 1.4142, double arithmetic), for S >= 9e-10: below, c
/// leaves 64 bits.
inline IBertGeluConstants make_ibert_gelu_constants(double input_scale) {
  const double erf_scale = input_scale / 1.4142;
  const double square = erf_scale * erf_scale;
  const double sigmoid_scale = square * kErfA * (1 << kIBertGeluShift);
  return {static_cast<std::int64_t>(std::floor(kErfB / erf_scale)),
          static_cast<std::int64_t>(std::floor(1.0 / kErfA / square)),
          static_cast<std::int64_t>(std::floor(1.0 / sigmoid_scale))};
}

/// Real value of one output step of ibert_gelu(): negative, because a is.
inline double ibert_gelu_output_scale(double input_scale) {
  const double erf_scale = input_scale / 1.4142;
  return input_scale * (erf_scale * erf_scale * kErfA * (1 << kIBertGeluShift)) / 2.0;
}

/// The released code's GELU, not requantised. Throws std::overflow_error if the result leaves 64
/// bits, which needs a scale outside check_ibert_gelu_scale().
constexpr std::int64_t ibert_gelu(std::int32_t q, const IBertGeluConstants& constants) {
  const Int128 magnitude = q < 0 ? -std::int64_t{q} : std::int64_t{q};
  const Int128 clipped = std::min<Int128>(magnitude, -Int128{constants.b}) + constants.b;
  const Int128 polynomial = clipped * clipped + constants.c;
  const Int128 erf = q < 0 ? -polynomial : polynomial;
  const Int128 result = q * ((erf >> kIBertGeluShift) + constants.one);
  if (result < std::numeric_limits<std::int64_t>::min() ||
      result > std::numeric_limits<std::int64_t>::max()) {
    throw std::overflow_error("ibert_gelu: result exceeds 64 bits");
  }
  return static_cast<std::int64_t>(result);
}

/// Finest and coarsest input scale of the I-BERT form with 32-bit registers: below, q (erf + 1)
/// overflows for |x| <= 8; above, the 14-bit floor leaves erf a resolution coarser than 1/256
/// (error 0.24 at 0.01, 31 at 0.05).
inline constexpr double kFinestIBertGeluScale = 1.5e-4;
inline constexpr double kCoarsestIBertGeluScale = 1.3e-3;

/// Throws InputError for an input scale outside the 32-bit window of the I-BERT form.
inline void check_ibert_gelu_scale(double input_scale) {
  if (!(input_scale >= kFinestIBertGeluScale && input_scale <= kCoarsestIBertGeluScale)) {
    throw InputError("I-BERT GELU input scale: " + std::to_string(input_scale) +
                     ", expected 1.5e-4 to 1.3e-3 (below, the 32-bit product overflows; above, "
                     "the 14-bit shift discards the polynomial); the default GELU takes it");
  }
}

}  // namespace systole::hw

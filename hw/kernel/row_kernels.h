#pragma once

#include <cstddef>
#include <cstdint>

#include "hw/function/gelu.h"
#include "hw/function/layernorm.h"
#include "hw/function/rope.h"
#include "hw/function/silu.h"
#include "hw/function/softmax.h"
#include "hw/number/dtype.h"
#include "hw/number/dyadic.h"

/// The loops of the post-op stages over n int32 elements, vectorised. Values are those of the
/// scalar functions (hw/number/dyadic.h, hw/function/gelu.h, hw/function/silu.h,
/// hw/function/softmax.h, hw/function/layernorm.h, hw/function/rope.h), bit for bit. Constants must
/// lie in the ranges that check_chain() enforces; the elements are arbitrary.
namespace systole::hw::row {

struct Clamp {
  std::int32_t lo;
  std::int32_t hi;
};

/// x + y, saturated; `rows` consecutive rows of n elements with the same y.
void add(std::int32_t* x, const std::int32_t* y, std::size_t n, std::size_t rows);
/// x - y, in the same way.
void subtract(std::int32_t* x, const std::int32_t* y, std::size_t n, std::size_t rows);
/// x * y / 2^shift (0 to 63), rounded and clamped, with the same y in all rows.
void multiply(std::int32_t* x, const std::int32_t* y, std::size_t n, std::size_t rows,
              unsigned shift, Rounding rounding, Clamp limits);
/// x where the mask is not 0, elsewhere `fill`, with the same mask in all rows.
void select(std::int32_t* x, const std::int32_t* mask, std::size_t n, std::size_t rows,
            std::int32_t fill);
/// Turns pairs of elements by pairs of the table (hw/function/rope.h); n is even, shift 0 to 63.
void rope(std::int32_t* x, const std::int32_t* table, std::size_t n, unsigned shift,
          Rounding rounding, Clamp limits);
void clamp(std::int32_t* x, std::size_t n, Clamp limits);
/// |factor.multiplier| < 2^31.
void requantise(std::int32_t* x, std::size_t n, Dyadic factor, Rounding rounding, Clamp limits);
/// Factor i for element i of `rows` consecutive rows: multipliers above -2^31, shifts 0 to 63.
void requantise_channels(std::int32_t* x, std::size_t n, std::size_t rows,
                         const std::int32_t* multipliers, const std::int32_t* shifts,
                         Rounding rounding, Clamp limits);

/// Input saturated to s16.
void gelu(std::int32_t* x, std::size_t n, const GeluConstants& constants, Clamp limits);

/// Input saturated to s16 (hw/function/silu.h).
void silu(std::int32_t* x, std::size_t n, const SiluConstants& constants, Clamp limits);

[[nodiscard]] std::int32_t maximum(const std::int32_t* x, std::size_t n);
/// Replaces scores by softmax_exponential().
void exponentials(std::int32_t* x, std::size_t n, std::int32_t maximum,
                  const SoftmaxConstants& constants);
[[nodiscard]] std::uint64_t sum_unsigned(const std::int32_t* x, std::size_t n);
/// softmax_normalised_code() of exponentials, with factor_bits 32.
void normalise_exponentials(std::int32_t* x, std::size_t n, std::uint64_t sum,
                            const SoftmaxConstants& constants);

/// Replaces the exponentials of a row by softmax codes. Returns the divisor that the deferred mode
/// leaves for later: the sum of the codes, at least 1; 1 in the other modes.
[[nodiscard]] std::uint32_t softmax_codes(std::int32_t* x, std::size_t n,
                                          const SoftmaxConstants& constants);

[[nodiscard]] std::int64_t sum(const std::int32_t* x, std::size_t n);
/// Of elements within kLayerNormMaxInputBits, at most kLayerNormMaxLength.
[[nodiscard]] std::uint64_t sum_squares(const std::int32_t* x, std::size_t n);

/// What a LayerNorm input saturates to.
inline constexpr Clamp kLayerNormInputs{-(1 << (kLayerNormMaxInputBits - 1)),
                                        (1 << (kLayerNormMaxInputBits - 1)) - 1};
/// layernorm_statistics() of a row within kLayerNormMaxInputBits.
[[nodiscard]] LayerNormStatistics layer_norm_statistics(const std::int32_t* x, std::size_t n);
struct LayerNormFactors {
  const std::int32_t* multipliers;
  const std::int32_t* biases;  ///< nullptr: none
  unsigned shift;
  unsigned fraction_bits;
};
/// Of elements within kLayerNormMaxInputBits; with rms_norm_statistics() (hw/function/rms_norm.h)
/// and no biases this is RMSNorm.
void layer_norm_output(std::int32_t* x, std::size_t n, const LayerNormStatistics& statistics,
                       const LayerNormFactors& factors, Clamp limits);

/// Widens elements of a type from memory; `from` needs no alignment.
void widen(const void* from, DType type, std::int32_t* to, std::size_t n);
/// Saturates to a type and writes to memory; `to` needs no alignment.
void narrow(const std::int32_t* from, void* to, DType type, std::size_t n);

}  // namespace systole::hw::row

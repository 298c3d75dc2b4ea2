#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "hw/kernel/row_kernels.h"

/// The row kernels as plain loops over the scalar functions: for hosts without vectors, and what
/// the tests measure the others against.
namespace systole::hw::row::plain {

inline std::int32_t clamp_value(std::int64_t x, Clamp limits) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(x, limits.lo, limits.hi));
}

constexpr IntRange range(Clamp limits) { return {limits.lo, limits.hi}; }

/// x[i] = function(x[i], y[i]) in `rows` consecutive rows of n elements with the same y.
template <typename Function>
void combine_rows(std::int32_t* x, const std::int32_t* y, std::size_t n, std::size_t rows,
                  const Function& function) {
  for (std::int32_t* const end = x + n * rows; x != end; x += n) {
    for (std::size_t i = 0; i < n; ++i) x[i] = function(x[i], y[i]);
  }
}

inline std::int32_t saturate32(std::int64_t x) {
  return static_cast<std::int32_t>(saturate(x, full_range(32)));
}

inline void add_rows(std::int32_t* x, const std::int32_t* y, std::size_t n, std::size_t rows) {
  combine_rows(x, y, n, rows, [](std::int64_t a, std::int64_t b) { return saturate32(a + b); });
}

inline void subtract_rows(std::int32_t* x, const std::int32_t* y, std::size_t n, std::size_t rows) {
  combine_rows(x, y, n, rows, [](std::int64_t a, std::int64_t b) { return saturate32(a - b); });
}

inline void multiply_rows(std::int32_t* x, const std::int32_t* y, std::size_t n, std::size_t rows,
                          unsigned shift, Rounding rounding, Clamp limits) {
  combine_rows(x, y, n, rows, [=](std::int64_t a, std::int64_t b) {
    return clamp_value(shift_right(a * b, shift, rounding), limits);
  });
}

inline void select_rows(std::int32_t* x, const std::int32_t* mask, std::size_t n, std::size_t rows,
                        std::int32_t fill) {
  combine_rows(x, mask, n, rows,
               [fill](std::int32_t a, std::int32_t keep) { return keep != 0 ? a : fill; });
}

inline void rope_row(std::int32_t* x, const std::int32_t* table, std::size_t n, unsigned shift,
                     Rounding rounding, Clamp limits) {
  for (std::size_t i = 0; i < n; i += 2) {
    const RopePair turned =
        hw::rope({x[i], x[i + 1]}, {table[i], table[i + 1]}, shift, rounding, range(limits));
    x[i] = turned.even;
    x[i + 1] = turned.odd;
  }
}

inline void clamp_row(std::int32_t* x, std::size_t n, Clamp limits) {
  for (std::size_t i = 0; i < n; ++i) x[i] = clamp_value(x[i], limits);
}

inline void requantise_row(std::int32_t* x, std::size_t n, Dyadic factor, Rounding rounding,
                           Clamp limits) {
  for (std::size_t i = 0; i < n; ++i) x[i] = clamp_value(scale(x[i], factor, rounding), limits);
}

inline void requantise_channels_rows(std::int32_t* x, std::size_t n, std::size_t rows,
                                     const std::int32_t* multipliers, const std::int32_t* shifts,
                                     Rounding rounding, Clamp limits) {
  for (std::int32_t* const end = x + n * rows; x != end; x += n) {
    for (std::size_t i = 0; i < n; ++i) {
      const Dyadic factor{multipliers[i], static_cast<std::int8_t>(shifts[i])};
      x[i] = clamp_value(scale(x[i], factor, rounding), limits);
    }
  }
}

inline void gelu_row(std::int32_t* x, std::size_t n, const GeluConstants& constants, Clamp limits) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t product = gelu_product(std::clamp(x[i], -32768, 32767), constants);
    x[i] = clamp_value(scale(product, constants.output, Rounding::kHalfUp), limits);
  }
}

inline void silu_row(std::int32_t* x, std::size_t n, const SiluConstants& constants, Clamp limits) {
  for (std::size_t i = 0; i < n; ++i) x[i] = hw::silu(x[i], constants, range(limits));
}

inline std::int32_t maximum_row(const std::int32_t* x, std::size_t n) {
  return softmax_maximum(x, nullptr, n);
}

inline std::uint64_t sum_unsigned_row(const std::int32_t* x, std::size_t n) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += static_cast<std::uint32_t>(x[i]);
  return sum;
}

inline void exponentials_row(std::int32_t* x, std::size_t n, std::int32_t maximum,
                             const SoftmaxConstants& constants) {
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = static_cast<std::int32_t>(softmax_exponential(x[i], maximum, constants));
  }
}

inline void normalise_row(std::int32_t* x, std::size_t n, std::uint64_t sum,
                          const SoftmaxConstants& constants) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto exponential = static_cast<std::uint32_t>(x[i]);
    x[i] = static_cast<std::int32_t>(softmax_normalised_code(exponential, sum, constants));
  }
}

inline std::int64_t sum_row(const std::int32_t* x, std::size_t n) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

inline std::uint64_t sum_squares_row(const std::int32_t* x, std::size_t n, std::int32_t mean) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto y = static_cast<std::uint64_t>(std::int64_t{x[i]} - mean);
    sum += y * y;
  }
  return sum;
}

inline void layer_norm_row(std::int32_t* x, std::size_t n, const LayerNormStatistics& statistics,
                           const LayerNormFactors& factors, Clamp limits) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t norm = layernorm_normalise(x[i], statistics, factors.fraction_bits);
    const std::int32_t bias = factors.biases == nullptr ? 0 : factors.biases[i];
    x[i] = norm_output(norm, factors.multipliers[i], bias, factors.shift, range(limits));
  }
}

template <typename T>
void widen_as(const void* from, std::int32_t* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, static_cast<const unsigned char*>(from) + i * sizeof(T), sizeof(T));
    to[i] = value;
  }
}

template <typename T>
void narrow_as(const std::int32_t* from, void* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto value = static_cast<T>(
        clamp_value(from[i], {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()}));
    std::memcpy(static_cast<unsigned char*>(to) + i * sizeof(T), &value, sizeof(T));
  }
}

}  // namespace systole::hw::row::plain

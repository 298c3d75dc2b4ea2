#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "model/checkpoint/float_layers.h"

/// What is between the matrix products of a Transformer; T is float or double.
namespace systole::model {

template <typename T>
T gelu(T x, GeluForm form) {
  if (form == GeluForm::kErf) return T(0.5) * x * (1 + std::erf(x / std::sqrt(T(2))));
  // Hendrycks and Gimpel, arXiv 1606.08415.
  const T inner = std::sqrt(T(2) / T(M_PI)) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (1 + std::tanh(inner));
}

/// Of row times scale, in place, over the keys with keep[i] != 0, one at the least; over all if
/// `keep` is null.
template <typename T>
void softmax_row(T* row, std::size_t n, T scale, const std::uint8_t* keep = nullptr) {
  T maximum = -std::numeric_limits<T>::infinity();
  for (std::size_t i = 0; i < n; ++i) {
    const bool kept = keep == nullptr || keep[i] != 0;
    row[i] = kept ? row[i] * scale : -std::numeric_limits<T>::infinity();
    maximum = std::max(maximum, row[i]);
  }
  T sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    row[i] = std::exp(row[i] - maximum);
    sum += row[i];
  }
  for (std::size_t i = 0; i < n; ++i) row[i] /= sum;
}

/// A row normalised, times weight, plus bias.
template <typename T>
void layer_norm_row(const T* in, const T* weight, const T* bias, std::size_t width, T epsilon,
                    T* out) {
  const auto count = static_cast<T>(width);
  T sum = 0;
  for (std::size_t i = 0; i < width; ++i) sum += in[i];
  const T mean = sum / count;
  T squares = 0;
  for (std::size_t i = 0; i < width; ++i) squares += (in[i] - mean) * (in[i] - mean);
  const T deviation = std::sqrt(squares / count + epsilon);
  for (std::size_t i = 0; i < width; ++i) {
    out[i] = (in[i] - mean) / deviation * weight[i] + bias[i];
  }
}

}  // namespace systole::model

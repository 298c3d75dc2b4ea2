#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "support/random/seeded_tensors.h"

namespace systole::model {

/// Layers of Transformers in plain loops over the tensors of a file, as Hugging Face's names mean
/// them: for networks that loader and real-valued executor are compared with.
class PlainLayers {
 public:
  using Matrix = std::vector<std::vector<double>>;

 protected:
  /// `tensors` outlive this object.
  PlainLayers(const test::SeededTensors& tensors, std::size_t heads)
      : tensors_(tensors), heads_(heads) {}

  /// Element (o, i) of the weight is values[o * row + i * col].
  [[nodiscard]] Matrix product(const Matrix& x, const std::string& name, bool is_conv1d) const {
    const auto weight = tensors_.values(name + ".weight"), bias = tensors_.values(name + ".bias");
    const std::size_t outputs = bias.size(), inputs = weight.size() / outputs;
    Matrix y(x.size(), bias);
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t o = 0; o < outputs; ++o) {
        for (std::size_t i = 0; i < inputs; ++i) {
          y[t][o] += x[t][i] * weight[is_conv1d ? i * outputs + o : o * inputs + i];
        }
      }
    }
    return y;
  }
  [[nodiscard]] Matrix linear(const Matrix& x, const std::string& name) const {
    return product(x, name, false);
  }
  [[nodiscard]] Matrix conv1d(const Matrix& x, const std::string& name) const {
    return product(x, name, true);
  }

  [[nodiscard]] Matrix norm(Matrix x, const std::string& name, double epsilon) const {
    const auto weight = tensors_.values(name + ".weight"), bias = tensors_.values(name + ".bias");
    for (auto& row : x) {
      const auto width = static_cast<double>(row.size());
      double mean = 0, variance = 0;
      for (const double v : row) mean += v / width;
      for (const double v : row) variance += (v - mean) * (v - mean) / width;
      for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] = (row[i] - mean) / std::sqrt(variance + epsilon) * weight[i] + bias[i];
      }
    }
    return x;
  }

  static Matrix sum(Matrix a, const Matrix& b) {
    for (std::size_t t = 0; t < a.size(); ++t) {
      for (std::size_t i = 0; i < a[t].size(); ++i) a[t][i] += b[t][i];
    }
    return a;
  }

  /// `count` columns from `first`.
  static Matrix columns(const Matrix& x, std::size_t first, std::size_t count) {
    Matrix y;
    for (const auto& row : x) {
      const auto begin = row.begin() + static_cast<std::ptrdiff_t>(first);
      y.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
    }
    return y;
  }

  /// With the error function.
  static Matrix gelu(Matrix x) {
    for (auto& row : x) {
      for (double& v : row) v = v * 0.5 * std::erfc(-v / std::sqrt(2.0));
    }
    return x;
  }

  [[nodiscard]] Matrix attention(const Matrix& query, const Matrix& key, const Matrix& value,
                                 bool causal) const {
    const std::size_t width = query[0].size(), head = width / heads_;
    Matrix context(query.size(), std::vector<double>(width, 0.0));
    for (std::size_t first = 0; first < width; first += head) {
      for (std::size_t t = 0; t < query.size(); ++t) {
        const std::size_t keys = causal ? t + 1 : query.size();
        std::vector<double> weights(keys, 0.0);
        double total = 0;
        for (std::size_t k = 0; k < keys; ++k) {
          for (std::size_t i = first; i < first + head; ++i) weights[k] += query[t][i] * key[k][i];
          weights[k] = std::exp(weights[k] / std::sqrt(static_cast<double>(head)));
          total += weights[k];
        }
        for (std::size_t k = 0; k < keys; ++k) {
          for (std::size_t i = first; i < first + head; ++i) {
            context[t][i] += weights[k] / total * value[k][i];
          }
        }
      }
    }
    return context;
  }

  const test::SeededTensors& tensors_;
  std::size_t heads_;
};

}  // namespace systole::model

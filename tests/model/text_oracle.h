#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/tiny_text.h"

namespace systole::model {

/// BERT and GPT-2 in plain loops over the tensors of a file as Hugging Face's names mean them: what
/// loader and real-valued executor are compared with.
class TextOracle {
 public:
  using Matrix = std::vector<std::vector<double>>;

  explicit TextOracle(const test::TinyText& text) : text_(text) {}

  [[nodiscard]] Matrix bert(const std::vector<std::int32_t>& ids,
                            const std::string& prefix = "bert.") const {
    Matrix x = embed(ids, prefix + "embeddings.word_embeddings.weight",
                     prefix + "embeddings.position_embeddings.weight");
    const auto type = text_.values(prefix + "embeddings.token_type_embeddings.weight");
    for (auto& row : x) {
      for (std::size_t i = 0; i < kWidth; ++i) row[i] += type[i];
    }
    x = norm(x, prefix + "embeddings.LayerNorm", 1e-12);
    for (std::size_t i = 0; i < test::TinyText::kLayers; ++i) {
      const std::string layer = prefix + "encoder.layer." + std::to_string(i) + ".";
      const Matrix context = attention(linear(x, layer + "attention.self.query"),
                                       linear(x, layer + "attention.self.key"),
                                       linear(x, layer + "attention.self.value"), false);
      x = norm(sum(linear(context, layer + "attention.output.dense"), x),
               layer + "attention.output.LayerNorm", 1e-12);
      Matrix hidden = linear(x, layer + "intermediate.dense");
      for (auto& row : hidden) {
        for (double& v : row) v = v * 0.5 * std::erfc(-v / std::sqrt(2.0));
      }
      x = norm(sum(linear(hidden, layer + "output.dense"), x), layer + "output.LayerNorm", 1e-12);
    }
    return x;
  }

  [[nodiscard]] Matrix gpt2(const std::vector<std::int32_t>& ids,
                            const std::string& prefix = "transformer.") const {
    Matrix x = embed(ids, prefix + "wte.weight", prefix + "wpe.weight");
    for (std::size_t i = 0; i < test::TinyText::kLayers; ++i) {
      const std::string layer = prefix + "h." + std::to_string(i) + ".";
      const Matrix qkv = conv1d(norm(x, layer + "ln_1", 1e-5), layer + "attn.c_attn");
      const Matrix context =
          attention(columns(qkv, 0), columns(qkv, kWidth), columns(qkv, 2 * kWidth), true);
      x = sum(conv1d(context, layer + "attn.c_proj"), x);
      Matrix hidden = conv1d(norm(x, layer + "ln_2", 1e-5), layer + "mlp.c_fc");
      for (auto& row : hidden) {
        for (double& v : row) {
          v = 0.5 * v * (1.0 + std::tanh(0.7978845608028654 * (v + 0.044715 * std::pow(v, 3.0))));
        }
      }
      x = sum(conv1d(hidden, layer + "mlp.c_proj"), x);
    }
    return norm(x, prefix + "ln_f", 1e-5);
  }

 private:
  static constexpr std::size_t kWidth = test::TinyText::kWidth;

  [[nodiscard]] Matrix embed(const std::vector<std::int32_t>& ids, const std::string& words,
                             const std::string& positions) const {
    const auto word = text_.values(words), position = text_.values(positions);
    Matrix x(ids.size(), std::vector<double>(kWidth));
    for (std::size_t t = 0; t < ids.size(); ++t) {
      for (std::size_t i = 0; i < kWidth; ++i) {
        x[t][i] = word[static_cast<std::size_t>(ids[t]) * kWidth + i] + position[t * kWidth + i];
      }
    }
    return x;
  }

  /// Element (o, i) of the weight is values[o * row + i * col].
  [[nodiscard]] Matrix product(const Matrix& x, const std::string& name, bool is_conv1d) const {
    const auto weight = text_.values(name + ".weight"), bias = text_.values(name + ".bias");
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
    const auto weight = text_.values(name + ".weight"), bias = text_.values(name + ".bias");
    for (auto& row : x) {
      double mean = 0, variance = 0;
      for (const double v : row) mean += v / static_cast<double>(kWidth);
      for (const double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(kWidth);
      for (std::size_t i = 0; i < kWidth; ++i) {
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

  static Matrix columns(const Matrix& x, std::size_t first) {
    Matrix y;
    for (const auto& row : x) {
      const auto begin = row.begin() + static_cast<std::ptrdiff_t>(first);
      y.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(kWidth));
    }
    return y;
  }

  static Matrix attention(const Matrix& query, const Matrix& key, const Matrix& value,
                          bool causal) {
    constexpr std::size_t kHead = kWidth / test::TinyText::kHeads;
    Matrix context(query.size(), std::vector<double>(kWidth, 0.0));
    for (std::size_t first = 0; first < kWidth; first += kHead) {
      for (std::size_t t = 0; t < query.size(); ++t) {
        const std::size_t keys = causal ? t + 1 : query.size();
        std::vector<double> weights(keys, 0.0);
        double total = 0;
        for (std::size_t k = 0; k < keys; ++k) {
          for (std::size_t i = first; i < first + kHead; ++i) weights[k] += query[t][i] * key[k][i];
          weights[k] = std::exp(weights[k] / std::sqrt(static_cast<double>(kHead)));
          total += weights[k];
        }
        for (std::size_t k = 0; k < keys; ++k) {
          for (std::size_t i = first; i < first + kHead; ++i) {
            context[t][i] += weights[k] / total * value[k][i];
          }
        }
      }
    }
    return context;
  }

  const test::TinyText& text_;
};

}  // namespace systole::model

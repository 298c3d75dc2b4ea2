#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/network/tiny_text.h"
#include "tests/model/plain_layers.h"

namespace systole::model {

/// BERT and GPT-2 in plain loops over the tensors of a file as Hugging Face's names mean them: what
/// loader and real-valued executor are compared with.
class TextOracle : public PlainLayers {
 public:
  explicit TextOracle(const test::TinyText& text) : PlainLayers(text, test::TinyText::kHeads) {}

  [[nodiscard]] Matrix bert(const std::vector<std::int32_t>& ids,
                            const std::string& prefix = "bert.") const {
    return typed_bert(ids, std::vector<std::int32_t>(ids.size()), prefix);
  }

  /// With a type for each token.
  [[nodiscard]] Matrix typed_bert(const std::vector<std::int32_t>& ids,
                                  const std::vector<std::int32_t>& types,
                                  const std::string& prefix = "bert.") const {
    Matrix x = embed(ids, prefix + "embeddings.word_embeddings.weight",
                     prefix + "embeddings.position_embeddings.weight");
    const auto type = tensors_.values(prefix + "embeddings.token_type_embeddings.weight");
    for (std::size_t t = 0; t < x.size(); ++t) {
      const std::size_t row = static_cast<std::size_t>(types[t]) * kWidth;
      for (std::size_t i = 0; i < kWidth; ++i) x[t][i] += type[row + i];
    }
    x = norm(x, prefix + "embeddings.LayerNorm", 1e-12);
    for (std::size_t i = 0; i < test::TinyText::kLayers; ++i) {
      const std::string layer = prefix + "encoder.layer." + std::to_string(i) + ".";
      const Matrix context = attention(linear(x, layer + "attention.self.query"),
                                       linear(x, layer + "attention.self.key"),
                                       linear(x, layer + "attention.self.value"), false);
      x = norm(sum(linear(context, layer + "attention.output.dense"), x),
               layer + "attention.output.LayerNorm", 1e-12);
      const Matrix hidden = gelu(linear(x, layer + "intermediate.dense"));
      x = norm(sum(linear(hidden, layer + "output.dense"), x), layer + "output.LayerNorm", 1e-12);
    }
    return x;
  }

  /// The logits of TinyText::classifier().
  [[nodiscard]] std::vector<double> classify(const std::vector<std::int32_t>& ids,
                                             const std::vector<std::int32_t>& types,
                                             const std::string& prefix = "bert.") const {
    Matrix first = typed_bert(ids, types, prefix);
    first.resize(1);
    Matrix pooled = linear(first, prefix + "pooler.dense");
    for (double& x : pooled[0]) x = std::tanh(x);
    return linear(pooled, "classifier")[0];
  }

  [[nodiscard]] Matrix gpt2(const std::vector<std::int32_t>& ids,
                            const std::string& prefix = "transformer.") const {
    Matrix x = embed(ids, prefix + "wte.weight", prefix + "wpe.weight");
    for (std::size_t i = 0; i < test::TinyText::kLayers; ++i) {
      const std::string layer = prefix + "h." + std::to_string(i) + ".";
      const Matrix qkv = conv1d(norm(x, layer + "ln_1", 1e-5), layer + "attn.c_attn");
      const Matrix context = attention(columns(qkv, 0, kWidth), columns(qkv, kWidth, kWidth),
                                       columns(qkv, 2 * kWidth, kWidth), true);
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
    const auto word = tensors_.values(words), position = tensors_.values(positions);
    Matrix x(ids.size(), std::vector<double>(kWidth));
    for (std::size_t t = 0; t < ids.size(); ++t) {
      for (std::size_t i = 0; i < kWidth; ++i) {
        x[t][i] = word[static_cast<std::size_t>(ids[t]) * kWidth + i] + position[t * kWidth + i];
      }
    }
    return x;
  }
};

}  // namespace systole::model

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/function/half_table.h"
#include "hw/number/half.h"
#include "hw/ring/half_gemv.h"
#include "model/float/gpt.h"

namespace systole::test {

/// GPT-2 or a Llama in FP16 with the roundings of a core with trees of `depth` inputs, from its
/// definition alone: no tiles, no registers, no parts. Heads are whole registers, and so are the
/// sums that go through the trees.
class GptOracle {
 public:
  using Half = hw::Half;
  using Vector = std::vector<Half>;

  /// Vectors and heads are filled up to whole registers and slices of `lanes`.
  explicit GptOracle(const model::Gpt& gpt, std::size_t depth = 64, std::size_t lanes = 16)
      : gpt_(gpt),
        depth_(depth),
        unit_(std::max(depth, lanes)),
        head_(gpt.shape.head_width()),
        layers_(gpt.layers.size()) {}

  /// After the next token.
  Vector logits(std::uint32_t token) {
    const std::size_t d = gpt_.shape.encoder.width;
    Vector x(d);
    for (std::size_t i = 0; i < d; ++i) {
      x[i] = gpt_.word[token * d + i];
      if (!is_llama()) x[i] = hw::half_add(x[i], gpt_.position[position_ * d + i]);
    }
    for (std::size_t l = 0; l < gpt_.layers.size(); ++l) {
      const model::GptLayer& layer = gpt_.layers[l];
      const Vector n = norm(x, layer.norm1);
      layers_[l].keys.push_back(turned(linear(n, layer.key)));
      layers_[l].values.push_back(linear(n, layer.value));
      x = sum(x,
              linear_of_heads(attention(turned(linear(n, layer.query)), layers_[l]), layer.proj));
      x = sum(x, linear(hidden(norm(x, layer.norm2), layer), layer.fc2));
    }
    ++position_;
    const Vector n = norm(x, gpt_.norm);
    Vector logits(gpt_.shape.vocabulary);
    for (std::size_t v = 0; v < logits.size(); ++v) {
      logits[v] = column(
          n, [&](std::size_t k) { return gpt_.head()[v * d + k]; }, hw::kHalfZero);
    }
    return logits;
  }

 private:
  struct Cache {
    std::vector<Vector> keys, values;
  };

  [[nodiscard]] bool is_llama() const { return gpt_.shape.llama.has_value(); }
  [[nodiscard]] std::size_t filled(std::size_t size) const {
    return (size + unit_ - 1) / unit_ * unit_;
  }

  [[nodiscard]] Half tree(Vector products) const {
    products.resize(depth_, hw::kHalfZero);
    return hw::half_tree(products.data(), depth_);
  }
  template <typename Weight>
  [[nodiscard]] Half column(const Vector& x, Weight weight, Half start) const {
    Half sum = start;
    for (std::size_t k = 0; k < x.size(); k += depth_) {
      Vector products;
      for (std::size_t i = k; i < std::min(k + depth_, x.size()); ++i) {
        products.push_back(hw::half_mul(x[i], weight(i)));
      }
      sum = hw::half_add(sum, tree(products));
    }
    return sum;
  }
  static Half bias_of(const model::HalfLinear& linear, std::size_t n) {
    return linear.bias.empty() ? hw::kHalfZero : linear.bias[n];
  }
  [[nodiscard]] Vector linear(const Vector& x, const model::HalfLinear& linear) const {
    Vector y(linear.outputs);
    for (std::size_t n = 0; n < y.size(); ++n) {
      y[n] = column(
          x, [&](std::size_t k) { return linear.weight[k * linear.outputs + n]; },
          bias_of(linear, n));
    }
    return y;
  }
  /// The inputs of each head fill registers of their own.
  [[nodiscard]] Vector linear_of_heads(const Vector& x, const model::HalfLinear& linear) const {
    const std::size_t pad = filled(head_);
    Vector padded(x.size() / head_ * pad, hw::kHalfZero);
    for (std::size_t i = 0; i < x.size(); ++i) padded[i / head_ * pad + i % head_] = x[i];
    Vector y(linear.outputs);
    for (std::size_t n = 0; n < y.size(); ++n) {
      const auto weight = [&](std::size_t k) {
        if (k % pad >= head_) return hw::kHalfZero;
        return linear.weight[(k / pad * head_ + k % pad) * linear.outputs + n];
      };
      y[n] = column(padded, weight, bias_of(linear, n));
    }
    return y;
  }
  static Vector sum(const Vector& a, const Vector& b) {
    Vector y(a.size());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = hw::half_add(a[i], b[i]);
    return y;
  }
  [[nodiscard]] Half total(Vector x) const {
    while (true) {
      Vector sums;
      for (std::size_t i = 0; i < x.size(); i += depth_) {
        sums.push_back(
            tree({x.begin() + static_cast<std::ptrdiff_t>(i),
                  x.begin() + static_cast<std::ptrdiff_t>(std::min(i + depth_, x.size()))}));
      }
      if (sums.size() == 1) return sums.front();
      x = sums;
    }
  }
  [[nodiscard]] Vector hidden(const Vector& n, const model::GptLayer& layer) const {
    Vector up = linear(n, layer.fc1);
    if (!is_llama()) {
      for (Half& h : up) h = hw::half_gelu(h);
      return up;
    }
    const Vector gate = linear(n, layer.gate);
    for (std::size_t i = 0; i < up.size(); ++i) up[i] = hw::half_mul(hw::half_silu(gate[i]), up[i]);
    return up;
  }
  [[nodiscard]] Vector norm(const Vector& x, const model::HalfNorm& parameters) const {
    return is_llama() ? rms_norm(x, parameters) : layer_norm(x, parameters);
  }
  [[nodiscard]] Vector layer_norm(const Vector& x, const model::HalfNorm& parameters) const {
    const double n = static_cast<double>(x.size());
    const Half mean = hw::half_mul(total(x), hw::to_half(1 / n));
    const double scale = std::exp2(-std::round(std::log2(n) / 2));
    Vector centred, squares;
    for (const Half value : x) {
      centred.push_back(hw::half_sub(value, mean));
      const Half small = hw::half_mul(centred.back(), hw::to_half(scale));
      squares.push_back(hw::half_mul(small, small));
    }
    const Half variance = hw::half_mul(total(squares), hw::to_half(1 / (n * scale * scale)));
    const Half inverse = hw::half_recip_sqrt(hw::half_add(variance, hw::to_half(1e-5)));
    for (std::size_t i = 0; i < x.size(); ++i) {
      centred[i] =
          hw::half_add(hw::half_mul(hw::half_mul(centred[i], inverse), parameters.weight[i]),
                       parameters.bias[i]);
    }
    return centred;
  }
  /// The root of width x epsilon is one more element, in a register of its own.
  [[nodiscard]] Vector rms_norm(const Vector& x, const model::HalfNorm& parameters) const {
    const double n = static_cast<double>(x.size());
    Vector all = x;
    all.resize(filled(x.size()), hw::kHalfZero);
    all.push_back(hw::to_half(std::sqrt(n * gpt_.norm_epsilon)));
    Half peak = hw::kHalfZero;
    for (const Half value : all) {
      peak = hw::half_max(peak, Half{static_cast<std::uint16_t>(value.bits & hw::kHalfMagnitude)});
    }
    Vector squares;
    for (Half& value : all) {
      value = hw::half_mul(value, hw::half_recip(peak));
      squares.push_back(hw::half_mul(value, value));
    }
    const Half inverse = hw::half_recip_sqrt(hw::half_mul(total(squares), hw::to_half(1 / n)));
    all.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      all[i] = hw::half_mul(hw::half_mul(all[i], inverse), parameters.weight[i]);
    }
    return all;
  }
  /// Of a Llama: pairs of neighbours of each head by the angle of the position.
  [[nodiscard]] Vector turned(const Vector& x) const {
    if (!is_llama()) return x;
    Vector y(x.size());
    for (std::size_t i = 0; i < x.size(); i += 2) {
      const std::vector<double>& scaled = gpt_.shape.llama->rope_frequencies;
      const double feature = static_cast<double>(i % head_) / static_cast<double>(head_);
      const double angle = static_cast<double>(position_) *
                           (scaled.empty() ? std::pow(gpt_.shape.llama->rope_base, -feature)
                                           : scaled[i % head_ / 2]);
      const Half cosine = hw::to_half(std::cos(angle)), sine = hw::to_half(std::sin(angle));
      y[i] = hw::half_sub(hw::half_mul(x[i], cosine), hw::half_mul(x[i + 1], sine));
      y[i + 1] = hw::half_add(hw::half_mul(x[i + 1], cosine), hw::half_mul(x[i], sine));
    }
    return y;
  }
  [[nodiscard]] Vector attention(const Vector& query, const Cache& cache) const {
    const std::size_t heads = gpt_.shape.encoder.heads;
    const Half scale = hw::to_half(1 / std::sqrt(static_cast<double>(head_)));
    Vector out(query.size());
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t shared = h / gpt_.shape.group() * head_;
      const Vector own(query.begin() + static_cast<std::ptrdiff_t>(h * head_),
                       query.begin() + static_cast<std::ptrdiff_t>((h + 1) * head_));
      Vector scores;
      for (const Vector& key : cache.keys) {
        const auto weight = [&](std::size_t i) { return key[shared + i]; };
        scores.push_back(hw::half_mul(column(own, weight, hw::kHalfZero), scale));
      }
      Half largest = scores[0];
      for (const Half s : scores) largest = hw::half_max(largest, s);
      for (Half& s : scores) s = hw::half_exp(hw::half_sub(s, largest));
      const Half inverse = hw::half_recip(total(scores));
      for (Half& s : scores) s = hw::half_mul(s, inverse);
      for (std::size_t i = 0; i < head_; ++i) {
        out[h * head_ + i] = column(
            scores, [&](std::size_t t) { return cache.values[t][shared + i]; }, hw::kHalfZero);
      }
    }
    return out;
  }

  const model::Gpt& gpt_;
  const std::size_t depth_, unit_, head_;
  std::vector<Cache> layers_;
  std::size_t position_ = 0;
};

}  // namespace systole::test

#include "model/float/float_llama.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <stdexcept>

#include "hw/host/largest_columns.h"
#include "model/float/float_functions.h"
#include "model/float/float_matrix.h"

namespace systole::model {
namespace {

using Values = std::vector<float>;

/// One text as the blocks compute it.
class LlamaText {
 public:
  LlamaText(const LlamaCheckpoint& llama, std::size_t tokens, const LlamaObserver& observe)
      : llama_(llama), shape_(llama.shape), tokens_(tokens), observe_(observe) {
    const std::vector<double> frequencies = shape_.frequencies();
    for (std::size_t p = 0; p < tokens; ++p) {
      for (const double frequency : frequencies) {
        const double angle = static_cast<double>(p) * frequency;
        cosines_.push_back(static_cast<float>(std::cos(angle)));
        sines_.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }

  void see(LlamaSite site, std::size_t layer, const Values& values) const {
    see_rows(site, layer, values, tokens_);
  }
  void see_rows(LlamaSite site, std::size_t layer, const Values& values, std::size_t rows) const {
    if (observe_) observe_(site, layer, values.data(), rows, values.size() / rows);
  }

  [[nodiscard]] Values linear(const Values& in, const LlamaLinear& layer) const {
    Values out = product(in, layer.weight, layer.inputs, layer.outputs);
    if (layer.bias.empty()) return out;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += layer.bias[i % layer.outputs];
    return out;
  }

  [[nodiscard]] Values product(const Values& in, const Values& weight, std::size_t inputs,
                               std::size_t outputs) const {
    const PackedMatrix<float> matrix(weight.data(), inputs, outputs, 1, inputs);
    const std::size_t rows = in.size() / inputs;
    Values out(rows * outputs);
    matrix.multiply(in.data(), inputs, rows, out.data(), outputs);
    return out;
  }

  [[nodiscard]] Values norm(LlamaSite site, std::size_t layer, const Values& in,
                            const Values& weight) const {
    Values out = normed(in, weight);
    see(site, layer, out);
    return out;
  }
  /// Of rows as long as the weight: those of a token, or of its heads.
  [[nodiscard]] Values normed(const Values& in, const Values& weight) const {
    const std::size_t width = weight.size();
    Values out(in.size());
    for (std::size_t row = 0; row < in.size(); row += width) {
      const float* const x = &in[row];
      double squares = 0;
      for (std::size_t c = 0; c < width; ++c) squares += double{x[c]} * x[c];
      const auto factor = static_cast<float>(
          1.0 / std::sqrt(squares / static_cast<double>(width) + llama_.norm_epsilon));
      for (std::size_t c = 0; c < width; ++c) out[row + c] = x[c] * factor * weight[c];
    }
    return out;
  }
  /// Queries or keys after their own norms, if the network has any.
  [[nodiscard]] Values head_normed(LlamaSite site, std::size_t layer, Values in,
                                   const Values& weight) const {
    if (weight.empty()) return in;
    see(site, layer, in);
    return normed(in, weight);
  }

  [[nodiscard]] Values rotated(LlamaSite site, std::size_t layer, Values values) const {
    see(site, layer, values);
    const std::size_t width = values.size() / tokens_, pairs = shape_.head_width / 2;
    for (std::size_t t = 0; t < tokens_; ++t) {
      for (std::size_t c = 0; c < width; c += 2) {
        const std::size_t angle = t * pairs + c / 2 % pairs;
        float *const even = &values[t * width + c], *const odd = even + 1;
        const float turned = *even * cosines_[angle] - *odd * sines_[angle];
        *odd = *even * sines_[angle] + *odd * cosines_[angle];
        *even = turned;
      }
    }
    see(site, layer, values);
    return values;
  }

  [[nodiscard]] Values attention(const Values& query, const Values& key,
                                 const Values& value) const {
    const std::size_t width = shape_.head_width, queries = shape_.query_width(),
                      shared = shape_.kv_width();
    const float scale = 1.0F / std::sqrt(static_cast<float>(width));
    Values out(tokens_ * queries), scores(tokens_);
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      const std::size_t from = h / shape_.group() * width;
      for (std::size_t t = 0; t < tokens_; ++t) {
        const float* const q = &query[t * queries + h * width];
        const std::size_t first =
            shape_.window == 0 || t < shape_.window ? 0 : t + 1 - shape_.window;
        for (std::size_t s = first; s <= t; ++s) {
          const float* const k = &key[s * shared + from];
          float sum = 0;
          for (std::size_t c = 0; c < width; ++c) sum += q[c] * k[c];
          scores[s] = sum;
        }
        softmax_row(&scores[first], t + 1 - first, scale);
        float* const to = &out[t * queries + h * width];
        for (std::size_t s = first; s <= t; ++s) {
          const float* const v = &value[s * shared + from];
          for (std::size_t c = 0; c < width; ++c) to[c] += scores[s] * v[c];
        }
      }
    }
    return out;
  }

  void block(std::size_t i, Values& x) const {
    const FloatLlamaBlock& block = llama_.blocks[i];
    const Values in = norm(LlamaSite::kNorm1, i, x, block.norm1);
    const Values query =
        rotated(LlamaSite::kQuery, i,
                head_normed(LlamaSite::kQueryIn, i, linear(in, block.query), block.query_norm));
    const Values key =
        rotated(LlamaSite::kKey, i,
                head_normed(LlamaSite::kKeyIn, i, linear(in, block.key), block.key_norm));
    const Values value = linear(in, block.value);
    see(LlamaSite::kValue, i, value);
    const Values context = attention(query, key, value);
    see(LlamaSite::kContext, i, context);
    add(x, linear(context, block.proj));
    see(LlamaSite::kStream, i, x);
    const Values mlp_in = norm(LlamaSite::kNorm2, i, x, block.norm2);
    if (shape_.experts == 0) {
      add(x, mlp(i, mlp_in, tokens_, block.gate, block.up, block.down));
      see(LlamaSite::kStream, i, x);
      return;
    }
    const Values shares = routed(i, linear(mlp_in, block.router));
    for (std::size_t e = 0; e < shape_.experts; ++e) add_expert(i, e, mlp_in, shares, x);
  }

 private:
  Values mlp(std::size_t i, const Values& in, std::size_t rows, const LlamaLinear& gate_layer,
             const LlamaLinear& up_layer, const LlamaLinear& down) const {
    Values gate = linear(in, gate_layer);
    see_rows(LlamaSite::kGate, i, gate, rows);
    for (float& g : gate) {
      g = shape_.gelu ? gelu(g, llama_.gelu) : g / (1.0F + std::exp(-g));
    }
    see_rows(LlamaSite::kSilu, i, gate, rows);
    const Values up = linear(in, up_layer);
    see_rows(LlamaSite::kUp, i, up, rows);
    for (std::size_t j = 0; j < up.size(); ++j) gate[j] *= up[j];
    see_rows(LlamaSite::kProduct, i, gate, rows);
    return linear(gate, down);
  }

  /// The shares of the experts of each token: the softmax of the largest scores, of equal ones the
  /// first.
  [[nodiscard]] Values routed(std::size_t i, Values scores) const {
    see(LlamaSite::kRouter, i, scores);
    const std::size_t experts = shape_.experts;
    for (std::size_t t = 0; t < tokens_; ++t) {
      float* const row = &scores[t * experts];
      std::vector<std::uint8_t> keep(experts, 0);
      for (const std::size_t column : hw::largest_columns(row, experts, shape_.active_experts)) {
        keep[column] = 1;
      }
      softmax_row(row, experts, 1.0F, keep.data());
    }
    return scores;
  }

  /// Adds what an expert gives for the tokens that go to it.
  void add_expert(std::size_t i, std::size_t e, const Values& in, const Values& shares,
                  Values& x) const {
    const std::size_t width = shape_.width;
    std::vector<std::size_t> tokens;
    Values rows;
    for (std::size_t t = 0; t < tokens_; ++t) {
      if (shares[t * shape_.experts + e] == 0) continue;
      tokens.push_back(t);
      const auto row = in.begin() + static_cast<std::ptrdiff_t>(t * width);
      rows.insert(rows.end(), row, row + static_cast<std::ptrdiff_t>(width));
    }
    if (tokens.empty()) return;
    const FloatExpert& expert = llama_.blocks[i].experts[e];
    const Values out = mlp(i, rows, tokens.size(), expert.gate, expert.up, expert.down);
    for (std::size_t r = 0; r < tokens.size(); ++r) {
      const float share = shares[tokens[r] * shape_.experts + e];
      for (std::size_t c = 0; c < width; ++c) {
        x[tokens[r] * width + c] += share * out[r * width + c];
      }
    }
    see(LlamaSite::kStream, i, x);
  }

  static void add(Values& to, const Values& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }

  const LlamaCheckpoint& llama_;
  const LlamaShape& shape_;
  std::size_t tokens_;
  const LlamaObserver& observe_;
  Values cosines_, sines_;  ///< [tokens, head width / 2]
};

}  // namespace

std::vector<float> llama_logits(const LlamaCheckpoint& llama, const std::vector<std::int32_t>& ids,
                                const LlamaObserver& observe,
                                const std::function<void(std::size_t)>& progress) {
  const std::size_t width = llama.shape.width;
  Values x;
  x.reserve(ids.size() * width);
  for (const std::int32_t id : ids) {
    if (id < 0 || static_cast<std::uint32_t>(id) >= llama.shape.vocabulary) {
      throw std::invalid_argument("llama: id " + std::to_string(id));
    }
    const auto row =
        llama.word.begin() + static_cast<std::ptrdiff_t>(id) * static_cast<std::ptrdiff_t>(width);
    std::transform(row, row + static_cast<std::ptrdiff_t>(width), std::back_inserter(x),
                   [&](float value) { return value * static_cast<float>(llama.word_factor); });
  }
  const LlamaText text(llama, ids.size(), observe);
  text.see(LlamaSite::kStream, 0, x);
  for (std::size_t i = 0; i < llama.blocks.size(); ++i) {
    text.block(i, x);
    if (progress) progress(i + 1);
  }
  const Values last = text.norm(LlamaSite::kFinalNorm, 0, x, llama.norm);
  Values logits = text.product(last, llama.output_weight(), width, llama.shape.vocabulary);
  text.see(LlamaSite::kLogits, 0, logits);
  return logits;
}

}  // namespace systole::model

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/float/float_matrix.h"
#include "model/float/gpt.h"

namespace systole::model {

/// GPT-2 in float32 on the weights of a Gpt, which are exact in it: what its FP16 results are
/// compared with. Sums run in a fixed order. Keys and values of past tokens are kept, so that a
/// text may come token by token or many at once, with the same results.
class FloatGpt {
 public:
  /// `gpt` outlives this object.
  explicit FloatGpt(const Gpt& gpt);

  [[nodiscard]] const TextShape& shape() const { return gpt_.shape; }
  /// Tokens so far.
  [[nodiscard]] std::size_t length() const { return length_; }
  /// Forgets them.
  void restart() { length_ = 0; }

  /// Appends tokens: the logits after each of them, [ids.size(), vocabulary]. Throws
  /// std::invalid_argument for an id outside the vocabulary or more tokens than positions.
  [[nodiscard]] std::vector<float> append(const std::vector<std::int32_t>& ids);

 private:
  struct Linear {
    PackedMatrix<float> weight;
    std::vector<float> bias;
  };
  struct Norm {
    std::vector<float> weight, bias;
  };
  struct Layer {
    Norm norm1, norm2;
    Linear query, key, value, proj, fc1, fc2;
    std::vector<float> keys;    ///< [width, positions], so that scores run over tokens
    std::vector<float> values;  ///< [positions, width]
  };

  static Norm widen(const HalfNorm& norm);
  static Linear pack(const HalfLinear& linear);
  static PackedMatrix<float> pack_head(const Gpt& gpt);

  [[nodiscard]] std::vector<float> apply(const Linear& linear, const std::vector<float>& in) const;
  [[nodiscard]] std::vector<float> normalise(const Norm& norm, const std::vector<float>& in) const;
  /// Appends tokens; what the last norm makes of each, [ids.size(), width].
  [[nodiscard]] std::vector<float> run(const std::vector<std::int32_t>& ids);
  /// Of rows after the `length_` tokens before.
  [[nodiscard]] std::vector<float> attention(Layer& layer, const std::vector<float>& in) const;
  void attend(const Layer& layer, const float* query, std::size_t keys, float* context) const;
  [[nodiscard]] std::vector<float> logits(const float* hidden, std::size_t rows) const;

  const Gpt& gpt_;
  std::vector<Layer> layers_;
  Norm norm_;
  PackedMatrix<float> head_;
  std::size_t length_ = 0;
};

}  // namespace systole::model

#pragma once

#include <cstdint>
#include <optional>

#include "model/metadata/llama_shape.h"
#include "model/metadata/text_shape.h"

namespace systole::model {

/// Sizes of a decoder that writes text in FP16: a GPT-2 or, with `llama`, a Llama. Of a Llama the
/// encoder has layers, width, heads and hidden; a head may have another width than width / heads.
struct GptShape : TextShape {
  std::optional<LlamaShape> llama;

  GptShape() = default;
  /// Of a GPT-2.
  GptShape(const TextShape& gpt2) : TextShape(gpt2) {}  // NOLINT(google-explicit-constructor)
  explicit GptShape(const LlamaShape& of) : llama(of) {
    encoder.layers = of.layers;
    encoder.width = of.width;
    encoder.heads = of.heads;
    encoder.hidden = of.hidden;
    encoder.causal = true;
    vocabulary = of.vocabulary;
    positions = of.positions;
  }

  [[nodiscard]] std::uint32_t head_width() const {
    return llama ? llama->head_width : encoder.head_width();
  }
  /// Heads of keys and values, and the query heads that share one.
  [[nodiscard]] std::uint32_t kv_heads() const { return llama ? llama->kv_heads : encoder.heads; }
  [[nodiscard]] std::uint32_t group() const { return encoder.heads / kv_heads(); }
};

}  // namespace systole::model

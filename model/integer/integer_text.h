#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/function/tanh.h"
#include "model/checkpoint/text_checkpoint.h"
#include "model/integer/integer_vit.h"

namespace systole::model {

/// The head of a network that classifies texts (model/checkpoint/float_layers.h).
struct IntegerTextHead {
  /// The input of tanh has 16 bits, in steps of kTanhInputScale; that of ReLU 8, as its result.
  IntegerLinear dense;
  HeadFunction function = HeadFunction::kTanh;
  hw::Dyadic argument{};  ///< of kTanh, as `output` and `fraction_bits` (hw/function/tanh.h)
  hw::Dyadic output{};
  std::int64_t fraction_bits = 0;
  double pooled_scale = 0.0;  ///< of the input of `classes`
  IntegerLinear classes;
  double logit_scale = 0.0;

  [[nodiscard]] hw::TanhConstants tanh() const {
    return {argument, hw::make_int_exp_constants(static_cast<unsigned>(fraction_bits)), output};
  }
};

/// 16 bits of it reach +-8, where tanh is 1 to 2e-7.
inline constexpr double kTanhInputScale = 1.0 / 4096;
inline constexpr unsigned kTanhInputBits = 16;
/// Of the argument of tanh's exponential.
inline constexpr unsigned kTanhFractionBits = 10;

/// A text network whose every constant is an integer.
struct IntegerText {
  std::string name;
  std::string source;  ///< where the constants come from, for people
  TextShape shape;
  IntegerEncoder encoder;
  std::vector<std::int32_t> word;      ///< [vocabulary, width], in steps of `embedding_scale`
  std::vector<std::int32_t> position;  ///< [positions, width], likewise
  /// [token_types, width], likewise, less that of type 0, which is part of `position`; empty: the
  /// network has type 0 alone, or none.
  std::vector<std::int32_t> token_type;
  double embedding_scale = 0.0;  ///< of the residual stream after the embedding
  /// Pre-norm: after the last block. Post-norm: after the embedding.
  IntegerLayerNorm norm;
  std::optional<IntegerTextHead> head;  ///< of shape.classes, if that is not 0
};

/// What the host writes for a text: the sums of its rows of all tables, clamped to the residual
/// stream, [tokens, width]; the first token is at `first_position`. `types` are those of the
/// tokens; none: all 0. Throws std::invalid_argument for an id outside the vocabulary, a position
/// beyond the table, or a type that the network does not have.
[[nodiscard]] std::vector<std::int32_t> embed_tokens(const IntegerText& text,
                                                     const std::vector<std::int32_t>& ids,
                                                     std::uint32_t first_position = 0,
                                                     const std::vector<std::int32_t>& types = {});

}  // namespace systole::model

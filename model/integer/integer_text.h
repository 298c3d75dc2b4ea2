#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/checkpoint/text_checkpoint.h"
#include "model/integer/integer_vit.h"

namespace systole::model {

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

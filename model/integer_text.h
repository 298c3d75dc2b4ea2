#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/integer_vit.h"
#include "model/text_checkpoint.h"

namespace systole::model {

/// A text network whose every constant is an integer.
struct IntegerText {
  std::string name;
  std::string source;  ///< where the constants come from, for people
  TextShape shape;
  IntegerEncoder encoder;
  std::vector<std::int32_t> word;      ///< [vocabulary, width], in steps of `embedding_scale`
  std::vector<std::int32_t> position;  ///< [positions, width], likewise
  double embedding_scale = 0.0;        ///< of the residual stream after the embedding
  /// Pre-norm: after the last block. Post-norm: after the embedding.
  IntegerLayerNorm norm;
};

/// What the host writes for a text: the sums of its rows of both tables, clamped to the residual
/// stream, [tokens, width]; the first token stands at `first_position`. Throws
/// std::invalid_argument for an id outside the vocabulary or a position beyond the table.
[[nodiscard]] std::vector<std::int32_t> embed_tokens(const IntegerText& text,
                                                     const std::vector<std::int32_t>& ids,
                                                     std::uint32_t first_position = 0);

}  // namespace systole::model

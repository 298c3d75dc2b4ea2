#pragma once

#include <cstdint>

#include "model/metadata/vit_shape.h"

namespace systole::model {

/// A text network: tokens and positions become vectors, Transformer blocks follow.
struct TextShape {
  EncoderShape encoder;
  std::uint32_t vocabulary = 0;
  std::uint32_t positions = 0;    ///< tokens of a text, at most
  std::uint32_t token_types = 0;  ///< numbered from 0; 0: the network has none (GPT-2)
  /// That a text is classified as, from its first token; 0: the network has no such head, its
  /// output is the state of every token.
  std::uint32_t classes = 0;
};

// Wide enough for the published ones; beyond, sums and file offsets would need more care.
inline constexpr std::uint32_t kMaxTextLayers = 256;
inline constexpr std::uint32_t kMaxTextWidth = 1U << 14;
inline constexpr std::uint32_t kMaxTextHidden = 1U << 16;
inline constexpr std::uint32_t kMaxVocabulary = 1U << 20;
inline constexpr std::uint32_t kMaxPositions = 1U << 16;
inline constexpr std::uint32_t kMaxTokenTypes = 1U << 8;
/// One output is a score, no class.
inline constexpr std::uint32_t kMinTextClasses = 2;
inline constexpr std::uint32_t kMaxTextClasses = 1U << 16;

[[nodiscard]] inline bool operator==(const TextShape& a, const TextShape& b) {
  return a.encoder == b.encoder && a.vocabulary == b.vocabulary && a.positions == b.positions &&
         a.token_types == b.token_types && a.classes == b.classes;
}

}  // namespace systole::model

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/float/gpt.h"
#include "model/text/tokeniser.h"

namespace systole::testbench {

inline constexpr std::uint32_t kDefaultPromptTokens = 32, kDefaultTokens = 64;

/// Tokens without a meaning, always the same: any do for the time of a run.
[[nodiscard]] std::vector<std::int32_t> meaningless_tokens(std::size_t count,
                                                           std::uint32_t vocabulary);

/// A network that a ring runs, and how its texts are written; without a tokeniser there are none.
struct RingText {
  model::GptShape shape;
  std::string name;
  std::optional<model::Gpt> gpt;
  std::unique_ptr<model::Tokeniser> tokeniser;

  /// Of a Llama whose positions are many: memory is made for so many tokens alone. Throws
  /// InputError if they are more than its window.
  void limit_positions(std::size_t tokens);

  /// Empty without a tokeniser.
  [[nodiscard]] std::string text_of(const std::vector<std::uint32_t>& ids) const;
};

/// Of a checkpoint, or of a shape with seeded weights, if there are to be values. Throws
/// InputError.
[[nodiscard]] RingText load_ring_text(const std::string& model, bool functional);

/// The tokens of a text, or `input_tokens` that have no meaning and are always the same. Throws
/// InputError for both, and for a text without a tokeniser.
[[nodiscard]] std::vector<std::uint32_t> prompt_of(
    const RingText& of, const std::optional<std::string>& prompt,
    const std::optional<std::uint32_t>& input_tokens);

}  // namespace systole::testbench

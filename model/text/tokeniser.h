#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace systole::model {

/// Between a text and the numbers of its tokens. Any bytes are a text; decode() is the inverse of
/// encode().
class Tokeniser {
 public:
  virtual ~Tokeniser() = default;

  [[nodiscard]] virtual std::uint32_t vocabulary() const = 0;
  /// Throws InputError that names the place of a byte that the vocabulary does not have.
  [[nodiscard]] virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// Throws std::out_of_range for an id outside the vocabulary. Single tokens need not be whole
  /// characters.
  [[nodiscard]] virtual std::string decode(const std::vector<std::int32_t>& ids) const = 0;
  /// What ends a text, "<|endoftext|>"; nothing if the vocabulary has no such token.
  [[nodiscard]] virtual std::optional<std::int32_t> end_of_text() const { return std::nullopt; }
};

/// Of a vocabulary that is ASCII.
inline constexpr std::uint32_t kAsciiVocabulary = 128;

/// A token is a character; its id is the ASCII code.
[[nodiscard]] std::unique_ptr<Tokeniser> make_ascii_tokeniser();

/// The tokeniser of a checkpoint: GPT-2's byte pairs if "vocab.json" or
/// "merges.txt" is in its directory, else ASCII if the vocabulary is of that size. Throws
/// InputError if neither is so, if one of the files is missing or malformed, or if they have
/// another number of tokens than `vocabulary`.
[[nodiscard]] std::unique_ptr<Tokeniser> find_tokeniser(const std::string& checkpoint,
                                                        std::uint32_t vocabulary);

/// A tokeniser from the metadata of a network file (docs/network-format.md): byte pairs. Throws
/// InputError that begins with `place` if the text is malformed or has another number of tokens.
[[nodiscard]] std::unique_ptr<Tokeniser> read_tokeniser(const std::string& place,
                                                        const std::string& text,
                                                        std::uint32_t vocabulary);

}  // namespace systole::model

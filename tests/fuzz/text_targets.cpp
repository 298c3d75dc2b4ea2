#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/target.h"
#include "model/metadata/config_file.h"
#include "model/text/text_words.h"
#include "model/text/tokeniser.h"

/// Tokenisers and texts.
namespace systole::fuzz {
namespace {

/// The first byte of an input, 0 if there is none, and the rest.
std::uint8_t take_byte(std::string_view& bytes) {
  if (bytes.empty()) return 0;
  const auto byte = static_cast<std::uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  return byte;
}

void require_inverse(const model::Tokeniser& tokeniser, std::string_view text) {
  const std::vector<std::int32_t> ids = tokeniser.encode(text.substr(0, 256));
  require(tokeniser.decode(ids) == text.substr(0, 256), "decoding is the inverse of encoding");
}

}  // namespace

/// A byte: the vocabulary's size. Then the JSON text.
void read_tokeniser(std::string_view bytes) {
  const std::uint8_t vocabulary = take_byte(bytes);
  const auto tokeniser = model::read_tokeniser("file", std::string(bytes), vocabulary);
  require_inverse(*tokeniser, bytes);
}

/// A byte: the vocabulary's size above 255. Then "vocab.json", a zero and "merges.txt".
void read_byte_pairs(std::string_view bytes) {
  const std::uint32_t vocabulary = 256U + take_byte(bytes);
  const std::size_t end = bytes.find('\0');
  const std::string path = file_with(model::kTokensFile, bytes.substr(0, end));
  static_cast<void>(
      file_with(model::kMergesFile, end == std::string_view::npos ? "" : bytes.substr(end + 1)));
  const auto tokeniser = model::find_tokeniser(path, vocabulary);
  require_inverse(*tokeniser, bytes);
}

void split_text(std::string_view bytes) {
  for (const auto& words : {model::split_words(bytes), model::split_words_and_digits(bytes)}) {
    std::string together;
    for (const std::string_view word : words) {
      require(!word.empty(), "a word has characters");
      together += word;
    }
    require(together == bytes, "words are the text again");
  }
}

}  // namespace systole::fuzz
